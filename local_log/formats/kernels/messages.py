"""The compiled loops over messages of magic 0 and 1. `header_layout` has the table of their fields; `scan` has the rules."""

from typing import Any

import numpy as np

from local_log.compiled import njit, types
from local_log.formats.header_layout import (
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MESSAGE_BYTES_MIN,
    MESSAGE_SIZE_MIN,
    MESSAGE_TIMESTAMP_AT,
)
from local_log.formats.kernels.constants import BAD_LENGTH, BAD_MAGIC, DONE, FIELD_PAST_RECORD, TORN
from local_log.formats.kernels.scan import copy, uint32

_0, _1, _2, _3, _4, _8, _16, _24 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 8, 16, 24))
_SIZE_AT, _MAGIC_AT, _TIMESTAMP_AT, _HEADER = (
    np.uint64(n) for n in (LENGTH_AT, MAGIC_AT, MESSAGE_TIMESTAMP_AT, MESSAGE_BYTES_MIN)
)
_OVERHEAD, _SIZE_MIN_V0, _SIZE_MIN_V1, _SIZE_END = (np.uint64(n) for n in (LOG_OVERHEAD, *MESSAGE_SIZE_MIN, 1 << 31))

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_u8, _u8x2, _i32, _i64, _u64 = (
    types.Array(t, n, "C") for t, n in ((types.uint8, 1), (types.uint8, 2), (types.int32, 1), (types.int64, 1), (types.uint64, 1))
)
_in_bool, _in_i64, _in_u64 = (types.Array(t, 1, "C", readonly=True) for t in (types.boolean, types.int64, types.uint64))


@njit(inline="always", boundscheck=False)
def _int64(data: Any, at: Any) -> Any:
    return np.int64((uint32(data, at) << np.uint64(32)) | uint32(data, at + _4))


@njit(
    types.UniTuple(types.uint64, 3)(_bytes, types.uint64, types.uint64, _u64, _u8x2),
    cache=True,
    nogil=True,
    boundscheck=False,
)
def walk_messages(data: Any, pos: Any, end: Any, positions: Any, headers: Any) -> Any:
    """Iterates over complete messages of magic 0 and 1 in `data[pos:end]`; copies position and header of as many as fit.

    Returns (status, messages, position after the last one). TORN: the next message is incomplete.
    """
    n = _0
    room = np.uint64(positions.size)
    while n < room and pos < end:
        left = end - pos
        if left < _OVERHEAD:
            return TORN, n, pos
        size = uint32(data, pos + _SIZE_AT)
        if size < _SIZE_MIN_V0 or size >= _SIZE_END:
            return BAD_LENGTH, n, pos
        if left > _MAGIC_AT:
            magic = data[pos + _MAGIC_AT]
            if magic > 1:
                return BAD_MAGIC, n, pos
            if magic == 1 and size < _SIZE_MIN_V1:
                return BAD_LENGTH, n, pos
        if left < _OVERHEAD + size:
            return TORN, n, pos
        positions[n] = pos
        for i in range(_HEADER):
            headers[n, i] = data[pos + i]
        n += _1
        pos += _OVERHEAD + size
    return DONE, n, pos


@njit(
    types.UniTuple(types.uint64, 6)(
        _bytes, _in_u64, _in_u64, _in_u64, _in_i64, _in_bool, _in_i64,  # data and batches
        types.boolean, types.boolean,  # wanted
        _i64, _i64, _i32, _u8, _u8, _i32, _u8, _u8, _u64, _u64,  # out
    ),
    cache=True,
    nogil=True,
    boundscheck=False,
)  # fmt: skip
def decode_messages(
    data: Any, starts: Any, ends: Any, counts: Any, base_offsets: Any, appended: Any, append_timestamps: Any,
    want_key: Any, want_value: Any,
    offsets: Any, timestamps: Any, key_ends: Any, keys: Any, key_valid: Any, value_ends: Any, values: Any,
    value_valid: Any, messages_at: Any, messages_end: Any,
) -> Any:  # fmt: skip
    """Decodes the `counts[b]` messages in `data[starts[b]:ends[b]]` of every batch b to columns, as `decode_records` does.

    The first message's offset is `base_offsets[b]`; the others keep their distances from it. If `appended[b]`, all have
    `append_timestamps[b]`. `messages_at` and `messages_end` delimit each message.
    Returns (status, failed batch, key bytes, value bytes, null keys, null values).
    """
    row = _0
    key_size = _0
    value_size = _0
    key_nulls = _0
    value_nulls = _0
    for b in range(np.uint64(starts.size)):
        p = starts[b]
        end = ends[b]
        base_offset = base_offsets[b]
        shift = np.int64(0)
        for i in range(counts[b]):
            if end - p < _HEADER:
                return TORN, b, _0, _0, _0, _0
            size = uint32(data, p + _SIZE_AT)
            if size < _SIZE_MIN_V0 or size > end - p - _OVERHEAD:
                return TORN, b, _0, _0, _0, _0
            message_end = p + _OVERHEAD + size
            offset = _int64(data, p)
            if i == _0:
                shift = base_offset - offset
            offsets[row] = offset + shift
            at = p + _TIMESTAMP_AT
            timestamp = np.int64(-1)
            if data[p + _MAGIC_AT] != 0:
                if size < _SIZE_MIN_V1:
                    return BAD_LENGTH, b, _0, _0, _0, _0
                timestamp = append_timestamps[b] if appended[b] else _int64(data, at)
                at += _8
            timestamps[row] = timestamp
            messages_at[row] = p
            messages_end[row] = message_end

            length = uint32(data, at)
            at += _4
            if length >= _SIZE_END:
                key_nulls += _1
                length = _0
                if want_key:
                    key_valid[row] = 0
            else:
                if length > message_end - at:
                    return FIELD_PAST_RECORD, b, _0, _0, _0, _0
                if want_key:
                    copy(keys, key_size, data, at, length)
                    key_size += length
            at += length
            if want_key:
                key_ends[row + _1] = key_size

            if message_end - at < _4:
                return FIELD_PAST_RECORD, b, _0, _0, _0, _0
            length = uint32(data, at)
            at += _4
            if length >= _SIZE_END:
                value_nulls += _1
                length = _0
                if want_value:
                    value_valid[row] = 0
            else:
                if length > message_end - at:
                    return FIELD_PAST_RECORD, b, _0, _0, _0, _0
                if want_value:
                    copy(values, value_size, data, at, length)
                    value_size += length
            if want_value:
                value_ends[row + _1] = value_size
            p = message_end
            row += _1
    return DONE, _0, key_size, value_size, key_nulls, value_nulls
