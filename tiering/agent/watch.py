"""Which partitions of the log directories have changed: by what the system tells of their folders alone.

A broker makes, renames or deletes a file in a partition's folder whenever a segment is rolled, compacted or deleted, and the
folder's time of change moves. Appends do not move it, and do not matter here: an idle partition is not read. How far the
partitions are replicated stands in one file a directory.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from local_log.disk import FileState
from local_log.errors import LogError, Unreadable
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, TopicPartition
from local_log.log_dir import LogDir

STABLE_MS: Final = 2_000
"""File systems tell times in steps: a folder that changed less than this ago may change again without showing it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A partition's folder as it was seen, with what the directory's checkpoint files say of it."""

    log_dir: LogDir
    partition: TopicPartition
    state: FileState
    is_stable: bool
    start: int | None
    high_watermark: int | None

    @property
    def folder(self) -> str:
        """Its path."""
        return f"{self.log_dir.path}/{self.partition}"


def has_changed(before: Mark | None, after: Mark, *, waits: bool) -> bool:
    """Whether there may be something new to plan for; `waits` is whether a segment waits for the high watermark to reach it."""
    if before is None or not before.is_stable:
        return True
    if waits and before.high_watermark != after.high_watermark:
        return True
    return (before.state, before.start) != (after.state, after.start)


def look(log_dir: LogDir, wanted: Callable[[str], bool], now_ms: int, *, had_some: bool = False) -> list[Mark]:
    """The partitions of the wanted topics as they lie there now. Raises NotFound, Corrupt, Unreadable: of the directory.

    One that `had_some` and is empty now is a mount point without its disk: what was there is not gone.
    """
    if had_some and not log_dir.disk.names(log_dir.path):
        raise Unreadable(f"{log_dir.path}: it is empty, but had partitions before; check whether its disk is mounted")
    starts = log_dir.checkpoint(LOG_START_OFFSET_CHECKPOINT)
    high_watermarks = log_dir.checkpoint(HIGH_WATERMARK_CHECKPOINT)
    marks: list[Mark] = []
    for partition in log_dir.partitions():
        if wanted(partition.topic):
            try:
                state = log_dir.disk.state(f"{log_dir.path}/{partition}")
            except LogError:
                continue  # deleted meanwhile; what else is wrong with it is wrong with its folder's folder
            is_stable = abs(now_ms - state.modified_ns // 1_000_000) >= STABLE_MS
            marks.append(Mark(log_dir, partition, state, is_stable, starts.get(partition), high_watermarks.get(partition)))
    return marks
