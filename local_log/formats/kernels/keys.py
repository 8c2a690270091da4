"""The compiled loop that computes the partitions of records' keys; see `kernels.scan` for the rules of such code.

Kafka's producers use murmur2 of the key without its sign bit, modulo the number of partitions. Source: Kafka's Utils.murmur2,
BuiltInPartitioner.partitionForKey.
"""

from typing import Any

import numpy as np

from local_log.compiled import njit, types

_0, _1, _2, _3, _4, _7 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 7))
_8, _13, _15, _16, _24 = (np.uint64(n) for n in (8, 13, 15, 16, 24))
_SEED, _M, _MASK, _NO_SIGN = (np.uint64(n) for n in (0x9747B28C, 0x5BD1E995, 0xFFFFFFFF, 0x7FFFFFFF))

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_in_i32, _i32 = types.Array(types.int32, 1, "C", readonly=True), types.Array(types.int32, 1, "C")


@njit(inline="always", boundscheck=False)
def _murmur2(data: Any, at: Any, size: Any) -> Any:
    h = _SEED ^ size
    end = at + (size & ~_3)
    while at < end:
        k = np.uint64(data[at]) | (np.uint64(data[at + _1]) << _8)
        k |= (np.uint64(data[at + _2]) << _16) | (np.uint64(data[at + _3]) << _24)
        k = (k * _M) & _MASK
        k ^= k >> _24
        k = (k * _M) & _MASK
        h = ((h * _M) & _MASK) ^ k
        at += _4
    left = size & _3
    if left == _3:
        h ^= np.uint64(data[at + _2]) << _16
    if left >= _2:
        h ^= np.uint64(data[at + _1]) << _8
    if left >= _1:
        h ^= np.uint64(data[at])
        h = (h * _M) & _MASK
    h ^= h >> _13
    h = (h * _M) & _MASK
    return h ^ (h >> _15)


@njit(
    types.int64(_in_i32, _bytes, _bytes, types.uint64, types.uint64, _i32), cache=True, nogil=True, boundscheck=False
)  # fmt: skip
def partitions_of_keys(ends: Any, keys: Any, bits: Any, bit: Any, count: Any, out: Any) -> Any:
    """Writes the partition of each row's key, of `count`, to `out`, -1 for a null key; returns the number of nulls.

    Columns are Arrow's buffers, as in `encode.encode_records`.
    """
    nulls = 0
    for row in range(out.size):
        r = np.uint64(row)
        at = bit + r
        if bits.size > 0 and (np.uint64(bits[at >> _3]) >> (at & _7)) & _1 == _0:
            out[r] = -1
            nulls += 1
        else:
            start = np.uint64(ends[r])
            h = _murmur2(keys, start, np.uint64(ends[r + _1]) - start) & _NO_SIGN
            out[r] = np.int32(h % count)
    return nulls
