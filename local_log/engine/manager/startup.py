"""Opens all logs of all directories at startup, several at a time, and reports the progress.

A damaged log does not prevent the others from being opened. A disk that fails takes its directory offline.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from local_log.disk import WritableDisk
from local_log.engine.config import LogConfig
from local_log.engine.manager.data_dir import Checkpoints, DataDir, Found
from local_log.engine.manager.managed_log import ManagedLog, topic_id_in
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.unified_log import open_log
from local_log.errors import Invalid, LogError
from local_log.formats.filenames import DELETE_DIR, STRAY_DIR, TopicPartition

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Plan:
    """The folders of a directory by what happens to them: opened, deleted later, or ignored."""

    directory: DataDir
    opened: tuple[Found, ...]
    doomed: tuple[Found, ...]
    strays: tuple[Found, ...]


@dataclass(frozen=True, slots=True)
class Unopened:
    """A log that could not be opened, and its error."""

    partition: TopicPartition
    directory: DataDir
    path: str
    error: LogError


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a start: one log's segments, to recover and remaining; the logs of all directories, opened and in total."""

    partition: TopicPartition
    segments: int
    segments_left: int
    logs: int
    logs_left: int


def plan(directory: DataDir, folders: Iterable[Found]) -> Plan:
    """Sorts a directory's folders by the suffixes of their names."""
    found = tuple(folders)
    kept = tuple(f for f in found if f.name.mark not in (DELETE_DIR, STRAY_DIR))
    return Plan(
        directory,
        kept,
        tuple(f for f in found if f.name.mark == DELETE_DIR),
        tuple(f for f in found if f.name.mark == STRAY_DIR),
    )


def check_unique(plans: Iterable[Plan]) -> None:
    """Raises Invalid with both paths if two folders have the same partition."""
    seen: dict[tuple[TopicPartition, str], str] = {}
    for found in (f for p in plans for f in p.opened):
        key = found.name.partition, found.name.mark
        if key in seen:
            raise Invalid(
                f"{seen[key]} and {found.path} hold the same partition, most likely since a disk failed while it was moved; "
                "remove one of them, by choice the one on the disk that failed"
            )
        seen[key] = found.path


@dataclass(slots=True)
class Opener:
    """Opens logs. `on_progress` is called by one thread at a time."""

    config_of: Callable[[str], LogConfig]
    now_ms: Callable[[], int]
    random: Callable[[], float]
    producers_of: Callable[[WritableDisk, str, Callable[[], int]], ProducerStateManager]
    only_replica: bool = False
    on_progress: Callable[[Progress], None] = lambda progress: None
    _logs: int = 0
    _left: int = 0
    _telling: threading.Lock = field(default_factory=threading.Lock)

    def open_all(self, plans: Sequence[Plan], threads: int) -> list[ManagedLog | Unopened]:
        """Opens the planned folders, with `threads` threads for each directory."""
        self._logs = self._left = sum(len(p.opened) for p in plans)
        for p in plans:
            p.directory.unopened = {f.name.partition for f in p.opened}
        groups = [[(p.directory, found) for found in p.opened] for p in plans]
        return in_threads(self._tried, groups, threads)

    def _tried(self, job: tuple[DataDir, Found]) -> ManagedLog | Unopened:
        directory, found = job
        partition = found.name.partition
        try:
            opened = self.open(directory, partition, found.path, clean=directory.was_clean)
            directory.unopened.discard(partition)
        except LogError as e:
            return Unopened(partition, directory, found.path, e)
        else:
            return opened
        finally:
            self._tell(partition, 0, 0, opened=1)

    def open(self, directory: DataDir, partition: TopicPartition, path: str, *, clean: bool, is_new: bool = False) -> ManagedLog:
        """Opens one log with its offsets from the checkpoints; a new log ignores those of an earlier log of the same name.

        Raises Corrupt, Invalid, Refused, Offline.
        """
        said = Checkpoints({}, {}, {}) if is_new else directory.said
        log = open_log(
            directory.disk,
            path,
            self.config_of(partition.topic),
            self.now_ms,
            self.random,
            log_start_offset=said.log_start_offsets.get(partition, 0),
            recovery_point=said.recovery_points.get(partition, 0),
            clean=clean,
            producers_of=self.producers_of,
            on_progress=lambda segments, left: self._tell(partition, segments, left),
        )
        if self.only_replica:
            log.become_only_replica()
        else:
            log.update_high_watermark(said.high_watermarks.get(partition, 0))
        return ManagedLog(partition, directory, log, topic_id_in(directory, path))

    def _tell(self, partition: TopicPartition, segments: int, left: int, opened: int = 0) -> None:
        with self._telling:
            self._left -= opened
            self.on_progress(Progress(partition, segments, left, self._logs, self._left))


def in_threads(act: Callable[[T], R], groups: Sequence[Sequence[T]], threads: int) -> list[R]:
    """The results of `act` for all items of the groups, in order; with `threads` threads for each group."""
    if threads == 1 and len(groups) == 1:
        return [act(one) for one in groups[0]]
    pools = [ThreadPoolExecutor(threads) for group in groups if group]
    try:
        futures: list[Future[R]] = []
        for pool, group in zip(pools, (g for g in groups if g), strict=True):
            futures += [pool.submit(act, one) for one in group]
        return [future.result() for future in futures]
    finally:
        for pool in pools:
            pool.shutdown(cancel_futures=True)
