"""A whole log directory opened by the log manager, for `tiering log recover`."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from local_log.engine.config import LogConfig
from local_log.engine.log_manager import LogManager, Started
from local_log.engine.manager_config import ManagerConfig
from local_log.engine.opening import Progress
from local_log.errors import Corrupt, LogError, NotFound
from local_log.formats.checkpoints import read_offsets
from local_log.formats.clean_shutdown import NO_BROKER_EPOCH
from local_log.formats.filenames import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK_CHECKPOINT,
    LOG,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
    parse_offset_file,
    parse_partition_dir,
)
from local_log.storage import Disk, OsWritableDisk
from tiering.clock import RandomIds, SystemClock, jitter
from tiering.log_tools import as_it_is

_OF_A_LOG_DIR = {
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    RECOVERY_POINT_CHECKPOINT,
}


@dataclass(frozen=True, slots=True)
class Recovered:
    """A row a partition that was opened; what there is to say of the others and of the directory; what went wrong."""

    rows: list[dict[str, Any]]
    remarks: list[str]
    errors: list[LogError]


def is_log_dir(folder: str) -> bool:
    """Whether a folder is one of log.dirs rather than a partition's: by the files that only those have, or by its folders."""
    disk = OsWritableDisk()
    if not disk.is_folder(folder):
        return False
    names = disk.names(folder)
    return not _OF_A_LOG_DIR.isdisjoint(names) or any(parse_partition_dir(n) and disk.is_folder(f"{folder}/{n}") for n in names)


def recovered(folder: str, config: LogConfig, show: Callable[[int, int, str], None]) -> Recovered:
    """Opens and closes all logs of the directory, which is cleanly stopped then. Raises Invalid, Unreadable."""
    disk = OsWritableDisk()
    topics = dict.fromkeys(_tiered_topics(disk, folder.rstrip("/")), replace(config, remote_storage_enable=True))
    settings = ManagerConfig(log_dirs=(folder,))
    manager = LogManager(disk, settings, SystemClock().now_ms, jitter, RandomIds().new_id, default=config, topics=topics)
    started = manager.start(lambda progress: show(progress.logs - progress.logs_left, progress.logs, _word(progress)))
    try:
        rows = [{"topic": p.topic, "partition": p.partition, **as_it_is(manager.log(p))} for p in manager.partitions()]
    finally:
        epoch = manager.broker_epoch  # nothing has been written since: what its controller knows of the broker holds
        problems = manager.stop(NO_BROKER_EPOCH if epoch is None else epoch)
    errors = [*(u.error for u in started.unopened), *problems]
    return Recovered(rows, [*_remarks(started), *map(str, problems)], errors)


def _word(progress: Progress) -> str:
    left = f", {progress.segments_left} of {progress.segments} segments left" if progress.segments_left else ""
    return f"{progress.partition}{left}"


def _remarks(started: Started) -> list[str]:
    return [
        *(f"{u.path} could not be opened, the others were: {u.error}" for u in started.unopened),
        *(f"{corrupt}; the file was taken for empty and written anew" for corrupt in started.damaged),
        *(f"{path}: a stray log; left alone" for path in started.strays),
    ]


def _tiered_topics(disk: Disk, folder: str) -> set[str]:
    """Topics with a log that starts before its first segment here, so that the archive has the rest.

    A broker's settings would say it. Opened as another, such a log would forget where it starts.
    """
    starts: dict[TopicPartition, int] = {}
    with suppress(NotFound, Corrupt):
        starts = read_offsets(disk.read(f"{folder}/{LOG_START_OFFSET_CHECKPOINT}"))
    return {p.topic for p, start in starts.items() if start < _first_base(disk, f"{folder}/{p}", start)}


def _first_base(disk: Disk, folder: str, unknown: int) -> int:
    with suppress(NotFound):
        parsed = (parse_offset_file(name) for name in disk.names(folder))
        return min((p[0] for p in parsed if p is not None and p[1] == LOG), default=unknown)
    return unknown
