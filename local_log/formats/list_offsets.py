"""Looks up offsets by timestamp, with the special timestamps of Kafka's ListOffsets:

 -1  latest                 the end offset
 -2  earliest               the log start offset
 -3  max timestamp          the record with the greatest timestamp
 -4  earliest local         the first offset that is not only in the archive
 -5  latest tiered          the last offset that is in the archive
 -6  earliest pending       the first offset that is not in the archive
>=0  the first record at or after this timestamp in ms
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from local_log.formats.chunks import Chunk
from local_log.formats.record_batch.projection import Projection

if TYPE_CHECKING:
    import pyarrow as pa

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6

UNKNOWN_OFFSET: Final = -1

_TIMES_ONLY = Projection(key=False, value=False, headers=False)


@dataclass(frozen=True, slots=True)
class TimestampOffset:
    """An offset, its record's timestamp in ms (-1 for a special timestamp) and its leader epoch (-1 if unknown)."""

    offset: int
    timestamp: int
    leader_epoch: int


def offsets_before(starts: Sequence[tuple[int, int]], timestamp: int, count_max: int | None = None) -> list[int]:
    """The result of ListOffsets version 0: base offsets of the segments last modified at or before the time, newest first.

    `starts` are the segments' base offsets with when they were last modified in ms, and at the end the log end offset with the
    time now unless the last segment is empty. `LATEST` includes all of them, `EARLIEST` the first. At most `count_max` offsets.
    """
    if timestamp == LATEST:
        known = len(starts)
    elif timestamp == EARLIEST:
        known = 1
    else:
        known = 1 + max((i for i, (_, modified_ms) in enumerate(starts) if modified_ms <= timestamp), default=-1)
    first = 0 if count_max is None else max(0, known - count_max)
    return sorted((offset for offset, _ in starts[first:known]), reverse=True)


def first_at_or_after(chunks: Iterable[Chunk], timestamp_ms: int, start_offset: int, end_offset: int) -> TimestampOffset | None:
    """The first record in `[start_offset, end_offset)`, by offset, with a timestamp at or after `timestamp_ms`.

    Control records count, as in Kafka.
    """
    for chunk in chunks:
        late = (chunk.batches.max_timestamp >= timestamp_ms) & (chunk.batches.last_offset >= start_offset)
        for row in late.nonzero()[0].tolist():
            one = chunk.where(slice(row, row + 1))
            if one.batches.base_offset[0] >= end_offset:
                return None
            records = _times(one)
            offsets, times = records.column("offset").to_numpy(), records.column("timestamp").to_numpy()
            hits = ((times >= timestamp_ms) & (offsets >= start_offset) & (offsets < end_offset)).nonzero()[0]
            if len(hits):
                epoch = int(one.batches.header["partition_leader_epoch"][0])
                return TimestampOffset(int(offsets[hits[0]]), int(times[hits[0]]), epoch)
    return None


def latest_timestamp(chunks: Iterable[Chunk]) -> TimestampOffset | None:
    """The record with the greatest timestamp, the first if several have it; None for magic 0, which has no timestamps."""
    best: Chunk | None = None
    for chunk in chunks:
        if len(chunk.batches):
            at = int(chunk.batches.max_timestamp.argmax())
            if best is None or chunk.batches.max_timestamp[at] > best.batches.max_timestamp[0]:
                best = chunk.where(slice(at, at + 1))
    if best is None or best.batches.header["magic"][0] == 0:
        return None
    b = best.batches
    timestamp, epoch = int(b.max_timestamp[0]), int(b.header["partition_leader_epoch"][0])
    records = _times(best)
    hits = (records.column("timestamp").to_numpy() == timestamp).nonzero()[0]
    offset = int(records.column("offset").to_numpy()[hits[0]]) if len(hits) else int(b.last_offset[0])
    return TimestampOffset(offset, timestamp, epoch)


def _times(one_batch: Chunk) -> "pa.RecordBatch":
    return next(records for _, records in one_batch.records(_TIMES_ONLY))
