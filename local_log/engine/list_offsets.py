"""Looks up offsets by timestamp in an open log, as Kafka's ListOffsets does (UnifiedLog.fetchOffsetByTimestamp).

`formats.list_offsets` describes the negative timestamps.
"""

from typing import Final, NamedTuple

import numpy as np

from local_log.engine.epochs import LeaderEpochs
from local_log.engine.scan import Scanned
from local_log.engine.segment import Segment
from local_log.engine.segments import Segments
from local_log.errors import Invalid
from local_log.formats import list_offsets
from local_log.formats.checksum import crc32c
from local_log.formats.chunks import Chunk
from local_log.formats.header_layout import ATTRIBUTES_AT, BATCH_HEADER_BYTES, CRC_AT
from local_log.formats.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    UNKNOWN_OFFSET,
    TimestampOffset,
    first_at_or_after,
    latest_timestamp,
)
from local_log.formats.primitives import INT64_MAX
from local_log.formats.record import NO_EPOCH, NO_TIMESTAMP

_WINDOW_BYTES: Final = 8 << 10
"""The index gives a position at most a few KB before the batch, unless batches are larger: they are read one by one."""


class Bounds(NamedTuple):
    """The log start offset, the local log start offset, the log end offset, and the last offset in the archive (-1 for none).

    `archived` is None for a log that is not tiered.
    """

    log_start: int
    local_log_start: int
    log_end: int
    archived: int | None


def offset_for(timestamp: int, bounds: Bounds, segments: Segments, epochs: LeaderEpochs) -> TimestampOffset | None:
    """The result for a timestamp in ms or a special timestamp; None if no record is at or after it. Raises Invalid, Corrupt."""
    archived = bounds.archived
    if timestamp >= 0:
        start = bounds.log_start if archived is None else bounds.local_log_start
        holding = next((segment for segment in segments if segment.largest_timestamp >= timestamp), None)
        return None if holding is None else find_by_timestamp(holding, timestamp, start)
    if timestamp == LATEST:
        return _at(bounds.log_end, epochs.latest_epoch)
    if timestamp == EARLIEST or (timestamp == EARLIEST_LOCAL and archived is None):
        return _at(bounds.log_start, _first_epoch(epochs, bounds.log_start))
    if timestamp == EARLIEST_LOCAL:
        return _at(bounds.local_log_start, epochs.epoch_for(bounds.local_log_start))
    if timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD) and archived is None:
        return _at(UNKNOWN_OFFSET, None)
    if timestamp == LATEST_TIERED and archived is not None:
        return _at(archived, epochs.epoch_for(archived))
    if timestamp == EARLIEST_PENDING_UPLOAD and archived is not None:
        return _earliest_pending(archived, bounds, epochs)
    if timestamp == MAX_TIMESTAMP:
        return _latest_record(segments)
    raise Invalid(f"timestamp {timestamp}; expected milliseconds since 1970, or {LATEST} to {EARLIEST_PENDING_UPLOAD}")


def offsets_before(timestamp: int, count_max: int, bounds: Bounds, segments: Segments, now_ms: int) -> list[int]:
    """The result of ListOffsets version 0: see `formats.list_offsets`."""
    starts = [(max(s.base_offset, bounds.log_start), s.modified_ms) for s in segments]
    if segments.active.size > 0:
        starts.append((bounds.log_end, now_ms))
    return list_offsets.offsets_before(starts, timestamp, count_max)


def find_by_timestamp(segment: Segment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    """The first record at or after both `start_offset` and `timestamp`. Raises Corrupt."""
    position, size = segment.position_of(max(segment.offset_before(timestamp), start_offset)), segment.size
    from local_log.formats.kernels import find_time

    wanted = BATCH_HEADER_BYTES
    while position + wanted <= size:
        data = segment.read(position, min(max(wanted, _WINDOW_BYTES), size - position))
        status, at, end, offset, time, epoch = find_time.first_at_or_after(np.frombuffer(data, np.uint8), timestamp, start_offset)
        if status == find_time.FOUND and _has_its_checksum(memoryview(data)[at:end]):
            return TimestampOffset(offset, time, epoch)
        position += at
        if status != find_time.MORE or len(data) < wanted:
            break
        wanted = max(end - at, BATCH_HEADER_BYTES)
    return _scan_for_timestamp(segment, timestamp, start_offset, position)


def _has_its_checksum(batch: memoryview) -> bool:
    return crc32c(batch[ATTRIBUTES_AT:]) == int.from_bytes(batch[CRC_AT:ATTRIBUTES_AT], "big")


def _scan_for_timestamp(segment: Segment, timestamp: int, start_offset: int, position: int) -> TimestampOffset | None:
    for scanned in segment.scan(position):
        for row in np.flatnonzero(scanned.batches.max_timestamp >= timestamp).tolist():
            if scanned.is_old(row):
                offsets, times = scanned.old_messages(row)
                found = _first(offsets, times, (times >= timestamp) & (offsets >= start_offset))
            else:
                found = first_at_or_after([_chunk(segment, scanned, row)], timestamp, start_offset, INT64_MAX)
            if found is not None:
                return found
    return None


def _first(offsets: np.ndarray, times: np.ndarray, mask: np.ndarray) -> TimestampOffset | None:
    found = np.flatnonzero(mask)
    return TimestampOffset(int(offsets[found[0]]), int(times[found[0]]), NO_EPOCH) if len(found) else None


def _chunk(segment: Segment, scanned: Scanned, row: int) -> Chunk:
    return Chunk(segment.log_file, scanned.position, scanned.buffer, scanned.batches[row : row + 1])


def _at(offset: int, epoch: int | None) -> TimestampOffset:
    return TimestampOffset(offset, NO_TIMESTAMP, NO_EPOCH if epoch is None else epoch)


def _first_epoch(epochs: LeaderEpochs, offset: int) -> int | None:
    first = epochs.entries[:1]
    return first[0].epoch if first and first[0].start_offset <= offset else None


def _earliest_pending(archived: int, bounds: Bounds, epochs: LeaderEpochs) -> TimestampOffset:
    if archived >= 0:
        offset = max(archived + 1, bounds.log_start)
        return _at(offset, epochs.epoch_for(offset))
    if bounds.local_log_start != bounds.log_start:
        return _at(UNKNOWN_OFFSET, None)  # the archive has what was deleted locally, but its last offset is unknown
    return _at(bounds.log_start, _first_epoch(epochs, bounds.log_start))


def _latest_record(segments: Segments) -> TimestampOffset | None:
    segment = max(segments, key=lambda s: s.max_timestamp[0])  # the first segment, if several have the same
    timestamp, offset = segment.max_timestamp
    position = segment.position_of(offset)
    for scanned in segment.scan(position):
        rows = np.flatnonzero(scanned.batches.max_timestamp == timestamp)
        if len(rows):
            row = int(rows[0])
            if scanned.is_old(row):
                offsets, times = scanned.old_messages(row)
                return _first(offsets, times, times == timestamp) if scanned.batches.header["magic"][row] else None
            return latest_timestamp([_chunk(segment, scanned, row)])
    return None
