"""The compiled loops over batches, and the rules for all kernels; the other modules here process single records.

Positions are unsigned: with signed ones numba adds a branch for negative indices, and no loop is vectorised (4 times slower).
So every constant below is a `np.uint64`; mixed with a signed one, numba would compute in floating point.
Each kernel returns a status instead of raising: 0 is success, another number is the first error.
"""

from typing import Any

import numpy as np

from local_log.compiled import intrinsic, njit, types
from local_log.formats.header_layout import (
    BATCH_HEADER_BYTES,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MESSAGE_ATTRIBUTES_AT,
    MESSAGE_SIZE_MIN,
)
from local_log.formats.kernels.constants import BAD_LENGTH, BAD_MAGIC, DONE, ROOM, TORN

_0, _1, _2, _3, _7, _127, _128 = (np.uint64(n) for n in (0, 1, 2, 3, 7, 127, 128))
_LENGTH_AT, _MAGIC_AT, _OVERHEAD, _HEADER = (np.uint64(n) for n in (LENGTH_AT, MAGIC_AT, LOG_OVERHEAD, BATCH_HEADER_BYTES))
_LEGACY_HEADER, _LEGACY_MIN = np.uint64(MESSAGE_ATTRIBUTES_AT), np.uint64(MESSAGE_SIZE_MIN[0])
_8, _16, _24 = (np.uint64(n) for n in (8, 16, 24))

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_u8x2, _u64 = types.Array(types.uint8, 2, "C"), types.Array(types.uint64, 1, "C")
_in_u64 = types.Array(types.uint64, 1, "C", readonly=True)


@njit(inline="always", boundscheck=False)
def uint32(data: Any, at: Any) -> Any:
    """A big-endian uint32."""
    high = (np.uint64(data[at]) << _24) | (np.uint64(data[at + _1]) << _16)
    return high | (np.uint64(data[at + _2]) << _8) | np.uint64(data[at + _3])


@njit(
    types.UniTuple(types.uint64, 3)(_bytes, types.uint64, types.uint64, _u64, _u8x2),
    cache=True,
    nogil=True,
    boundscheck=False,
)
def walk(data: Any, pos: Any, end: Any, positions: Any, headers: Any) -> Any:
    """Iterates over complete batches of magic 2 in `data[pos:end]`; copies position and header of as many as fit.

    Returns (status, batches, position after the last one). TORN: the next batch is incomplete.
    """
    n = _0
    room = np.uint64(positions.size)
    while n < room and pos < end:
        left = end - pos
        if left < _OVERHEAD:
            return TORN, n, pos
        at = pos + _LENGTH_AT
        length = uint32(data, at)
        if length == _0 and data[at - _1] == 0 and left > _MAGIC_AT and data[pos + _MAGIC_AT] == 0:
            return TORN, n, pos  # the zeros of a preallocated file
        if length < _HEADER - _OVERHEAD or length >= np.uint64(1 << 31):
            return BAD_LENGTH, n, pos
        if left > _MAGIC_AT and data[pos + _MAGIC_AT] != 2:
            return BAD_MAGIC, n, pos
        if left < _OVERHEAD + length:
            return TORN, n, pos
        positions[n] = pos
        for i in range(_HEADER):
            headers[n, i] = data[pos + i]
        n += _1
        pos += _OVERHEAD + length
    return DONE, n, pos


@njit(
    types.UniTuple(types.uint64, 3)(_bytes, types.uint64, types.uint64, types.uint64, _u64, _u8x2),
    cache=True,
    nogil=True,
    boundscheck=False,
)
def walk_any(data: Any, pos: Any, end: Any, file_end: Any, positions: Any, headers: Any) -> Any:
    """As `walk`, by the rules of Kafka's FileLogInputStream: any magic, and only the size is checked.

    The file ends at `file_end`, `data` at `end`. Returns (status, batches, position after the last one):
    DONE at the file's end, even if leftover bytes follow that are no batch; TORN: more of the file is needed;
    BAD_LENGTH: a size below that of the smallest message.
    """
    n = _0
    room = np.uint64(positions.size)
    while n < room:
        if pos + _LEGACY_HEADER >= file_end:
            return DONE, n, file_end
        if pos + _LEGACY_HEADER > end:
            return TORN, n, pos
        at = pos + _LENGTH_AT
        length = uint32(data, at)
        if length < _LEGACY_MIN or length >= np.uint64(1 << 31):
            return BAD_LENGTH, n, pos
        if pos + _OVERHEAD + length > file_end:
            return DONE, n, file_end
        if pos + _OVERHEAD + length > end:
            return TORN, n, pos
        positions[n] = pos
        for i in range(min(_HEADER, _OVERHEAD + length)):
            headers[n, i] = data[pos + i]
        for i in range(min(_HEADER, _OVERHEAD + length), _HEADER):
            headers[n, i] = 0
        n += _1
        pos += _OVERHEAD + length
    return ROOM, n, pos


@njit(types.uint64(_in_u64, types.uint64, types.uint64, types.uint64, _u64), cache=True, nogil=True, boundscheck=False)
def index_rows(positions: Any, start: Any, last: Any, interval: Any, rows: Any) -> Any:
    """The batches that get an index entry: each that starts more than `interval` bytes after the previous one with an entry.

    `positions` count from `start`; the previous batch with an entry starts at `last`. Fills `rows`; returns their number.
    """
    n = _0
    for row in range(positions.size):
        at = start + positions[row]
        if at - last > interval:
            rows[n] = row
            n += _1
            last = at
    return n


def _copy_signature(_context: Any, to: Any, _at: Any, of: Any, _pos: Any, _size: Any) -> Any:
    """memcpy of `of[pos:pos + size]` to `to[at:]`. A loop over bytes takes 1.5 times as long: most keys are too short for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from numba.core import cgutils

        to_array = context.make_array(signature.args[0])(context, builder, args[0])
        of_array = context.make_array(signature.args[2])(context, builder, args[2])
        target, source = builder.gep(to_array.data, [args[1]]), builder.gep(of_array.data, [args[3]])
        cgutils.raw_memcpy(builder, target, source, args[4], 1)
        return context.get_dummy_value()

    return types.void(to, types.uint64, of, types.uint64, types.uint64), generate


copy: Any = intrinsic(_copy_signature)


@njit(boundscheck=False)
def long_varint(data: Any, p: Any, end: Any, last_shift: Any) -> Any:
    """The raw value and the position after it; a position past `end` if the varint is incomplete or exceeds `last_shift`."""
    value = _0
    shift = _0
    while p < end and shift <= last_shift:
        byte = np.uint64(data[p])
        p += _1
        value |= (byte & _127) << shift
        if byte < _128:
            return value, p
        shift += _7
    return _0, end + _1
