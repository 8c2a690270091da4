"""Opens one partition's folder as the log manager does: with its lines of the log directory's checkpoint files.

A command that changes a log also changes these lines, and leaves those of other partitions as they are. While it runs, there is
no clean-shutdown file, so that a crash of the command is seen as one.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from local_log.disk import Disk, parent_of
from local_log.engine.config import LogConfig
from local_log.engine.manager.data_dir import Checkpoints, DataDir, open_data_dir
from local_log.engine.manager.managed_log import (
    ManagedLog,
    topic_id_in,
    write_high_watermarks,
    write_log_start_offsets,
    write_recovery_points,
)
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import NotFound
from local_log.formats.clean_shutdown import NO_BROKER_EPOCH
from local_log.formats.filenames import LOG, TopicPartition, parse_offset_file, parse_partition_dir
from local_log.log_dir import is_brokers
from remote.clock import jitter
from tiering.machine import CLOCK, writable_disk


@dataclass(frozen=True, slots=True)
class Opening:
    """How a log is opened. An offset that is None is read from the checkpoint files, and 0 without them."""

    config: LogConfig
    log_start_offset: int | None = None
    recovery_point: int | None = None
    recovers: bool = False
    """Whether everything from the recovery point on is checked, also if the log directory was cleanly shut down."""
    is_made: bool = False
    """Whether a missing folder is created."""
    topic_id: str | None = None
    """The topic id of a folder that has none."""


@contextmanager
def opened(folder: str, opening: Opening) -> Iterator[UnifiedLog]:
    """Opens the log in `folder`, recovers it, and closes it at the end unless an error has left its state uncertain.

    A folder whose name is not a partition's has no lines in checkpoint files. Raises NotFound for a missing folder, Invalid if a
    broker uses its log directory, Corrupt for a damaged checkpoint file, and the errors of `open_log`.
    """
    disk, folder = writable_disk(), folder.rstrip("/")
    if not opening.is_made and not disk.is_folder(folder):
        raise NotFound(f"{folder}: no such folder; name one partition's, such as orders-0 in a log directory")
    directory = open_data_dir(disk, parent_of(folder))
    directory.lock()
    try:
        partition = parse_partition_dir(folder.rpartition("/")[2])
        if partition is None:
            yield from _opened(directory, folder, opening, clean=not opening.recovers)
        else:
            yield from _opened_in_directory(directory, folder, partition, opening)
    finally:
        directory.unlock()
        disk.release(directory.path)


def _opened_in_directory(directory: DataDir, folder: str, partition: TopicPartition, opening: Opening) -> Iterator[UnifiedLog]:
    directory.read_checkpoints()
    said = directory.said
    if said.damaged:
        raise said.damaged[0]
    directory.unopened = {*said.recovery_points, *said.log_start_offsets, *said.high_watermarks} - {partition}
    if not directory.disk.exists(folder):
        said = Checkpoints({}, {}, {})  # a deleted topic had the same name
    directory.consume_clean_shutdown_file()
    clean = not opening.recovers and (directory.was_clean or partition not in said.recovery_points)
    start, point = said.log_start_offsets.get(partition), said.recovery_points.get(partition)
    opening = replace(
        opening,
        log_start_offset=start if opening.log_start_offset is None else opening.log_start_offset,
        recovery_point=point if opening.recovery_point is None else opening.recovery_point,
    )
    for log in _opened(directory, folder, opening, clean=clean):
        managed = ManagedLog(partition, directory, log, topic_id_in(directory, folder))
        if managed.topic_id is None and opening.topic_id is not None:
            managed.assign_topic_id(opening.topic_id)
        if is_brokers(directory.disk, directory.path):
            log.update_high_watermark(said.high_watermarks.get(partition, 0))
        else:
            log.become_only_replica()
        yield log
    write_high_watermarks(directory, [managed])
    write_recovery_points(directory, [managed])
    write_log_start_offsets(directory, [managed])
    if directory.was_clean:
        directory.write_clean_shutdown_file(NO_BROKER_EPOCH if directory.broker_epoch is None else directory.broker_epoch)


def _opened(directory: DataDir, folder: str, opening: Opening, *, clean: bool) -> Iterator[UnifiedLog]:
    config, start = opening.config, opening.log_start_offset or 0
    if start < first_base(directory.disk, folder, start):
        config = replace(config, remote_storage_enable=True)  # what is below the first segment is in the archive
    log = open_log(
        directory.disk,
        folder,
        config,
        CLOCK.now_ms,
        jitter,
        log_start_offset=start,
        recovery_point=opening.recovery_point or 0,
        clean=clean,
    )
    yield log
    log.flush(also_active=True)
    log.close()


def first_base(disk: Disk, folder: str, unknown: int) -> int:
    """The base offset of the first segment in a partition's folder, `unknown` if there is none."""
    with suppress(NotFound):
        parsed = (parse_offset_file(name) for name in disk.names(folder))
        return min((p[0] for p in parsed if p is not None and p[1] == LOG), default=unknown)
    return unknown
