"""The compiled loop that encodes columns as messages of magic 0 or 1. `header_layout` has their fields; `scan` has the rules."""

from typing import Any

import numpy as np

from local_log.compiled import njit, types
from local_log.formats.kernels.constants import BAD_TIMESTAMP, DONE, OFFSET_NOT_GROWN
from local_log.formats.kernels.encode import is_null
from local_log.formats.kernels.scan import copy

_0, _1, _2, _3, _4, _8, _16, _24 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 8, 16, 24))
_BYTE, _ALL = np.uint64(0xFF), np.uint64(0xFFFFFFFF)
_CRC_AT, _MAGIC_AT, _ATTRIBUTES_AT, _TIMESTAMP_AT = _4, _8, np.uint64(9), np.uint64(10)  # after the size
_NO_TIMESTAMP = np.int64(-1)

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_u8 = types.Array(types.uint8, 1, "C")
_in_i32, _in_i64 = (types.Array(t, 1, "C", readonly=True) for t in (types.int32, types.int64))


def _crc_tables() -> Any:
    """For each of 8 bytes in a row, the CRC-32 of its 256 values with as many zero bytes after it: "slicing by 8"."""
    tables = np.zeros((8, 256), np.uint64)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xEDB88320 if crc & 1 else 0)
        tables[0, byte] = crc
    for n in range(1, 8):
        tables[n] = tables[n - 1] >> _8 ^ tables[0][tables[n - 1] & _BYTE]
    return tables.ravel().astype(np.uint32)


_CRC = _crc_tables()
_T1, _T2, _T3, _T4, _T5, _T6, _T7 = (np.uint64(256 * n) for n in range(1, 8))


@njit(inline="always", boundscheck=False)
def _little32(data: Any, at: Any) -> Any:
    low = np.uint64(data[at]) | (np.uint64(data[at + _1]) << _8)
    return low | (np.uint64(data[at + _2]) << _16) | (np.uint64(data[at + _3]) << _24)


@njit(boundscheck=False)
def _crc32(data: Any, at: Any, end: Any) -> Any:
    """The CRC-32 of `data[at:end]`: a call of zlib for each message would take longer than all else."""
    crc = _ALL
    while end - at >= _8:
        low = crc ^ _little32(data, at)
        high = _little32(data, at + _4)
        crc = (
            np.uint64(_CRC[_T7 + (low & _BYTE)]) ^ np.uint64(_CRC[_T6 + (low >> _8 & _BYTE)])
            ^ np.uint64(_CRC[_T5 + (low >> _16 & _BYTE)]) ^ np.uint64(_CRC[_T4 + (low >> _24)])
            ^ np.uint64(_CRC[_T3 + (high & _BYTE)]) ^ np.uint64(_CRC[_T2 + (high >> _8 & _BYTE)])
            ^ np.uint64(_CRC[_T1 + (high >> _16 & _BYTE)]) ^ np.uint64(_CRC[high >> _24])
        )  # fmt: skip
        at += _8
    while at < end:
        crc = np.uint64(_CRC[(crc ^ np.uint64(data[at])) & _BYTE]) ^ (crc >> _8)
        at += _1
    return crc ^ _ALL


@njit(inline="always", boundscheck=False)
def _put32(out: Any, at: Any, value: Any) -> Any:
    out[at] = value >> _24 & _BYTE
    out[at + _1] = value >> _16 & _BYTE
    out[at + _2] = value >> _8 & _BYTE
    out[at + _3] = value & _BYTE
    return at + _4


@njit(inline="always", boundscheck=False)
def _put64(out: Any, at: Any, value: Any) -> Any:
    at = _put32(out, at, value >> np.uint64(32))
    return _put32(out, at, value & _ALL)


@njit(
    types.UniTuple(types.int64, 4)(
        types.uint64, types.uint64, types.int64, _in_i64, _in_i64,  # form, offsets and timestamps
        _in_i32, _bytes, _bytes, types.uint64, _in_i32, _bytes, _bytes, types.uint64,  # keys and values
        _u8,  # out
    ),
    cache=True,
    nogil=True,
    boundscheck=False,
)  # fmt: skip
def encode_messages(
    magic: Any, attributes: Any, base_offset: Any, offsets: Any, timestamps: Any,
    key_ends: Any, keys: Any, key_bits: Any, key_bit: Any, value_ends: Any, values: Any, value_bits: Any, value_bit: Any,
    out: Any,
) -> Any:  # fmt: skip
    """Writes a message for each row to `out`, where there must be enough space; its offset is that of the row less `base_offset`.

    Columns are Arrow's buffers, see `encode_records`. Returns (status, row, position after the last message, greatest timestamp
    or -1).
    """
    at = _0
    latest = _NO_TIMESTAMP
    for row in range(offsets.size):
        offset = offsets[row]
        timestamp = timestamps[row]
        if row > 0 and offset <= offsets[row - 1]:
            return OFFSET_NOT_GROWN, row, np.int64(at), latest
        if timestamp < _NO_TIMESTAMP:
            return BAD_TIMESTAMP, row, np.int64(at), latest
        latest = max(latest, timestamp)

        r = np.uint64(row)
        at = _put64(out, at, np.uint64(offset - base_offset))
        start = at
        at += _4  # the size, when it is known
        out[start + _MAGIC_AT] = magic
        out[start + _ATTRIBUTES_AT] = attributes
        at = start + _TIMESTAMP_AT
        if magic > _0:
            at = _put64(out, at, np.uint64(timestamp))

        first = np.uint64(key_ends[r])
        size = np.uint64(key_ends[r + _1]) - first
        if is_null(key_bits, key_bit + r):
            at = _put32(out, at, _ALL)
        else:
            at = _put32(out, at, size)
            copy(out, at, keys, first, size)
            at += size
        first = np.uint64(value_ends[r])
        size = np.uint64(value_ends[r + _1]) - first
        if is_null(value_bits, value_bit + r):
            at = _put32(out, at, _ALL)
        else:
            at = _put32(out, at, size)
            copy(out, at, values, first, size)
            at += size
        _put32(out, start, at - start - _4)
        _put32(out, start + _CRC_AT, _crc32(out, start + _MAGIC_AT, at))
    return DONE, offsets.size, np.int64(at), latest
