"""The loops over bytes, compiled by numba: the only code here that sees single records.

Positions are unsigned: with signed ones numba keeps a branch for negative indices and nothing vectorises (4 times slower).
So every constant below is a `np.uint64`; mixed with a signed one, numba would compute in floating point.
Each kernel returns a status instead of raising: 0 is success, another number is the first thing that was wrong.
"""

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from local_log import kernel_cache  # noqa: F401  # before the first kernel, for code that is shipped in a zip

DONE: Final = 0
TORN: Final = 1
BAD_LENGTH: Final = 2
BAD_MAGIC: Final = 3
BAD_VARINT: Final = 4
RECORD_PAST_BATCH: Final = 5
FIELD_PAST_RECORD: Final = 6
BYTES_LEFT_OVER: Final = 7
BAD_HEADER_COUNT: Final = 8
ROOM: Final = 9

HEADER_BYTES: Final = 61

BLOCK_BYTES: Final = 64
"""What is copied is copied in blocks of so many bytes, so what it is copied to has as many to spare at its end."""

STEP_BYTES: Final = 1 << 18
"""How far ahead of the decoder memory is asked for the bytes that the checksum reads next."""

_0, _1, _2, _3, _7, _63, _127, _128 = (np.uint64(n) for n in (0, 1, 2, 3, 7, 63, 127, 128))
_LENGTH_AT, _MAGIC_AT, _OVERHEAD, _HEADER = (np.uint64(n) for n in (8, 16, 12, HEADER_BYTES))
_LEGACY_HEADER, _LEGACY_MIN = np.uint64(17), np.uint64(14)
_STEP, _CACHE_LINE, _BLOCK = np.uint64(STEP_BYTES), np.uint64(64), np.uint64(BLOCK_BYTES)
_8, _16, _24 = (np.uint64(n) for n in (8, 16, 24))

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_u8, _u8x2 = types.Array(types.uint8, 1, "C"), types.Array(types.uint8, 2, "C")
_i32, _i64, _u64 = (types.Array(t, 1, "C") for t in (types.int32, types.int64, types.uint64))
_in_i64, _in_u64 = (types.Array(t, 1, "C", readonly=True) for t in (types.int64, types.uint64))


@njit(inline="always", boundscheck=False)
def uint32(data: Any, at: Any) -> Any:
    """Four bytes, big-endian."""
    high = (np.uint64(data[at]) << _24) | (np.uint64(data[at + _1]) << _16)
    return high | (np.uint64(data[at + _2]) << _8) | np.uint64(data[at + _3])


@njit(
    types.UniTuple(types.uint64, 3)(_bytes, types.uint64, types.uint64, _u64, _u8x2),
    cache=True,
    nogil=True,
    boundscheck=False,
)
def walk(data: Any, pos: Any, end: Any, positions: Any, headers: Any) -> Any:
    """Steps over whole batches of magic 2 in `data[pos:end]`, copying position and header of each, as many as fit.

    Returns (status, batches, position after the last one). TORN: the next batch is not wholly there.
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
    """As `walk`, but over whatever Kafka's FileLogInputStream takes for a batch: any magic, no look at anything but the size.

    `file_end` is where the file ends, `end` where `data` does. Returns (status, batches, position after the last one):
    DONE at the file's end, which leftover bytes may follow that are no batch; TORN: more of the file is needed;
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
    """The batches that get an index entry: each that starts more than `interval` bytes behind the one before that got one.

    `positions` count from `start`, `last` is where the last such batch before these started. Fills `rows`; their number.
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
    """memcpy of `of[pos:pos + size]` to `to[at:]`. A loop over bytes takes half as long again: most keys are too short for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to_array = context.make_array(signature.args[0])(context, builder, args[0])
        of_array = context.make_array(signature.args[2])(context, builder, args[2])
        target, source = builder.gep(to_array.data, [args[1]]), builder.gep(of_array.data, [args[3]])
        cgutils.raw_memcpy(builder, target, source, args[4], 1)
        return context.get_dummy_value()

    return types.void(to, types.uint64, of, types.uint64, types.uint64), generate


copy: Any = intrinsic(_copy_signature)


