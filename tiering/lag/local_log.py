"""The segments of a local log that are not archived, from file metadata and a few reads of indexes.

No request to the store is made. For an idle partition only the size of the active segment is checked again.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from local_log.errors import Corrupt, LogError, NotFound
from local_log.formats.chunks import Chunk
from local_log.formats.filenames import LOG, TIME_INDEX
from local_log.formats.indexes.time import ENTRY
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment
from tiering.lag.archived import Archived

_ENTRY_BYTES: Final = ENTRY.itemsize


@dataclass(frozen=True, slots=True)
class SegmentSeen:
    """A segment's log file. `end_offset` is None for the active segment; `position` is the number of log bytes before it."""

    base_offset: int
    end_offset: int | None
    size: int
    modified_ms: int
    position: int


@dataclass(frozen=True, slots=True)
class OldestUnarchived:
    """The first offset that is not archived: its position in the segment, its timestamp, and the segment's largest timestamp.

    Without record timestamps both are the file's modification time.
    """

    offset: int
    position: int
    timestamp_ms: int
    largest_ms: int


@dataclass(frozen=True, slots=True)
class LogSeen:
    """A scan of a local log: the segments that are not completely archived, in order; the active segment is always the last.

    `bytes` is the size of the local log. `end_offset` is the high watermark of the last checkpoint (brokers write one
    every few seconds), or the log end offset without one. `archived` is the current state of the archive, `segments_of` its
    state when the folder was listed. `start_offset` is the log start offset.
    """

    segments: tuple[SegmentSeen, ...]
    bytes: int
    end_offset: int
    archived: Archived
    segments_of: Archived
    topic_id: str
    start_offset: int
    oldest: OldestUnarchived | None = None

    def lacks(self, segment: SegmentSeen) -> tuple[tuple[int, int], ...]:
        """The offsets of a segment that are not archived; of one that the log start offset lies in, from there on."""
        end = max(self.end_offset, segment.base_offset + 1) if segment.end_offset is None else segment.end_offset
        start = max(segment.base_offset, self.start_offset) if self.start_offset < end else segment.base_offset
        return self.archived.lacks(start, end) if segment.size else ()


def scan_log(log: LogReader, archived: Archived) -> LogSeen:
    """Lists a log's segments; one that the broker deletes meanwhile is left out. Raises Unreadable, Corrupt."""
    found: list[SegmentSeen] = []
    position = 0
    for segment in log.segments:
        file = segment.path(LOG)
        try:
            seen = SegmentSeen(
                segment.base_offset, segment.next_base_offset, segment.size(), log.disk.modified_ms(file), position
            )
        except NotFound:
            continue
        position += seen.size
        if seen.end_offset is None or archived.lacks(seen.base_offset, seen.end_offset):
            found.append(seen)
    return _with_oldest(LogSeen(tuple(found), position, _end(log), archived, archived, log.topic_id, log.log_start_offset), log)


def rescan_log(before: LogSeen, log: LogReader) -> LogSeen:
    """Updates a scan of a log without new or deleted segments; `log` needs no segments. Raises NotFound, Unreadable."""
    if not before.segments:
        return before
    active = before.segments[-1]
    segment = Segment(log.disk, log.folder, active.base_offset, None)
    size = segment.size()
    high_watermark = log.checkpointed_high_watermark
    if size == active.size:
        return before if high_watermark is None else replace(before, end_offset=high_watermark)
    now = replace(active, size=size, modified_ms=log.disk.modified_ms(segment.path(LOG)))
    end_offset = replace(log, segments=(segment,)).log_end_offset if high_watermark is None else high_watermark
    seen = replace(
        before,
        segments=(*before.segments[:-1], now),
        bytes=before.bytes + size - active.size,
        end_offset=end_offset,
    )
    if len(seen.segments) > 1 and before.oldest is not None:
        return seen
    return _with_oldest(seen, log)


def _end(log: LogReader) -> int:
    high_watermark = log.checkpointed_high_watermark
    return log.log_end_offset if high_watermark is None else high_watermark


def _with_oldest(seen: LogSeen, log: LogReader) -> LogSeen:
    for found in seen.segments:
        for start, _ in seen.lacks(found):
            try:
                return replace(
                    seen, oldest=_oldest(Segment(log.disk, log.folder, found.base_offset, found.end_offset), found, start)
                )
            except LogError:
                return replace(
                    seen, oldest=OldestUnarchived(start, 0, found.modified_ms, found.modified_ms)
                )  # who copies it tells
    return replace(seen, oldest=None)


def _oldest(segment: Segment, seen: SegmentSeen, offset: int) -> OldestUnarchived:
    position = 0 if offset <= seen.base_offset else _position(segment, offset)
    timestamp_ms = largest_ms = -1
    chunk: Chunk | None = next(iter(segment.chunks(offset)), None)
    if chunk is not None:
        batches = chunk.batches[chunk.batches.last_offset >= offset]
        if len(batches):
            timestamp_ms = int(batches.header["base_timestamp"][0])
            largest_ms = int(np.max(batches.header["max_timestamp"]))
    largest_ms = max(largest_ms, _last_time(segment))
    return OldestUnarchived(
        offset,
        position,
        timestamp_ms if timestamp_ms >= 0 else seen.modified_ms,
        largest_ms if largest_ms >= 0 else seen.modified_ms,
    )


def _position(segment: Segment, offset: int) -> int:
    try:
        return segment.offset_index().lookup(offset)
    except Corrupt:
        return 0


def _last_time(segment: Segment) -> int:
    """The last timestamp of the time index, -1 if it is empty. A binary search, because the rest of an active index is zeros."""
    file = segment.path(TIME_INDEX)
    try:
        low, high = 0, segment.disk.size(file) // _ENTRY_BYTES
        while low < high:
            middle = (low + high) // 2
            if any(segment.disk.read(file, middle * _ENTRY_BYTES, (middle + 1) * _ENTRY_BYTES)):
                low = middle + 1
            else:
                high = middle
        if low == 0:
            return -1
        body = segment.disk.read(file, (low - 1) * _ENTRY_BYTES, low * _ENTRY_BYTES)
    except NotFound:
        return -1
    return int(np.frombuffer(body, ENTRY)["timestamp"][0]) if len(body) == _ENTRY_BYTES else -1
