"""Which partitions of the log directories have changed: by what the system tells of their folders alone.

A broker makes, renames or deletes a file in a partition's folder whenever a segment is rolled, compacted or deleted, and the
folder's time of change moves. Appends do not move it, and do not matter here: an idle partition is not read. How far the
partitions are replicated stands in one file a directory.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from local_log.errors import LogError, NoSuchFile
from local_log.file_range import FileState
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, TopicPartition
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader, open_log

STABLE_MS: Final = 2_000
"""File systems tell times in steps: a folder that changed less than this ago may change again without showing it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A partition's folder as it was seen, with what the directory's checkpoint files say of it.

    `topic_id` is the topic's to which these offsets belong, None where it could not be read.
    """

    log_dir: LogDir
    partition: TopicPartition
    state: FileState
    is_stable: bool
    start: int | None
    high_watermark: int | None
    topic_id: str | None = None

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
    return (before.state, before.start, before.topic_id) != (after.state, after.start, after.topic_id)


def opened(mark: Mark) -> LogReader:
    """The log as it lies there now, with the mark's offsets. Raises NoSuchFile if the folder is not the mark's topic's by now."""
    log = open_log(mark.log_dir.disk, mark.folder, mark.partition, mark.start, mark.high_watermark)
    if mark.topic_id != log.topic_id:
        raise NoSuchFile(
            f"{mark.folder}: it was the topic of id {mark.topic_id or 'unknown'} and is that of {log.topic_id} now, since the "
            "topic was deleted and created again; look at the folder again"
        )
    return log


def look(
    log_dir: LogDir, wanted: Callable[[str], bool], now_ms: int, before: Mapping[str, Mark] = MappingProxyType({})
) -> list[Mark]:
    """The partitions of the wanted topics as they lie there now. Raises NotFound, Corrupt, Unreadable: of the directory.

    `before` are the directory's marks of the last look.
    """
    if before:
        log_dir.check_mounted()
    found: list[tuple[TopicPartition, FileState, bool, str | None]] = []
    for partition in log_dir.partitions():
        if wanted(partition.topic):
            folder = f"{log_dir.path}/{partition}"
            try:
                state = log_dir.disk.state(folder)
            except LogError:
                continue  # deleted meanwhile; what else is wrong with it is wrong with its folder's folder
            is_stable = abs(now_ms - state.modified_ns // 1_000_000) >= STABLE_MS
            found.append((partition, state, is_stable, _topic_id(log_dir, partition, state, before.get(folder))))
    # After the topic ids: an id that was read first tells, when the folder is opened, that the offsets may be another topic's.
    starts = log_dir.checkpoint(LOG_START_OFFSET_CHECKPOINT)
    high_watermarks = log_dir.checkpoint(HIGH_WATERMARK_CHECKPOINT)
    if before or found:
        log_dir.check_mounted()  # it may have been unmounted meanwhile: what is missing then is not gone
    return [Mark(log_dir, p, state, is_stable, starts.get(p), high_watermarks.get(p), of) for p, state, is_stable, of in found]


def _topic_id(log_dir: LogDir, partition: TopicPartition, state: FileState, before: Mark | None) -> str | None:
    """The topic id in a folder, which is read again only once the folder has changed; None where it cannot be read."""
    if before is not None and before.is_stable and before.state == state and before.topic_id is not None:
        return before.topic_id
    try:
        return LogReader(log_dir.disk, f"{log_dir.path}/{partition}", partition, (), None, None).topic_id
    except LogError:
        return None
