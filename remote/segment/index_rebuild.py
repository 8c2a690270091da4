"""The offset index and the time index of a segment made anew from its batches, to the bytes that a broker's recovery writes.

(LogSegment.recover)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from local_log.formats.indexes import offset as offset_index
from local_log.formats.indexes import time as time_index
from local_log.formats.record import NO_TIMESTAMP

INDEX_INTERVAL_BYTES = 4096
"""Kafka's default of index.interval.bytes; an index with another interval is as right, only larger or smaller."""


@dataclass(frozen=True, slots=True)
class RebuiltIndexes:
    """The bytes of both index files."""

    offset_index: bytes
    time_index: bytes


def rebuilt_indexes(base_offset: int, positions: Any, last_offsets: Any, max_timestamps: Any) -> RebuiltIndexes:
    """The indexes of a segment of these batches: arrays of their positions in the log file, last offsets and latest times."""
    if not len(positions):
        return RebuiltIndexes(b"", b"")
    rows = np.empty(len(positions), np.uint64)
    from local_log.formats.kernels import scan as kernels

    n = kernels.index_rows(positions.astype(np.uint64), 0, 0, INDEX_INTERVAL_BYTES, rows)
    at = rows[:n].astype(np.int64)
    offsets = np.empty(n, offset_index.ENTRY)
    offsets["offset"], offsets["position"] = last_offsets[at] - base_offset, positions[at]

    latest = np.maximum.accumulate(np.maximum(max_timestamps, NO_TIMESTAMP))
    is_later = max_timestamps > np.concatenate([[NO_TIMESTAMP], latest[:-1]])
    of_latest = np.maximum.accumulate(np.where(is_later, np.arange(len(positions)), -1))
    offset_of_latest = np.where(of_latest >= 0, last_offsets[np.maximum(of_latest, 0)], base_offset)
    at = np.append(at, len(positions) - 1)  # a roll writes the latest time of all once more
    grows = np.diff(latest[at], prepend=NO_TIMESTAMP) > 0
    times = np.empty(int(grows.sum()), time_index.ENTRY)
    times["timestamp"], times["offset"] = latest[at][grows], (offset_of_latest[at] - base_offset)[grows]
    return RebuiltIndexes(offsets.tobytes(), times.tobytes())
