"""The log manager's background tasks: their schedule and their logs (LogManager's and ReplicaManager's tasks)."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.data_dir import DataDir
from local_log.engine.manager.managed_log import ManagedLog, write_high_watermarks, write_log_start_offsets, write_recovery_points
from local_log.engine.manager.retention import KAFKAS, DeletionPolicy, delete_old_segments, is_copied
from local_log.engine.manager.schedule import Schedule, Task
from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition

Job = tuple[DataDir, Callable[[], object]]
"""A function to run, and the directory that it works on."""

_WRITERS: dict[Task, Callable[[DataDir, Iterable[ManagedLog]], None]] = {
    Task.RECOVERY_POINTS: write_recovery_points,
    Task.LOG_START_OFFSETS: write_log_start_offsets,
    Task.HIGH_WATERMARKS: write_high_watermarks,
}


def scheduled(c: ManagerConfig, now_ms: int) -> Schedule:
    """The schedule of the tasks by the settings, from now on."""
    first = c.initial_task_delay_ms
    tasks = {
        Task.RETENTION: (first, c.retention_check_interval_ms),
        Task.FLUSH: (first, c.flush_scheduler_interval_ms),
        Task.RECOVERY_POINTS: (first, c.flush_offset_checkpoint_interval_ms),
        Task.LOG_START_OFFSETS: (first, c.flush_start_offset_checkpoint_interval_ms),
        Task.HIGH_WATERMARKS: (0, c.high_watermark_checkpoint_interval_ms),
        Task.PRODUCERS: (c.producer_id_expiration_check_interval_ms, c.producer_id_expiration_check_interval_ms),
        Task.CLEANING: (0, c.cleaner_backoff_ms),
    }
    return Schedule.beginning(now_ms, tasks)


def jobs_of(
    task: Task,
    now_ms: int,
    directories: Iterable[tuple[DataDir, Sequence[ManagedLog]]],
    archived_through: Callable[[TopicPartition], int | None],
    policies: Sequence[DeletionPolicy] = KAFKAS,
) -> list[Job]:
    """The jobs of a task: one for each log, or one for each directory; none of CLEANING, which the log cleaner does."""
    if task is Task.CLEANING:
        return []
    if task in _WRITERS:
        return [(directory, partial(_WRITERS[task], directory, logs)) for directory, logs in directories]
    managed = [(directory, m) for directory, logs in directories for m in logs]
    if task is Task.RETENTION:
        return [(directory, partial(_retain, m, now_ms, archived_through, policies)) for directory, m in managed]
    if task is Task.FLUSH:
        return [(directory, partial(_flush_due, m, now_ms)) for directory, m in managed]
    return [(directory, partial(_expire_producers, m)) for directory, m in managed]


def run_jobs(jobs: Iterable[Job]) -> list[LogError]:
    """Runs all jobs and returns their errors. The failure of a disk is reported only once."""
    problems: list[LogError] = []
    for directory, act in jobs:
        if directory.failure is None:
            try:
                act()
            except LogError as e:
                problems.append(e)
    return problems


def _retain(
    managed: ManagedLog,
    now_ms: int,
    archived_through: Callable[[TopicPartition], int | None],
    policies: Sequence[DeletionPolicy],
) -> None:
    config = managed.log.folder.config
    if config.compact:
        return  # the log cleaner handles compacted topics
    if is_copied(config):
        # Kafka keeps the greatest value that was set; while it is unknown here, nothing is deleted
        through = archived_through(managed.partition)
        if through is None:
            return
        managed.log.highest_offset_in_archive = through
    delete_old_segments(managed.log, now_ms, policies)


def _expire_producers(managed: ManagedLog) -> None:
    with managed.log.lock:
        managed.log.producers.expire()


def _flush_due(managed: ManagedLog, now_ms: int) -> None:
    if now_ms - managed.log.local.last_flush_ms >= managed.log.folder.config.flush_ms:
        managed.log.flush()
