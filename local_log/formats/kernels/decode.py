"""The compiled loops that decode the records of batches to columns. See `kernels.scan` for the rules of such code."""

from typing import Any

import numpy as np

from local_log.compiled import intrinsic, njit, types
from local_log.formats.kernels.constants import (
    BAD_HEADER_COUNT,
    BAD_VARINT,
    BLOCK_BYTES,
    BYTES_LEFT_OVER,
    DONE,
    FIELD_PAST_RECORD,
    RECORD_PAST_BATCH,
    STEP_BYTES,
)
from local_log.formats.kernels.scan import copy, long_varint

_0, _1, _2, _7, _63, _127, _128 = (np.uint64(n) for n in (0, 1, 2, 7, 63, 127, 128))
_STEP, _CACHE_LINE, _BLOCK = np.uint64(STEP_BYTES), np.uint64(64), np.uint64(BLOCK_BYTES)
_AHEAD = np.uint64(1 << 14)  # without this prefetch a scan that skips from record to record waits for memory at each one

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_i32, _i64, _u64, _u8 = (types.Array(t, 1, "C") for t in (types.int32, types.int64, types.uint64, types.uint8))
_in_i64, _in_u64 = (types.Array(t, 1, "C", readonly=True) for t in (types.int64, types.uint64))


def _copy_block_signature(_context: Any, to: Any, _at: Any, of: Any, _pos: Any) -> Any:
    """Copies BLOCK_BYTES of `of[pos:]` to `to[at:]`: a few such copies take less time than a call of memcpy."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

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
    """Prefetches the cache line of `of[pos]`, which may be past the array's end, while the decoder computes."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        from llvmlite import ir

        array = context.make_array(signature.args[0])(context, builder, args[0])
        int32, address = ir.IntType(32), builder.gep(array.data, [args[1]])
        kind = ir.FunctionType(ir.VoidType(), [address.type, int32, int32, int32])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [address.type], kind)
        to_read, in_second_level, is_data = int32(0), int32(2), int32(1)
        builder.call(prefetch, [address, to_read, in_second_level, is_data])
        return context.get_dummy_value()

    return types.void(of, types.uint64), generate


_prefetch: Any = intrinsic(_prefetch_signature)


@njit(inline="always", boundscheck=False)
def _varint(data: Any, p: Any, end: Any) -> Any:
    """The raw (still zigzag) value and the position after it, or a position past `end` if the varint is cut or too long."""
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
    """Decodes the records in `data[starts[b]:ends[b]]` of every batch b of `[first, last)` to columns.

    It continues at `row` with `key_size` and `value_size` bytes filled, so that a group can be decoded in steps.
    `append_timestamps[b]` is the timestamp of every record of b, or -1 if each has its own. `key_ends` and `value_ends`
    are Arrow's offsets (one longer than the rows, [0] already 0); `headers_at` and `headers_end` delimit each record's headers,
    including their count. Outputs that are not wanted may be empty.
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
            # A varint may be read past its record, but never past the data; this is checked before its value is used.
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

            # Inlined for key and value: a function would count references to its arrays for every record (5 times slower).
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
    """Decodes the headers that `decode_records` found in rows `[row, last)` to Arrow's list of structs.

    It continues at header `n` with `key_size` and `value_size` bytes filled. Returns (status, row, headers, key bytes, value
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


@njit(types.void(_bytes, _in_u64, _in_u64, _in_u64, _in_i64, types.int64, _i64), cache=True, nogil=True, boundscheck=False)
def least_timestamps(data: Any, starts: Any, ends: Any, counts: Any, base_timestamps: Any, unknown: Any, least: Any) -> None:
    """The least timestamp of the records in `data[starts[b]:ends[b]]` of every batch b, `unknown` if their form is invalid.

    Only lengths and timestamps are read.
    """
    data_end = np.uint64(data.size)
    for b in range(starts.size):
        p = starts[b]
        end = ends[b]
        lowest = np.int64(0x7FFFFFFFFFFFFFFF)
        sound = counts[b] > _0
        fetched = p
        for _ in range(counts[b]):
            length, p = _varint(data, p, data_end)
            if p > end or length & _1 or (length >> _1) > end - p:
                sound = False
                break
            record_end = p + (length >> _1)
            while fetched < record_end:
                _prefetch(data, fetched + _AHEAD)
                fetched += _CACHE_LINE
            delta, p = _varint(data, p + _1, data_end)
            if p > record_end:
                sound = False
                break
            lowest = min(lowest, _signed(delta))
            p = record_end
        least[b] = base_timestamps[b] + lowest if sound else unknown
