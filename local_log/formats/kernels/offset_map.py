"""The compiled loops of the cleaner's offset map: a hash table from a key's MD5 to an offset. See `kernels.scan` for the rules.

An entry is three words: two of the digest and the offset; an entry without a digest is free. The first probes are as random as
the digest, then they go on one by one over the whole table. Source: Kafka's SkimpyOffsetMap.
"""

from typing import Any, Final

import numpy as np

from local_log.compiled import njit, types
from local_log.formats.kernels.encode import is_null
from local_log.formats.kernels.md5 import digests

_0, _1, _2, _3, _PROBES = (np.uint64(n) for n in (0, 1, 2, 3, 12))
_NEVER: Final = np.int64(0x7FFFFFFFFFFFFFFF)

_bytes = types.Array(types.uint8, 1, "C", readonly=True)
_in_i32, _in_i64 = types.Array(types.int32, 1, "C", readonly=True), types.Array(types.int64, 1, "C", readonly=True)
_i64, _u64 = types.Array(types.int64, 1, "C"), types.Array(types.uint64, 1, "C")
_u32, _u32x2 = types.Array(types.uint32, 1, "C"), types.Array(types.uint32, 2, "C")


@njit(boundscheck=False)
def _find(table: Any, first: Any, second: Any) -> Any:
    """The position of the entry of a digest, or of the free one that it may have; another entry's if the table is full."""
    slots = np.uint64(table.size) // _3
    slot = first % slots
    at = slot * _3
    for probe in range(_1, slots + _PROBES):
        if table[at] == first and table[at + _1] == second:
            return at
        if table[at] == _0 and table[at + _1] == _0:
            return at
        slot = (first + probe * second) % slots if probe < _PROBES else (slot + _1) % slots
        at = slot * _3
    return at


@njit(
    types.UniTuple(types.int64, 2)(
        _in_i32, _bytes, _bytes, types.uint64, _in_i64, types.int64, _u64, types.int64, types.int64,
        _u64, _u32, _u32x2, _u32x2, _u64,
    ),
    cache=True,
    nogil=True,
    boundscheck=False,
)  # fmt: skip
def put_keys(
    ends: Any, keys: Any, bits: Any, bit: Any, offsets: Any, start: Any, table: Any, size: Any, size_max: Any,
    found: Any, single: Any, block: Any, state: Any, rows: Any,
) -> Any:  # fmt: skip
    """Puts each row's offset for its key, unless it is below `start` or the key is null; a table that has `size_max` is full.

    Columns are Arrow's buffers, as in `encode.encode_records`.
    What follows `size_max` is `md5.room`. Returns (rows done, entries in the table).
    """
    digests(ends, keys, bits, bit, found, single, block, state, rows)
    for row in range(offsets.size):
        r = np.uint64(row)
        if offsets[r] < start or is_null(bits, bit + r):
            continue
        if size >= size_max:
            return row, size
        first, second = found[r + r], found[r + r + _1]
        at = _find(table, first, second)
        if table[at] == _0 and table[at + _1] == _0:
            table[at] = first
            table[at + _1] = second
            size += 1
        table[at + _2] = np.uint64(offsets[r])
    return offsets.size, size


@njit(
    types.void(_in_i32, _bytes, _bytes, types.uint64, _u64, _i64, _u64, _u32, _u32x2, _u32x2, _u64),
    cache=True,
    nogil=True,
    boundscheck=False,
)
def latest_offsets(
    ends: Any, keys: Any, bits: Any, bit: Any, table: Any, out: Any, found: Any, single: Any, block: Any, state: Any, rows: Any
) -> None:
    """Writes the offset in the table for each row's key: -1 without an entry; for a null key 2^63-1, above any offset.

    What follows `out` is `md5.room`.
    """
    digests(ends, keys, bits, bit, found, single, block, state, rows)
    for row in range(out.size):
        r = np.uint64(row)
        if is_null(bits, bit + r):
            out[r] = _NEVER
            continue
        first, second = found[r + r], found[r + r + _1]
        at = _find(table, first, second)
        is_there = table[at] == first and table[at + _1] == second
        out[r] = np.int64(table[at + _2]) if is_there else np.int64(-1)