def _copy_block_signature(_context: Any, to: Any, _at: Any, of: Any, _pos: Any) -> Any:
    """Copies BLOCK_BYTES of `of[pos:]` to `to[at:]`: some of these one after the other take less time than a call of memcpy."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to_array = context.make_array(signature.args[0])(context, builder, args[0])
        of_array = context.make_array(signature.args[2])(context, builder, args[2])
        block = ir.VectorType(ir.IntType(8), BLOCK_BYTES).as_pointer()
        target = builder.bitcast(builder.gep(to_array.data, [args[1]]), block)
        source = builder.bitcast(builder.gep(of_array.data, [args[3]]), block)
        builder.store(builder.load(source, align=1), target, align=1)
        return context.get_dummy_value()

    return types.void(to, types.uint64, of, types.uint64), generate


_copy_block: Any = intrinsic(_copy_block_signature)


def _prefetch_signature(_context: Any, of: Any, _pos: Any) -> Any:
    """Asks for the cache line of `of[pos]`, which may lie past the array's end: the decoder computes while memory answers."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, args[0])
        int32, address = ir.IntType(32), builder.gep(array.data, [args[1]])
        kind = ir.FunctionType(ir.VoidType(), [address.type, int32, int32, int32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        to_read, in_second_level, is_data = int32(0), int32(2), int32(1)
        builder.call(prefetch, [address, to_read, in_second_level, is_data])
        return context.get_dummy_value()

    return types.void(of, types.uint64), generate


_prefetch: Any = intrinsic(_prefetch_signature)


@njit(boundscheck=False)
def long_varint(data: Any, p: Any, end: Any, last_shift: Any) -> Any:
    """The raw value and the position after it; a position past `end` where none ends in time or by the byte at `last_shift`."""
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


@njit(inline="always", boundscheck=False)
def _varint(data: Any, p: Any, end: Any) -> Any:
    """The raw (still zigzag) value and the position after it, or a position past `end` where none ends in time."""
    if p + _1 < end:
        low = np.uint64(data[p])
        if low < _128:
            return low, p + _1
        high = np.uint64(data[p + _1])
        if high < _128:
            return (low & _127) | (high << _7), p + _2
    return long_varint(data, p, end, _63)


@njit(inline="always", boundscheck=False)
def _signed(value: Any) -> Any:
    return np.int64((value >> _1) ^ (_0 - (value & _1)))


@njit(
    types.UniTuple(types.uint64, 8)(
        types.uint64, types.uint64, types.uint64, types.uint64, types.uint64,  # which batches, and where to go on
        _bytes, _in_u64, _in_u64, _in_u64, _in_i64, _in_i64, _in_i64,  # data and batches
        types.boolean, types.boolean, types.boolean,  # wanted
        _i64, _i64, _i32, _u8, _u8, _i32, _u8, _u8, _u64, _u64,  # out
    ),
    cache=True,
    nogil=True,
    boundscheck=False,
)  # fmt: skip
def decode_records(
    first: Any, last: Any, row: Any, key_size: Any, value_size: Any,
    data: Any, starts: Any, ends: Any, counts: Any, base_offsets: Any, base_timestamps: Any, append_timestamps: Any,
    want_key: Any, want_value: Any, want_headers: Any,
    offsets: Any, timestamps: Any, key_ends: Any, keys: Any, key_valid: Any, value_ends: Any, values: Any,
    value_valid: Any, headers_at: Any, headers_end: Any,
) -> Any:  # fmt: skip
    """Turns the records in `data[starts[b]:ends[b]]` of every batch b of `[first, last)` into columns.

    It goes on at `row` with `key_size` and `value_size` bytes filled, so that a group may be decoded in steps.
    `append_timestamps[b]` is the timestamp of every record of b, or -1 where each has its own. `key_ends` and `value_ends`
    are Arrow's offsets (one longer than the rows, [0] already 0); `headers_at` and `headers_end` bound each record's headers
    from their count on. Outputs that are not wanted may be empty.
    Returns (status, failed batch, row, key bytes, value bytes, null keys, null values, headers).
    """
    key_nulls = _0
    value_nulls = _0
    headers = _0
    data_end = np.uint64(data.size)
    blocks_end = data_end - _BLOCK if data_end > _BLOCK else _0
    fetched = starts[first] if first < last else _0
    for b in range(first, last):
        p = starts[b]
        end = ends[b]
        base_offset = base_offsets[b]
        base_timestamp = base_timestamps[b]
        append_timestamp = append_timestamps[b]
        for _ in range(counts[b]):
            # A varint may be read past its record, but never past the data: that it was, is seen before anything relies on it.
            length, p = _varint(data, p, data_end)
            if p > end:
                return BAD_VARINT, b, row, _0, _0, _0, _0, _0
            if length & _1 or (length >> _1) > end - p:
                return RECORD_PAST_BATCH, b, row, _0, _0, _0, _0, _0
            record_end = p + (length >> _1)
            while fetched < record_end:
                _prefetch(data, fetched + _STEP)
                fetched += _CACHE_LINE
            p += _1  # the record's attributes, unused
            delta, p = _varint(data, p, data_end)
            timestamps[row] = append_timestamp if append_timestamp >= 0 else base_timestamp + _signed(delta)
            delta, p = _varint(data, p, data_end)
            offsets[row] = base_offset + _signed(delta)

            # The same for key and value: as a function, numba counts references to its arrays for every record (5 times slower).
            size, p = _varint(data, p, data_end)
            if p > record_end:
                return BAD_VARINT, b, row, _0, _0, _0, _0, _0
            if size & _1:
                key_nulls += _1
                size = _0
                if want_key:
                    key_valid[row] = 0
            else:
                size >>= _1
                if size > record_end - p:
                    return FIELD_PAST_RECORD, b, row, _0, _0, _0, _0, _0
                if want_key:
                    if p + size <= blocks_end:
                        done = _0
                        while done < size:
                            _copy_block(keys, key_size + done, data, p + done)
                            done += _BLOCK
                    else:
                        copy(keys, key_size, data, p, size)
                    key_size += size
            p += size
            if want_key:
                key_ends[row + _1] = key_size

            size, p = _varint(data, p, data_end)
            if p > record_end:
                return BAD_VARINT, b, row, _0, _0, _0, _0, _0
            if size & _1:
                value_nulls += _1
                size = _0
                if want_value:
                    value_valid[row] = 0
            else:
                size >>= _1
                if size > record_end - p:
                    return FIELD_PAST_RECORD, b, row, _0, _0, _0, _0, _0
                if want_value:
                    if p + size <= blocks_end:
                        done = _0
                        while done < size:
                            _copy_block(values, value_size + done, data, p + done)
                            done += _BLOCK
                    else:
                        copy(values, value_size, data, p, size)
                    value_size += size
            p += size
            if want_value:
                value_ends[row + _1] = value_size

            if want_headers:
                headers_at[row] = p
                headers_end[row] = record_end
                size, p = _varint(data, p, data_end)
                if p > record_end:
                    return BAD_VARINT, b, row, _0, _0, _0, _0, _0
                if size & _1 or (size >> _1) > record_end - p:
                    return BAD_HEADER_COUNT, b, row, _0, _0, _0, _0, _0
                headers += size >> _1
                if size == _0 and p != record_end:
                    return BYTES_LEFT_OVER, b, row, _0, _0, _0, _0, _0
            p = record_end
            row += _1
        if p != end:
            return BYTES_LEFT_OVER, b, row, _0, _0, _0, _0, _0
    return DONE, last, row, key_size, value_size, key_nulls, value_nulls, headers


@njit(
    types.UniTuple(types.uint64, 6)(
        types.uint64, types.uint64, types.uint64, types.uint64, types.uint64,  # which rows, and where to go on
        _bytes, _in_u64, _in_u64, _i32, _i32, _u8, _i32, _u8, _u8,
    ),
    cache=True,
    nogil=True,
    boundscheck=False,
)  # fmt: skip
def decode_headers(
    row: Any, last: Any, n: Any, key_size: Any, value_size: Any,
    data: Any, headers_at: Any, headers_end: Any, list_ends: Any, key_ends: Any, keys: Any, value_ends: Any, values: Any,
    value_valid: Any,
) -> Any:  # fmt: skip
    """Turns the headers that `decode_records` found in rows `[row, last)` into Arrow's list of structs.

    It goes on at header `n` with `key_size` and `value_size` bytes filled. Returns (status, row, headers, key bytes, value
    bytes, null values).
    """
    nulls = _0
    while row < last:
        end = headers_end[row]
        count, p = _varint(data, headers_at[row], end)
        for _ in range(count >> _1):
            size, p = _varint(data, p, end)
            if p > end:
                return BAD_VARINT, row, _0, _0, _0, _0
            if size & _1 or (size >> _1) > end - p:
                return FIELD_PAST_RECORD, row, _0, _0, _0, _0
            size >>= _1
            copy(keys, key_size, data, p, size)
            key_size += size
            p += size
            key_ends[n + _1] = key_size

            size, p = _varint(data, p, end)
            if p > end:
                return BAD_VARINT, row, _0, _0, _0, _0
            if size & _1:
                nulls += _1
                value_valid[n] = 0
            else:
                size >>= _1
                if size > end - p:
                    return FIELD_PAST_RECORD, row, _0, _0, _0, _0
                copy(values, value_size, data, p, size)
                value_size += size
                p += size
            value_ends[n + _1] = value_size
            n += _1
        if p != end:
            return BYTES_LEFT_OVER, row, _0, _0, _0, _0
        row += _1
        list_ends[row] = n
    return DONE, row, n, key_size, value_size, nulls
