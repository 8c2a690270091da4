"""What of a log may go by its retention, its size and its start offset, and how it goes (UnifiedLog.deleteOldSegments).

    1  segments wholly below the start offset
    2  the oldest, for as long as the log without them is not smaller than it may be
    3  the oldest, for as long as their greatest timestamp is older than it may be

Each of these looks at what the one before has left, and takes segments from the oldest on until the first that stays. Where the
log is tiered, a segment stays until the archive has it, or until the log starts behind it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from local_log.engine.config import LIKE_RETENTION, LogConfig
from local_log.engine.segment import Segment
from local_log.engine.unified_log import UnifiedLog


class Aged(Protocol):
    """What retention asks of a segment: offsets, bytes, and the greatest timestamp in ms."""

    @property
    def base_offset(self) -> int: ...  # noqa: D102  # Segment says it
    @property
    def size(self) -> int: ...  # noqa: D102
    @property
    def largest_timestamp(self) -> int: ...  # noqa: D102


S = TypeVar("S", bound=Aged)

Breach = Callable[[S, S | None], bool]
"""Whether a segment, with the one after it, breaks a rule."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What no rule goes beyond. `archived_through` is the archive's last offset, -1 for none, None where it is not asked."""

    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    archived_through: int | None
    rolls: bool
    """Whether the active segment is rolled when it breaks a rule, so that it can be archived."""


@dataclass(frozen=True, slots=True)
class Decision(Generic[S]):
    """The segments that go, and whether the active one is rolled first."""

    segments: tuple[S, ...] = ()
    roll: bool = False


def deletable(segments: Sequence[S], breaks: Breach[S], limits: Limits) -> Decision[S]:
    """The segments, from the oldest on, that break a rule and may go: an empty last one and what is not replicated never do."""
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
    """Whether the log's segments go to the archive, so that the local ones have a retention of their own."""
    return config.remote_storage_enable and not config.compact and not config.remote_log_copy_disable


def below(start: int) -> Breach[Aged]:
    """Rule 1: all of it lies below the log start offset."""
    return lambda segment, following: following is not None and following.base_offset <= start


def beyond_size(bytes_over: int) -> Breach[Aged]:
    """Rule 2: as many bytes as the log has too many; a segment that is larger than what is left of them stays."""
    left = bytes_over

    def breaks(segment: Aged, _following: Aged | None) -> bool:
        nonlocal left
        if left < segment.size:
            return False
        left -= segment.size
        return True

    return breaks


def older_than(retention_ms: int, now_ms: int) -> Breach[Aged]:
    """Rule 3: its greatest timestamp is too long ago."""
    return lambda segment, _following: now_ms - segment.largest_timestamp > retention_ms


def delete_old_segments(log: UnifiedLog, now_ms: int) -> int:
    """Applies the rules; how many segments went. Their files are deleted after file.delete.delay.ms."""
    config = log.folder.config
    copied = is_copied(config)
    deleted = _apply(log, below(_start_that_counts(log)))
    if "delete" not in config.cleanup_policy and (config.compact or not copied):
        return deleted
    size_max = _local(config.local_retention_bytes, config.retention_bytes) if copied else config.retention_bytes
    over = log.local.segments.size - size_max
    if size_max >= 0 and over >= 0:
        deleted += _apply(log, beyond_size(over))
    age_max = _local(config.local_retention_ms, config.retention_ms) if copied else config.retention_ms
    if age_max >= 0:
        deleted += _apply(log, older_than(age_max, now_ms))
    return deleted


def _local(own: int, whole: int) -> int:
    return whole if own == LIKE_RETENTION else own


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
        log.roll()  # a log has one segment at least
    following = log.local.segments.higher(gone[-1].base_offset)
    assert following is not None
    # The start moves before the files go, so that nobody looks for what is not there.
    if is_copied(log.folder.config):
        log.local_log_start_offset = max(log.local_log_start_offset, following.base_offset)
    else:
        log.maybe_increment_log_start_offset(following.base_offset)
    log.local.remove(gone)
    log.folder.delete_snapshots_later(log.producers, gone)
    return len(gone)
