"""The compiled loop that validates the records of a batch before its append: their form, and the topic's rules.

See `kernels.scan` for the rules of such code and `encode` for a record's fields. Unlike `decode.decode_records`, which reads
what a broker has accepted, it limits varints to Kafka's number of bytes: 5 for a length, 10 for a timestamp.
"""

from typing import Any

import numpy as np

from local_log.compiled import njit, types
from local_log.formats.kernels.constants import (
    BAD_HEADER_COUNT,
    BAD_VARINT,
    BYTES_LEFT_OVER,
    DONE,
    FIELD_PAST_RECORD,
    NO_KEY,
    RECORD_PAST_BATCH,
    TIME_OF_APPEND,
    TIME_OUT_OF_RANGE,
)
from local_log.formats.kernels.scan import long_varint

_0, _1, _7, _14, _28, _63, _127, _128 = (np.uint64(n) for n in (0, 1, 7, 14, 28, 63, 127, 128))
_32_BITS = np.uint64((1 << 32) - 1)
_NO_TIMESTAMP = np.int64(-1)

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_u8, _i64 = (types.Array(t, 1, "C") for t in (types.uint8, types.int64))


@njit(inline="always", boundscheck=False)
def varlong(data: Any, p: Any, end: Any) -> Any:
    """The value and the position after it, or a position past `end` if the varint is incomplete or too long."""
    if p < end and data[p] < 128:
        value = np.uint64(data[p])
        p += _1
    else:
        value, p = long_varint(data, p, end, _63)
    return np.int64((value >> _1) ^ (_0 - (value & _1))), p


@njit(inline="always", boundscheck=False)
def varint(data: Any, p: Any, end: Any) -> Any:
    """As `varlong`, for at most 5 bytes, of which 32 bits are used."""
    if p < end and data[p] < 128:
        value = np.uint64(data[p])
        p += _1
    else:
        value, p = long_varint(data, p, end, _28)
        value &= _32_BITS
    return np.int64((value >> _1) ^ (_0 - (value & _1))), p


@njit(
    types.UniTuple(types.int64, 5)(
        _bytes, types.uint64, types.uint64, types.int64, types.int64, types.int64, types.int64,  # the batch
        types.boolean, types.int64, types.int64, types.int64, types.boolean, types.boolean,  # the topic
        _i64, _u8, _i64, _i64,  # out
    ),
    cache=True,
    nogil=True,
    boundscheck=False,
)  # fmt: skip
def check_records(
    data: Any, p: Any, end: Any, count: Any, base_offset: Any, base_timestamp: Any, append_timestamp: Any,
    has_append_time: Any, now: Any, before_max: Any, after_max: Any, check_times: Any, need_key: Any,
    error_rows: Any, error_kinds: Any, error_timestamps: Any, error_offsets: Any,
) -> Any:  # fmt: skip
    """Checks the `count` records in `data[p:end]`, which must fill it completely.

    With `has_append_time` each record's timestamp is `append_timestamp`. With `check_times` it must be in [now - before_max,
    now + after_max] or -1; otherwise, and for -1, only the batch must not have an append time. The first errors are returned, as
    many as fit. Returns (status, row, greatest timestamp or -1, whether offsets run 0 to count - 1, errors).
    """
    latest = _NO_TIMESTAMP
    in_order = True
    errors = np.int64(0)
    for row in range(count):
        size, p = varint(data, p, end)
        if p > end:
            return BAD_VARINT, row, latest, in_order, errors
        if size < 0 or np.uint64(size) > end - p:
            return RECORD_PAST_BATCH, row, latest, in_order, errors
        record_end = p + np.uint64(size)
        p += _1  # attributes, which are unused
        timestamp, p = varlong(data, p, record_end)
        if p > record_end:
            return BAD_VARINT, row, latest, in_order, errors
        offset, p = varint(data, p, record_end)
        if p > record_end:
            return BAD_VARINT, row, latest, in_order, errors
        key_size, p = varint(data, p, record_end)
        if p > record_end:
            return BAD_VARINT, row, latest, in_order, errors
        if key_size > 0:
            if np.uint64(key_size) > record_end - p:
                return FIELD_PAST_RECORD, row, latest, in_order, errors
            p += np.uint64(key_size)
        size, p = varint(data, p, record_end)
        if p > record_end:
            return BAD_VARINT, row, latest, in_order, errors
        if size > 0:
            if np.uint64(size) > record_end - p:
                return FIELD_PAST_RECORD, row, latest, in_order, errors
            p += np.uint64(size)
        headers, p = varint(data, p, record_end)
        if p > record_end:
            return BAD_VARINT, row, latest, in_order, errors
        if headers < 0 or np.uint64(headers) > record_end - p:
            return BAD_HEADER_COUNT, row, latest, in_order, errors
        for _ in range(headers):
            size, p = varint(data, p, record_end)
            if p > record_end:
                return BAD_VARINT, row, latest, in_order, errors
            if size < 0 or np.uint64(size) > record_end - p:
                return FIELD_PAST_RECORD, row, latest, in_order, errors
            p += np.uint64(size)
            size, p = varint(data, p, record_end)
            if p > record_end:
                return BAD_VARINT, row, latest, in_order, errors
            if size > 0:
                if np.uint64(size) > record_end - p:
                    return FIELD_PAST_RECORD, row, latest, in_order, errors
                p += np.uint64(size)
        if p != record_end:
            return BYTES_LEFT_OVER, row, latest, in_order, errors

        offset += base_offset
        in_order &= offset == row
        timestamp = append_timestamp if has_append_time else base_timestamp + timestamp
        latest = max(latest, timestamp)
        kind = 0
        if need_key and key_size < 0:
            kind = NO_KEY
        elif check_times and timestamp != _NO_TIMESTAMP:
            age = now - timestamp
            if age > before_max or -age > after_max:
                kind = TIME_OUT_OF_RANGE
        elif has_append_time:
            kind = TIME_OF_APPEND
        if kind:
            if errors < error_rows.size:
                error_rows[errors] = row
                error_kinds[errors] = kind
                error_timestamps[errors] = timestamp
                error_offsets[errors] = offset
            errors += 1
    if p != end:
        return BYTES_LEFT_OVER, count, latest, in_order, errors
    return DONE, count, latest, in_order, errors


@njit(
    types.boolean(
        _bytes, types.int64, types.int64, types.int64,  # the batch
        types.int64, types.int64, types.int64, types.boolean,  # the topic
        _i64, _u8,  # room for nothing
    ),
    cache=True,
    nogil=True,
    boundscheck=False,
)  # fmt: skip
def are_plain(
    data: Any, count: Any, base_timestamp: Any, max_timestamp: Any, now: Any, before_max: Any, after_max: Any, need_key: Any,
    none: Any, no_kinds: Any,
) -> Any:  # fmt: skip
    """Whether `check_records` finds `count` records without an error, with offsets from 0 on and this greatest timestamp.

    It writes nothing: `none` and `no_kinds` are empty.
    """
    status, _, latest, in_order, errors = check_records(
        data, _0, np.uint64(data.size), count, 0, base_timestamp, _NO_TIMESTAMP,
        False, now, before_max, after_max, True, need_key, none, no_kinds, none, none,
    )  # fmt: skip
    return status == DONE and in_order != 0 and errors == 0 and latest == max_timestamp
