"""The compiled loop that inflates many small lz4 frames, such as those of batches of one record. See `kernels.scan`.

A call of the library takes longer than the bytes of such a frame.
"""

from typing import Any, Final

import numpy as np

from local_log.compiled import njit, types
from local_log.formats.kernels.scan import copy

FRAME_BYTES_MAX: Final = 2048
"""The library is the faster one for larger frames."""

INFLATED_BYTES_MAX: Final = 32 << 10
"""What one frame may become here: far enough from the 64 KiB of a block that its rules for the last bytes do not matter."""

NONE: Final = 0
LZ4: Final = 3

_0, _1, _2, _3, _4, _8, _11, _15, _16, _24, _31, _255 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 8, 11, 15, 16, 24, 31, 255))
_NONE, _LZ4, _FRAME_MAX, _OUT_MAX = (np.uint64(n) for n in (NONE, LZ4, FRAME_BYTES_MAX, INFLATED_BYTES_MAX))
_NO_FRAME, _STORED = np.uint64(1 << 63), np.uint64(1 << 31)
_HEADER = tuple(np.uint64(byte) for byte in b"\x04\x22\x4d\x18\x60\x40\x82")
_ENVELOPE = np.uint64(15)  # header, size of the block, end mark

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_in_u64, _u64 = types.Array(types.uint64, 1, "C", readonly=True), types.Array(types.uint64, 1, "C")
_u8 = types.Array(types.uint8, 1, "C")


@njit(inline="always", boundscheck=False)
def _uint32_le(data: Any, at: Any) -> Any:
    low = np.uint64(data[at]) | (np.uint64(data[at + _1]) << _8)
    return low | (np.uint64(data[at + _2]) << _16) | (np.uint64(data[at + _3]) << _24)


@njit(boundscheck=False)
def _block_of(data: Any, at: Any, end: Any) -> Any:
    """The size of the only block of the frame in `data[at:end]`, with its flag; `_NO_FRAME` for any other frame."""
    if end - at < _ENVELOPE or end - at > _FRAME_MAX:
        return _NO_FRAME
    for i, byte in enumerate(_HEADER):
        if np.uint64(data[at + np.uint64(i)]) != byte:
            return _NO_FRAME
    size = _uint32_le(data, at + _11 - _4)
    if size & ~_STORED != end - at - _ENVELOPE or _uint32_le(data, end - _4) != _0:
        return _NO_FRAME
    return size


@njit(boundscheck=False)
def _length(data: Any, at: Any, end: Any, length: Any) -> Any:
    """A length that goes on in the next bytes where its four bits are full, and the position after it."""
    if length == _15:
        more = _255
        while more == _255 and at < end:
            more = np.uint64(data[at])
            length += more
            at += _1
    return length, at


@njit(boundscheck=False)
def _inflate_block(data: Any, at: Any, end: Any, out: Any, start: Any) -> Any:
    """Inflates the block `data[at:end]` to `out[start:]`; returns where it ends there, `_NO_FRAME` if it is not sound."""
    to, room = start, start + _OUT_MAX
    while at < end:
        token = np.uint64(data[at])
        length, at = _length(data, at + _1, end, token >> _4)
        if length > end - at or length > room - to:
            return _NO_FRAME
        copy(out, to, data, at, length)
        to, at = to + length, at + length
        if at == end:
            return to
        if end - at < _8:  # the last five bytes are literals, as the library demands
            return _NO_FRAME
        distance = np.uint64(data[at]) | (np.uint64(data[at + _1]) << _8)
        length, at = _length(data, at + _2, end, token & _15)
        length += _4
        if distance == _0 or distance > to - start or length > room - to:
            return _NO_FRAME
        for _ in range(length):  # the match may reach into what it writes
            out[to] = out[to - distance]
            to += _1
    return _NO_FRAME


@njit(
    types.uint64(_bytes, types.uint64, _bytes, _in_u64, _in_u64, _u64, _u64, _u8),
    cache=True,
    nogil=True,
    boundscheck=False,
)
def inflate_frames(data: Any, first: Any, codecs: Any, starts: Any, ends: Any, out_starts: Any, out_ends: Any, out: Any) -> Any:
    """Inflates the sections `data[starts[r]:ends[r]]` of the rows from `first` on into `out`, one after the other.

    Returns the first row that is not done, since it is not a sound frame of one small block, or `out` is full. A section without
    a codec, or without bytes, is copied. `out_starts` and `out_ends` of each row that is done are positions in `out`.
    """
    to = _0
    for row in range(first, np.uint64(starts.size)):
        at, end = starts[row], ends[row]
        if np.uint64(out.size) - to < _OUT_MAX:
            return row
        out_starts[row] = to
        codec = np.uint64(codecs[row])
        if codec == _NONE or at == end:
            if end - at > _FRAME_MAX:
                return row
            copy(out, to, data, at, end - at)
            to += end - at
        elif codec == _LZ4:
            block = _block_of(data, at, end)
            if block == _NO_FRAME:
                return row
            at, end = at + _11, end - _4
            if block & _STORED:
                copy(out, to, data, at, end - at)
                to += end - at
            else:
                inflated = _inflate_block(data, at, end, out, to)
                if inflated == _NO_FRAME:
                    return row
                to = inflated
        else:
            return row
        out_ends[row] = to
    return np.uint64(starts.size)
