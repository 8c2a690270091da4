"""Which part of a log is to be cleaned, and whether it is time to (LogCleanerManager.cleanableOffsets, LogToClean)."""

from dataclasses import dataclass

from local_log.engine.offsets import LogOffsets
from local_log.engine.segment import Segment
from local_log.engine.unified_log import UnifiedLog


@dataclass(frozen=True, slots=True)
class DirtyPart:
    """What is cleaned next, `[first_dirty_offset, first_uncleanable_offset)`, with the bytes before it and in it.

    `checkpoint_is_invalid`: the first dirty offset is another than the checkpoint says, which has to be written anew.
    `overdue_ms` is how long records have waited beyond max.compaction.lag.ms, 0 if they have not.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    checkpoint_is_invalid: bool
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int

    @property
    def dirty_ratio(self) -> float:
        """The dirty part of all that can be cleaned, from 0 to 1."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    def is_due(self, min_dirty_ratio: float) -> bool:
        """Whether it is time to clean: more than min.cleanable.dirty.ratio is dirty, or records have waited too long."""
        return self.dirty_ratio > min_dirty_ratio or (self.overdue_ms > 0 and self.cleanable_bytes > 0)


def dirty_part(log: UnifiedLog, checkpointed: int | None, now_ms: int) -> DirtyPart:
    """The part after the `checkpointed` end of the last round, None without one.

    Not dirty are the active segment, what is not stable, and what is younger than min.compaction.lag.ms. Raises Corrupt.
    """
    return log.published.undisturbed(lambda now: _dirty_part(log, now, checkpointed, now_ms))


def _dirty_part(log: UnifiedLog, now: LogOffsets, checkpointed: int | None, now_ms: int) -> DirtyPart:
    config, start = log.folder.config, now.log_start
    is_invalid = checkpointed is not None and not start <= checkpointed <= now.end.offset
    first = start if checkpointed is None or is_invalid else checkpointed
    dirty = _inactive_from(log, first)
    uncleanable = min(now.last_stable, log.local.segments.active.base_offset)
    if config.min_compaction_lag_ms > 0:
        young = (s.base_offset for s in dirty if s.largest_timestamp > now_ms - config.min_compaction_lag_ms)
        uncleanable = min(uncleanable, next(young, uncleanable))
    end = segments_end(log, max(first, uncleanable))
    segments = log.local.segments
    return DirtyPart(
        first,
        end,
        is_invalid,
        sum(s.size for s in segments.between(min(-1, first), first)),
        sum(s.size for s in segments.between(min(first, end), end)),
        _overdue_ms(dirty, now_ms - config.max_compaction_lag_ms),
    )


def segments_end(log: UnifiedLog, uncleanable_offset: int) -> int:
    """The base offset of the first segment that cannot be cleaned: that of the offset, or the active one."""
    following = _inactive_from(log, uncleanable_offset)
    return following[0].base_offset if following else log.local.segments.active.base_offset


def _inactive_from(log: UnifiedLog, offset: int) -> list[Segment]:
    active = log.local.segments.active.base_offset
    return log.local.segments.between(min(offset, active), active)


def _overdue_ms(dirty: list[Segment], clean_until_ms: int) -> int:
    """How long before `clean_until_ms` the first of the segments' first batches was written."""
    firsts = (next(segment.scan(0), None) for segment in dirty)
    timestamps = (int(first.batches.max_timestamp[0]) for first in firsts if first is not None)
    earliest = min((timestamp for timestamp in timestamps if timestamp > 0), default=clean_until_ms)
    return max(0, clean_until_ms - earliest)
