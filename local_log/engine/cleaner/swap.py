"""Replaces segments of a log in use by their cleaned one (LocalLog.replaceSegments). This alone needs the log's lock."""

from collections.abc import Callable

from local_log.engine.recovery.split import replace_segments, split_overflowed
from local_log.engine.segment import Segment
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import LogError


class CleaningAborted(LogError):
    """The round of cleaning has ended early, since the log changes. The next one begins where it began."""


def swap(log: UnifiedLog, moves: int, cleaned: Segment, group: list[Segment]) -> int | None:
    """Replaces the group by the cleaned segment. If the log was truncated or closed since `moves`, nothing is done: None.

    Returns the moves that the log has afterwards.
    """
    local = log.local
    return _change(log, moves, lambda: replace_segments(log.folder, local.segments, [cleaned], group, local.on_removed))


def split(log: UnifiedLog, moves: int, segment: Segment) -> int | None:
    """As `swap`, splits a segment whose offsets are too far apart for one. Raises Invalid."""
    return _change(log, moves, lambda: split_overflowed(log.folder, log.local.segments, segment, log.local.on_removed))


def _change(log: UnifiedLog, moves: int, replace: Callable[[], list[Segment]]) -> int | None:
    with log.lock:
        if not is_as_before(log, moves):
            return None
        log.published.withdraw(log.log_start_offset, log.local.end)
        try:
            gone = replace()
        finally:
            log.publish()
        log.folder.delete_snapshots_later(log.producers, gone)
        return log.published.moves


def is_as_before(log: UnifiedLog, moves: int) -> bool:
    """Whether the log is open, and no segment was truncated or deleted since it had these moves (see `LogOffsets`)."""
    return not log.local.is_closed and log.published.moves == moves
