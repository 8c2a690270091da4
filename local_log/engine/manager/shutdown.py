"""Closes all logs at shutdown and writes each directory's checkpoints, then its clean shutdown file."""

from collections.abc import Sequence

from local_log.engine.manager.data_dir import DataDir
from local_log.engine.manager.guarded_disk import Offline
from local_log.engine.manager.managed_log import ManagedLog, write_high_watermarks, write_log_start_offsets, write_recovery_points
from local_log.engine.manager.startup import in_threads
from local_log.errors import LogError

Stopping = tuple[DataDir, Sequence[ManagedLog]]
"""A directory with its open logs."""


def close_all(directories: Sequence[Stopping], threads: int, broker_epoch: int) -> list[LogError]:
    """Closes the logs with `threads` threads for each directory; returns the errors, that of a failed disk only once.

    A directory whose logs were all opened and are all closed gets a clean shutdown file with this broker epoch.
    """
    closed = in_threads(_closed, [logs for _, logs in directories], threads)
    failed = {path: error for path, error in closed if error is not None}
    problems: list[LogError] = [error for error in failed.values() if not isinstance(error, Offline)]
    for directory, logs in directories:
        try:
            write_high_watermarks(directory, logs)
            if not any(m.log.folder.path in failed for m in logs):
                _leave(directory, logs, broker_epoch)
        except Offline:
            pass  # as for the logs, the directory's `failure` reports it
        except LogError as e:
            problems.append(e)
        if directory.failure is not None:
            problems.append(directory.failure)
    return problems


def _closed(managed: ManagedLog) -> tuple[str, LogError | None]:
    try:
        managed.log.flush(also_active=True)
        managed.log.close()
    except LogError as e:
        return managed.log.folder.path, e
    return managed.log.folder.path, None


def _leave(directory: DataDir, logs: Sequence[ManagedLog], broker_epoch: int) -> None:
    write_recovery_points(directory, logs)
    write_log_start_offsets(directory, logs)
    if not directory.unopened:
        directory.write_clean_shutdown_file(broker_epoch)
