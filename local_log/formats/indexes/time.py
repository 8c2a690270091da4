"""The time index (`.timeindex`): 12-byte entries, int64 timestamp in ms, int32 offset relative to the segment's base.

An entry (T, O) says that no record before offset O is later than T. Timestamps and offsets increase; a roll may write the last
entry again with the same offset. Preallocated zeros may follow. Source: Kafka's TimeIndex.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from local_log.errors import Corrupt
from local_log.formats.indexes.offset import read_entries
from local_log.formats.primitives import Buffer

ENTRY = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])


@dataclass(frozen=True, slots=True)
class TimeIndex:
    """Timestamps (ms) and absolute offsets of the entries, sorted."""

    timestamps: Any
    offsets: Any

    def lookup(self, timestamp_ms: int, base_offset: int) -> int:
        """The offset from which to scan for a record at or after `timestamp_ms`; all records before it are earlier."""
        at = int(np.searchsorted(self.timestamps, timestamp_ms, side="left")) - 1
        return int(self.offsets[at]) if at >= 0 else base_offset


def read_time_index(buffer: Buffer, base_offset: int) -> TimeIndex:
    """The entries of an index file. Raises Corrupt for an invalid size or order."""
    entries = read_entries(buffer, ENTRY, "time index")
    timestamps, offsets = entries["timestamp"].astype(np.int64), entries["offset"].astype(np.int64)
    wrong = ((timestamps[1:] <= timestamps[:-1]) | (offsets[1:] < offsets[:-1])).nonzero()[0]
    if len(wrong):
        at = int(wrong[0]) + 1
        raise Corrupt(f"time index entry {at} ({timestamps[at]}, {offsets[at]}) does not grow", position=at * ENTRY.itemsize)
    return TimeIndex(timestamps, offsets + base_offset)
