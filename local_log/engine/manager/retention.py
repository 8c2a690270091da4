"""Deletes old segments of a log by start offset, size and time (UnifiedLog.deleteOldSegments).

    1  segments that end at or below the log start offset
    2  the oldest segments, as long as the rest of the log has at least the retention size
    3  the oldest segments, as long as their greatest timestamp is older than the retention time

The rules apply in this order, and each deletes from the oldest segment up to the first one that stays. A tiered log's segment
stays until it is in the archive, or until the log start offset is after it. Rules 2 and 3 are policies; others may take their
place.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from local_log.engine.config import LIKE_RETENTION, LogConfig
from local_log.engine.segment import Segment
from local_log.engine.unified_log import UnifiedLog


class Aged(Protocol):
    """A segment as the rules see it: base offset, size in bytes, greatest timestamp in ms."""

    @property
    def base_offset(self) -> int: ...  # noqa: D102  # noqa: D102  # see Segment
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def largest_timestamp(self) -> int: ...  # noqa: D102


S = TypeVar("S", bound=Aged)

Breach = Callable[[S, S | None], bool]
"""Whether a segment breaks a rule; the second argument is the next segment."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds for all rules. `archived_through` is the archive's last offset, -1 for none, None for a log without tiering."""

    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    archived_through: int | None
    rolls: bool
    """Whether an active segment that breaks a rule is rolled, so that it can be archived."""


@dataclass(frozen=True, slots=True)
class Decision(Generic[S]):
    """The segments to delete, and whether to roll the active segment first."""

    segments: tuple[S, ...] = ()
    roll: bool = False


def deletable(segments: Sequence[S], breaks: Breach[S], limits: Limits) -> Decision[S]:
    """The oldest segments that break the rule and may be deleted. An empty active segment and unreplicated ones never are."""
    gone: list[S] = []
    roll = False
    for at, segment in enumerate(segments):
        following = segments[at + 1] if at + 1 < len(segments) else None
        end = limits.log_end_offset if following is None else following.base_offset
        if limits.high_watermark < end or not breaks(segment, following) or (following is None and segment.size == 0):
            break
        roll = limits.rolls and following is None
        if not _may_go(following, end, limits):
            break
        gone.append(segment)
    return Decision(tuple(gone), roll)


def _may_go(following: S | None, end: int, limits: Limits) -> bool:
    if limits.archived_through is None:
        return True
    is_archived = 0 < end <= limits.archived_through + 1
    return is_archived or (following is not None and limits.log_start_offset >= following.base_offset)


def is_copied(config: LogConfig) -> bool:
    """Whether the log's segments are copied to the archive, so that local segments have their own retention."""
    return config.remote_storage_enable and not config.compact and not config.remote_log_copy_disable


def below(start: int) -> Breach[Aged]:
    """Rule 1: the whole segment is below the log start offset."""
    return lambda segment, following: following is not None and following.base_offset <= start


def beyond_size(bytes_over: int) -> Breach[Aged]:
    """Rule 2: the log exceeds its retention size by this many bytes; a segment larger than the remaining excess stays."""
    left = bytes_over

    def breaks(segment: Aged, _following: Aged | None) -> bool:
        nonlocal left
        if left < segment.size:
            return False
        left -= segment.size
        return True

    return breaks


def older_than(retention_ms: int, now_ms: int) -> Breach[Aged]:
    """Rule 3: the greatest timestamp is older than the retention time."""
    return lambda segment, _following: now_ms - segment.largest_timestamp > retention_ms


@dataclass(frozen=True, slots=True)
class Retained:
    """What a deletion policy goes by: the limits of a log's local segments (-1 for none), their bytes, the time in ms."""

    retention_ms: int
    retention_bytes: int
    size: int
    now_ms: int

    @classmethod
    def of(cls, config: LogConfig, size: int, now_ms: int) -> "Retained":
        """The limits by a log's settings: those of the local log where its segments are copied to the archive."""
        if not is_copied(config):
            return cls(config.retention_ms, config.retention_bytes, size, now_ms)
        age_max, size_max = config.local_retention_ms, config.local_retention_bytes
        return cls(
            config.retention_ms if age_max == LIKE_RETENTION else age_max,
            config.retention_bytes if size_max == LIKE_RETENTION else size_max,
            size,
            now_ms,
        )


DeletionPolicy = Callable[[Retained], Breach[Aged] | None]
"""Returns the rule that old segments break, None if none is to go. The rule is asked from the oldest segment on."""


def by_size(retained: Retained) -> Breach[Aged] | None:
    """The policy of rule 2."""
    over = retained.size - retained.retention_bytes
    return beyond_size(over) if retained.retention_bytes >= 0 and over >= 0 else None


def by_time(retained: Retained) -> Breach[Aged] | None:
    """The policy of rule 3."""
    return older_than(retained.retention_ms, retained.now_ms) if retained.retention_ms >= 0 else None


KAFKAS: Sequence[DeletionPolicy] = (by_size, by_time)
"""Kafka's policies, in its order."""


def delete_old_segments(log: UnifiedLog, now_ms: int, policies: Sequence[DeletionPolicy] = KAFKAS) -> int:
    """Applies the rules; returns the number of deleted segments. Their files are deleted after file.delete.delay.ms."""
    with log.lock:
        config = log.folder.config
        deleted = _apply(log, below(_start_that_counts(log)))
        if "delete" not in config.cleanup_policy and (config.compact or not is_copied(config)):
            return deleted
        for policy in policies:
            breaks = policy(Retained.of(config, log.local.segments.size, now_ms))
            if breaks is not None:
                deleted += _apply(log, breaks)
        return deleted


def _is_tiered(config: LogConfig) -> bool:
    return config.remote_storage_enable and not config.compact


def _start_that_counts(log: UnifiedLog) -> int:
    return log.local_log_start_offset if _is_tiered(log.folder.config) else log.log_start_offset


def _apply(log: UnifiedLog, breaks: Breach[Aged]) -> int:
    config = log.folder.config
    limits = Limits(
        log.log_start_offset,
        log.high_watermark,
        log.log_end_offset,
        log.highest_offset_in_archive if is_copied(config) else None,
        _is_tiered(config),
    )
    decision = deletable(tuple(log.local.segments), breaks, limits)
    if decision.roll:
        log.roll()
    return _delete(log, decision.segments)


def _delete(log: UnifiedLog, segments: Sequence[Segment]) -> int:
    if not segments:
        return 0
    gone = list(segments)
    if len(log.local.segments) == len(gone):
        log.roll()  # a log has at least one segment
    following = log.local.segments.higher(gone[-1].base_offset)
    assert following is not None
    # The log start offset moves before the files are deleted, so that no read looks for a deleted segment.
    if is_copied(log.folder.config):
        log.local_log_start_offset = max(log.local_log_start_offset, following.base_offset)
        log.publish()
    else:
        log.maybe_increment_log_start_offset(following.base_offset)
    log.published.withdraw(log.log_start_offset, log.local.end)
    log.local.remove(gone)
    log.publish()
    log.folder.delete_snapshots_later(log.producers, gone)
    return len(gone)
