"""The compiled loop that encodes columns as the records of a batch of magic 2; see `kernels.scan` for the rules of such code.

A record: varint length of the rest; int8 attributes, 0; varlong timestamp delta; varint offset delta; varint length of the
key, -1 for null, and the key; the value likewise; varint number of headers, each with its name and its value likewise.
All varints are zigzag. Source: KIP-98, Kafka's DefaultRecord.
"""

from typing import Any

import numpy as np

from local_log.compiled import njit, types
from local_log.formats.kernels.constants import BAD_TIMESTAMP, DONE, OFFSET_NOT_GROWN, OFFSET_TOO_FAR
from local_log.formats.kernels.scan import copy

_0, _1, _3, _7, _63, _127, _128 = (np.uint64(n) for n in (0, 1, 3, 7, 63, 127, 128))
_NULL = np.uint64(1)  # -1 in zigzag
_OFFSET_DELTA_MAX = np.int64((1 << 31) - 1)
_NO_TIMESTAMP = np.int64(-1)

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_u8 = types.Array(types.uint8, 1, "C")
_in_i32, _in_i64 = (types.Array(t, 1, "C", readonly=True) for t in (types.int32, types.int64))


@njit(inline="always", boundscheck=False)
def _zigzag(value: Any) -> Any:
    return np.uint64((value << np.int64(1)) ^ (value >> np.int64(63)))


@njit(inline="always", boundscheck=False)
def _size(value: Any) -> Any:
    """Bytes of the varint of `value`, which is already zigzag."""
    size = _1
    while value >= _128:
        value >>= _7
        size += _1
    return size


@njit(inline="always", boundscheck=False)
def _put(out: Any, at: Any, value: Any) -> Any:
    while value >= _128:
        out[at] = (value & _127) | _128
        value >>= _7
        at += _1
    out[at] = value
    return at + _1


@njit(inline="always", boundscheck=False)
def is_null(bits: Any, at: Any) -> Any:
    """Whether the bit of Arrow's validity bitmap is 0; an empty bitmap means that there are no nulls."""
    return bits.size > 0 and (np.uint64(bits[at >> _3]) >> (at & _7)) & _1 == _0


@njit(
    types.UniTuple(types.int64, 4)(
        types.int64, types.int64, _in_i64, _in_i64,  # bases, offsets and timestamps
        _in_i32, _bytes, _bytes, types.uint64, _in_i32, _bytes, _bytes, types.uint64,  # keys and values
        _in_i32, _in_i32, _bytes, _in_i32, _bytes, _bytes, types.uint64,  # headers
        _u8, types.uint64,  # out
    ),
    cache=True,
    nogil=True,
    boundscheck=False,
)  # fmt: skip
def encode_records(
    base_offset: Any, base_timestamp: Any, offsets: Any, timestamps: Any,
    key_ends: Any, keys: Any, key_bits: Any, key_bit: Any, value_ends: Any, values: Any, value_bits: Any, value_bit: Any,
    list_ends: Any, name_ends: Any, names: Any, data_ends: Any, data: Any, data_bits: Any, data_bit: Any,
    out: Any, at: Any,
) -> Any:  # fmt: skip
    """Writes a record for each row to `out` from `at` on, where there must be enough space.

    Columns are Arrow's buffers: ends (one longer than the rows), bytes, validity bits and the bit index of the first row.
    `list_ends` are the rows' ends in the names and data of headers. Returns (status, row, position after the last record,
    greatest timestamp or -1).
    """
    latest = _NO_TIMESTAMP
    before = np.int64(0)
    for row in range(offsets.size):
        offset = offsets[row]
        timestamp = timestamps[row]
        if row > 0 and offset <= before:
            return OFFSET_NOT_GROWN, row, np.int64(at), latest
        if offset < base_offset or offset - base_offset > _OFFSET_DELTA_MAX:
            return OFFSET_TOO_FAR, row, np.int64(at), latest
        if timestamp < _NO_TIMESTAMP:
            return BAD_TIMESTAMP, row, np.int64(at), latest
        before = offset
        latest = max(latest, timestamp)

        r = np.uint64(row)
        timestamp_delta = _zigzag(timestamp - base_timestamp)
        offset_delta = _zigzag(offset - base_offset)
        key_start = np.uint64(key_ends[r])
        key_size = np.uint64(key_ends[r + _1]) - key_start
        key_null = is_null(key_bits, key_bit + r)
        value_start = np.uint64(value_ends[r])
        value_size = np.uint64(value_ends[r + _1]) - value_start
        value_null = is_null(value_bits, value_bit + r)
        first = np.uint64(list_ends[r])
        last = np.uint64(list_ends[r + _1])

        size = _1 + _size(timestamp_delta) + _size(offset_delta) + _size((last - first) << _1)
        size += _1 if key_null else _size(key_size << _1) + key_size
        size += _1 if value_null else _size(value_size << _1) + value_size
        for h in range(first, last):
            name_size = np.uint64(name_ends[h + _1]) - np.uint64(name_ends[h])
            size += _size(name_size << _1) + name_size
            data_size = np.uint64(data_ends[h + _1]) - np.uint64(data_ends[h])
            size += _1 if is_null(data_bits, data_bit + h) else _size(data_size << _1) + data_size

        at = _put(out, at, size << _1)
        out[at] = 0
        at = _put(out, at + _1, timestamp_delta)
        at = _put(out, at, offset_delta)
        if key_null:
            at = _put(out, at, _NULL)
        else:
            at = _put(out, at, key_size << _1)
            copy(out, at, keys, key_start, key_size)
            at += key_size
        if value_null:
            at = _put(out, at, _NULL)
        else:
            at = _put(out, at, value_size << _1)
            copy(out, at, values, value_start, value_size)
            at += value_size
        at = _put(out, at, (last - first) << _1)
        for h in range(first, last):
            start = np.uint64(name_ends[h])
            size = np.uint64(name_ends[h + _1]) - start
            at = _put(out, at, size << _1)
            copy(out, at, names, start, size)
            at += size
            if is_null(data_bits, data_bit + h):
                at = _put(out, at, _NULL)
            else:
                start = np.uint64(data_ends[h])
                size = np.uint64(data_ends[h + _1]) - start
                at = _put(out, at, size << _1)
                copy(out, at, data, start, size)
                at += size
    return DONE, offsets.size, np.int64(at), latest


