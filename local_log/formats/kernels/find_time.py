"""The compiled loop that looks for the first record of a time. See `kernels.scan` for the rules of such code."""

from typing import Any, Final

import numpy as np

from local_log.compiled import njit, types
from local_log.formats.header_layout import (
    APPEND_TIME,
    ATTRIBUTES_AT,
    BATCH_HEADER_BYTES,
    CODEC,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
)
from local_log.formats.kernels.scan import uint32
from local_log.formats.kernels.validate import varint, varlong

FOUND: Final = 0
MORE: Final = 1
UNDECIDED: Final = 2

_0, _1, _4, _32 = (np.uint64(n) for n in (0, 1, 4, 32))
_LENGTH_AT, _MAGIC_AT, _OVERHEAD, _HEADER = (np.uint64(n) for n in (LENGTH_AT, MAGIC_AT, LOG_OVERHEAD, BATCH_HEADER_BYTES))
_EPOCH_AT, _ATTRIBUTES_AT, _DELTA_AT = (np.uint64(n) for n in (LOG_OVERHEAD, ATTRIBUTES_AT, LAST_OFFSET_DELTA_AT))
_BASE_TIMESTAMP_AT, _MAX_TIMESTAMP_AT = (np.uint64(LAST_OFFSET_DELTA_AT + n) for n in (4, 12))

_bytes = types.Array(types.uint8, 1, "C", readonly=True)


@njit(inline="always", boundscheck=False)
def _int32(data: Any, at: Any) -> Any:
    return np.int64(np.int32(uint32(data, at)))


@njit(inline="always", boundscheck=False)
def _int64(data: Any, at: Any) -> Any:
    return np.int64((uint32(data, at) << _32) | uint32(data, at + _4))


@njit(types.UniTuple(types.int64, 6)(_bytes, types.int64, types.int64), cache=True, nogil=True, boundscheck=False)
def first_at_or_after(data: Any, timestamp: Any, start_offset: Any) -> Any:
    """Looks in `data`, where a batch starts, for the first record at or after both `timestamp` and `start_offset`.

    Returns (status, position of a batch, position after it, offset, timestamp, leader epoch). FOUND: the batch has the record;
    its checksum is not checked. MORE: no record before the batch, which ends after the data; the position after it is 0 if even
    its header does. UNDECIDED: the batch is compressed, older than magic 2, or wrong in its form.
    """
    pos, end = _0, np.uint64(data.size)
    while pos + _HEADER <= end:
        length = uint32(data, pos + _LENGTH_AT)
        if data[pos + _MAGIC_AT] != MAGIC or length < _HEADER - _OVERHEAD or length >= np.uint64(1 << 31):
            return UNDECIDED, np.int64(pos), 0, 0, 0, 0
        batch_end = pos + _OVERHEAD + length
        base, latest = _int64(data, pos), _int64(data, pos + _MAX_TIMESTAMP_AT)
        if latest >= timestamp and base + _int32(data, pos + _DELTA_AT) >= start_offset:
            if batch_end > end:
                return MORE, np.int64(pos), np.int64(batch_end), 0, 0, 0
            attributes = data[pos + _ATTRIBUTES_AT + _1]
            if attributes & CODEC:
                return UNDECIDED, np.int64(pos), np.int64(batch_end), 0, 0, 0
            first = _int64(data, pos + _BASE_TIMESTAMP_AT)
            p = pos + _HEADER
            while p < batch_end:
                size, p = varint(data, p, batch_end)
                if p > batch_end or size < 0 or np.uint64(size) > batch_end - p:
                    return UNDECIDED, np.int64(pos), np.int64(batch_end), 0, 0, 0
                record_end = p + np.uint64(size)
                time, p = varlong(data, p + _1, record_end)
                delta, p = varint(data, p, record_end)
                if p > record_end:
                    return UNDECIDED, np.int64(pos), np.int64(batch_end), 0, 0, 0
                time = latest if attributes & APPEND_TIME else first + time
                if time >= timestamp and base + delta >= start_offset:
                    epoch = _int32(data, pos + _EPOCH_AT)
                    return FOUND, np.int64(pos), np.int64(batch_end), base + delta, time, epoch
                p = record_end
        pos = batch_end
    return MORE, np.int64(pos), 0, 0, 0, 0
