"""The offset index (`.index`): 8-byte entries, int32 offset relative to the segment's base, int32 position in its log.

Offsets and positions increase. A lookup gives the greatest entry at or below the offset. The file of an active segment is
preallocated: zeros follow the last entry. Source: Kafka's OffsetIndex.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer

ENTRY = np.dtype([("offset", ">i4"), ("position", ">i4")])


@dataclass(frozen=True, slots=True)
class OffsetIndex:
    """Absolute offsets (int64) and positions (bytes) of the entries, sorted."""

    offsets: Any
    positions: Any

    def lookup(self, offset: int) -> int:
        """The position from which to scan for `offset`: that of the greatest entry at or below it, 0 if there is none."""
        at = int(np.searchsorted(self.offsets, offset, side="right")) - 1
        return int(self.positions[at]) if at >= 0 else 0

    def end_position(self, offset: int, size: int) -> int:
        """A position after the end of every batch that starts below `offset`, at most the log's `size`.

        An entry's batch may start below the entry's offset, so the result is the position of the next entry.
        """
        at = int(np.searchsorted(self.offsets, offset, side="left")) + 1
        return int(self.positions[at]) if at < len(self.positions) else size


def read_offset_index(buffer: Buffer, base_offset: int) -> OffsetIndex:
    """The entries of an index file. Raises Corrupt for an invalid size or order."""
    entries = read_entries(buffer, ENTRY, "offset index")
    offsets, positions = entries["offset"].astype(np.int64), entries["position"].astype(np.int64)
    wrong = (offsets[1:] <= offsets[:-1]) | (positions[1:] <= positions[:-1])
    is_negative = len(offsets) > 0 and min(offsets[0], positions[0]) < 0
    if is_negative or wrong.any():
        at = 0 if is_negative else int(wrong.argmax()) + 1
        raise Corrupt(f"offset index entry {at} ({offsets[at]}, {positions[at]}) does not grow", position=at * ENTRY.itemsize)
    return OffsetIndex(offsets + base_offset, positions)


def read_entries(buffer: Buffer, entry: "np.dtype[np.void]", what: str) -> Any:
    """The entries of an index file without its preallocated zeros. Raises Corrupt unless the entries are complete.

    A file that is read while its log cuts the zeros off may end within one of them.
    """
    whole = len(buffer) - len(buffer) % entry.itemsize
    entries = np.frombuffer(buffer, entry, whole // entry.itemsize)
    is_used: Any = entries.view(np.uint8).reshape(-1, entry.itemsize).any(axis=1)
    used = is_used.nonzero()[0]
    end = int(used[-1]) + 1 if len(used) else 0
    if whole < len(buffer) and (end == len(entries) or any(memoryview(buffer)[whole:])):
        problem = f"{len(buffer)} bytes are not a whole number of {entry.itemsize}-byte entries: the {what} is truncated"
        raise Corrupt(problem, position=whole)
    return entries[:end]