_out_i64 = types.Array(types.int64, 1, "C")


@njit(
    types.UniTuple(types.int64, 2)(
        _in_i64, _in_i64, _in_i64, types.uint64, _in_i64, _in_i64,  # batches, room for a header, offsets and timestamps
        _in_i32, _bytes, _bytes, types.uint64, _in_i32, _bytes, _bytes, types.uint64,  # keys and values
        _in_i32, _in_i32, _bytes, _in_i32, _bytes, _bytes, types.uint64,  # headers
        _u8, _out_i64, _out_i64,  # out
    ),
    cache=True,
    nogil=True,
    boundscheck=False,
)  # fmt: skip
def encode_batches(
    base_offsets: Any, base_timestamps: Any, counts: Any, header_bytes: Any, offsets: Any, timestamps: Any,
    key_ends: Any, keys: Any, key_bits: Any, key_bit: Any, value_ends: Any, values: Any, value_bits: Any, value_bit: Any,
    list_ends: Any, name_ends: Any, names: Any, data_ends: Any, data: Any, data_bits: Any, data_bit: Any,
    out: Any, ends: Any, latest: Any,
) -> Any:  # fmt: skip
    """As `encode_records`, for many batches of `counts` rows each; before each one's records it leaves `header_bytes` free.

    Writes where each batch ends in `out`, and its greatest timestamp. Returns (status, row).
    """
    row = _0
    at = _0
    for b in range(counts.size):
        end = row + np.uint64(counts[b])
        status, bad, done, greatest = encode_records(
            base_offsets[b], base_timestamps[b], offsets[row:end], timestamps[row:end],
            key_ends[row : end + _1], keys, key_bits, key_bit + row,
            value_ends[row : end + _1], values, value_bits, value_bit + row,
            list_ends[row : end + _1], name_ends, names, data_ends, data, data_bits, data_bit,
            out, at + header_bytes,
        )  # fmt: skip
        if status != DONE:
            return status, np.int64(row) + bad
        ends[b] = done
        latest[b] = greatest
        at = np.uint64(done)
        row = end
    return DONE, np.int64(row)


@njit(types.void(_bytes, _bytes, types.boolean[::1], _in_i64, _in_i64, _u8), cache=True, nogil=True, boundscheck=False)
def gather(first: Any, second: Any, are_of_second: Any, starts: Any, ends: Any, out: Any) -> None:
    """Copies the ranges `[start, end)` of one or the other buffer, one after the other, to `out`."""
    at = _0
    for i in range(starts.size):
        start = np.uint64(starts[i])
        size = np.uint64(ends[i]) - start
        if are_of_second[i]:
            copy(out, at, second, start, size)
        else:
            copy(out, at, first, start, size)
        at += size
