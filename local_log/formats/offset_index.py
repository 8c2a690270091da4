"""The offset index (`.index`): 8-byte entries, int32 offset relative to the segment's base, int32 position in its log.

Both columns grow. A lookup gives the greatest entry at or below the offset. The file of an active segment is preallocated:
what follows the last entry is zeros. Source: Kafka's OffsetIndex.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer

ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])


@dataclass(frozen=True, slots=True)
class OffsetIndex:
    """Absolute offsets (int64) and positions (bytes) of the entries, in order."""

    offsets: Any
    positions: Any

    def lookup(self, offset: int) -> int:
        """Position from which to look for `offset`: that of the greatest entry at or below it, or 0 before the first."""
        at = int(np.searchsorted(self.offsets, offset, side="right")) - 1
        return int(self.positions[at]) if at >= 0 else 0

    def end_position(self, offset: int, size: int) -> int:
        """A position by which every batch that starts below `offset` has ended, at most the log's `size`.

        An entry's batch may start below the entry's offset: the one after it is the first to start where that has ended.
        """
        at = int(np.searchsorted(self.offsets, offset, side="left")) + 1
        return int(self.positions[at]) if at < len(self.positions) else size


def read_offset_index(buffer: Buffer, base_offset: int) -> OffsetIndex:
    """The entries of a whole index file. Raises Corrupt for a size or an order that no index has."""
    if len(buffer) % ENTRY.itemsize:
        raise Corrupt(
            f"{len(buffer)} bytes are not a whole number of {ENTRY.itemsize}-byte entries: the offset index is truncated",
            position=len(buffer) - len(buffer) % ENTRY.itemsize,
        )
    entries = np.frombuffer(buffer, ENTRY)
    entries = entries[: used_entries(entries)]
    offsets, positions = entries["offset"].astype(np.int64), entries["position"].astype(np.int64)
    wrong = np.flatnonzero((np.diff(offsets, prepend=-1) <= 0) | (np.diff(positions, prepend=-1) <= 0))
    if len(wrong):
        at = int(wrong[0])
        raise Corrupt(f"offset index entry {at} ({offsets[at]}, {positions[at]}) does not grow", position=at * ENTRY.itemsize)
    return OffsetIndex(offsets + base_offset, positions)


def used_entries(entries: Any) -> int:
    """How many entries of an index come before its preallocated tail of zeros; the first one may be zeros itself."""
    used = np.flatnonzero(entries.view(np.uint8).reshape(-1, entries.itemsize).any(axis=1))
    return int(used[-1]) + 1 if len(used) else 0
