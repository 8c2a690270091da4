"""The logs of all directories in log.dirs, from startup to clean shutdown (Kafka's LogManager).

    made → start → tick, tick, … → stop

`tick` does what Kafka does in background threads; its caller calls it about once a second. Only opening and closing logs and the
log cleaner use threads. Only one thread may call a manager at a time; many may use its logs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from local_log.disk import WritableDisk
from local_log.engine.config import LogConfig
from local_log.engine.manager.background import Background, Threads
from local_log.engine.manager.cleaner_status import CleanerStatus
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.data_dir import DataDir, open_data_dir
from local_log.engine.manager.guarded_disk import Offline, unless_offline
from local_log.engine.manager.log_cleaner import LogCleaner
from local_log.engine.manager.maintenance import jobs_of, run_jobs, scheduled
from local_log.engine.manager.managed_log import ManagedLog, write_log_start_offsets, write_recovery_points
from local_log.engine.manager.retention import KAFKAS, DeletionPolicy
from local_log.engine.manager.schedule import Schedule, Task
from local_log.engine.manager.shutdown import close_all
from local_log.engine.manager.startup import Opener, Plan, Progress, Unopened, check_unique, plan
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Corrupt, Invalid, LogError, NotFound, Unreadable
from local_log.formats.clean_shutdown import NO_BROKER_EPOCH
from local_log.formats.filenames import DELETE_DIR, FUTURE_DIR, TopicPartition, marked_log_dir, parse_partition_dir

_NEVER_TIERED = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"})
"""Kafka's internal topics, which are never tiered, whatever their settings."""


@dataclass(frozen=True, slots=True)
class Started:
    """The result of a start: logs that could not be opened, damaged checkpoint files (read as empty), folders of stray logs."""

    unopened: tuple[Unopened, ...]
    damaged: tuple[Corrupt, ...]
    strays: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Doomed:
    due_ms: int
    path: str
    directory: DataDir


class LogManager:
    """The logs in `config.log_dirs`, with the settings of their topic in `topics`, else `default`.

    `now_ms` returns ms since 1970, `random` numbers in [0, 1), `new_id` ids for folders to delete. `archived_through` returns
    the last offset of a partition in the archive, -1 for none and while it is unknown: retention deletes no segment of a tiered
    log before it is archived. None leaves the log's retention to the caller. `only_replica`: the logs have no other replicas, so
    that their high watermarks are their ends. `background` is where the log cleaner runs, by default in threads. `policies`
    say which old segments go.
    """

    # Four dependencies (disk, clock, randomness, ids) and the settings; a class for the four would be used in this call alone.
    def __init__(
        self,
        disk: WritableDisk,
        config: ManagerConfig,
        now_ms: Callable[[], int],
        random: Callable[[], float],
        new_id: Callable[[], str],
        *,
        default: LogConfig | None = None,
        topics: Mapping[str, LogConfig] | None = None,
        archived_through: Callable[[TopicPartition], int | None] = lambda partition: -1,
        only_replica: bool = False,
        background: Background | None = None,
        policies: Sequence[DeletionPolicy] = KAFKAS,
    ) -> None:
        if not config.log_dirs:
            raise Invalid("log.dirs is empty; name one folder or more that logs are kept in")
        self._disk = disk
        self.config = config
        self._now_ms = now_ms
        self._new_id = new_id
        self._default = default or LogConfig()
        self._topics = dict(topics or {})
        self._archived_through = archived_through
        self._policies = tuple(policies)
        self._verifies_transactions = False
        self._opener = Opener(self._config_of, now_ms, random, self._new_producers, only_replica)
        self.directories = tuple(open_data_dir(disk, path.rstrip("/") or "/") for path in config.log_dirs)
        self._current: dict[TopicPartition, ManagedLog] = {}
        self._future: dict[TopicPartition, ManagedLog] = {}
        self._unopened: dict[TopicPartition, Unopened] = {}
        self._doomed: list[_Doomed] = []
        self.is_started = False
        """Whether the directories are locked, and their logs open."""
        self._schedule = Schedule.beginning(0, {})
        self._cleaner = LogCleaner(config, now_ms, lambda: self._current, background or Threads(), self._policies)

    # Start and stop

    def start(
        self, on_progress: Callable[[Progress], None] = lambda progress: None, *, on_locked: Callable[[], None] = lambda: None
    ) -> Started:
        """Locks the directories and opens all logs. Raises Invalid, Unreadable; it unlocks the directories then.

        `on_locked` is called before a log is opened, for a caller whose settings of topics are in the directories. A log that
        cannot be opened is in the result, a directory whose disk fails in `offline`; the others are opened anyway.
        """
        try:
            self._check_different()
            for directory in self.directories:
                unless_offline(directory.lock)
            on_locked()
            plans = [plan(d, found) for d in self._live() if (found := unless_offline(d.folders)) is not None]
            check_unique(plans)
            self._check_alive()
            started = self._open(plans, on_progress)
            self._cleaner.offsets.read()
            self._check_alive()
        except BaseException:
            self._unlock()
            raise
        self._schedule = scheduled(self.config, self._now_ms())
        self.is_started = True
        return started

    def _check_different(self) -> None:
        seen: dict[str | None, str] = {}
        for d in self.directories:
            real = unless_offline(partial(d.disk.real_path, d.path))
            if real in seen and real is not None:
                raise Invalid(f"log.dirs: {seen[real]} and {d.path} are the same folder; name it once")
            seen[real] = d.path

    def _open(self, plans: list[Plan], on_progress: Callable[[Progress], None]) -> Started:
        for directory in self._live():
            unless_offline(directory.consume_clean_shutdown_file)
            unless_offline(directory.read_checkpoints)
        self._opener.on_progress = on_progress
        for made in self._opener.open_all(plans, self.config.num_recovery_threads_per_data_dir):
            if isinstance(made, Unopened):
                self._unopened[made.partition] = made
            elif made.log.folder.path.endswith(FUTURE_DIR):
                self._future[made.partition] = made
            else:
                self._current[made.partition] = made
        for p in plans:
            for found in p.doomed:
                self._doom(p.directory, found.path)
        damaged = tuple(corrupt for d in self._live() for corrupt in d.said.damaged)
        return Started(tuple(self._unopened.values()), damaged, tuple(found.path for p in plans for found in p.strays))

    def stop(self, broker_epoch: int = NO_BROKER_EPOCH) -> tuple[LogError, ...]:
        """Closes all logs and unlocks the directories; returns the errors. The logs cannot be used afterwards.

        A directory whose logs were all opened and closed gets a clean shutdown file with this broker epoch. After a start that
        failed, and after a stop, nothing is written: the directories may be another process's, or their logs not recovered.
        """
        if not self.is_started:
            return ()
        self.is_started = False
        self._cleaner.stop()
        problems = self._cleaner.take_errors()
        problems += close_all(self._by_directory(), self.config.num_recovery_threads_per_data_dir, broker_epoch)
        self._unlock()
        self._current, self._future, self._unopened, self._doomed = {}, {}, {}, []
        return tuple(problems)

    def _unlock(self) -> None:
        for directory in self.directories:
            unless_offline(directory.unlock)
            self._disk.release(directory.path)

    # Queries

    @property
    def broker_epoch(self) -> int | None:
        """The epoch of the broker at the last clean shutdown; None unless all directories have the same."""
        epochs = {None if d.failure else d.broker_epoch for d in self.directories}
        return epochs.pop() if len(epochs) == 1 else None

    @property
    def offline(self) -> tuple[Offline, ...]:
        """The errors of the directories that are offline."""
        return tuple(d.failure for d in self.directories if d.failure is not None)

    @property
    def uncleanable(self) -> Mapping[TopicPartition, LogError]:
        """The compacted logs that the cleaner leaves alone since an error, with that error."""
        return self._cleaner.uncleanable

    def cleaner_status(self) -> CleanerStatus | None:
        """The metrics of the log cleaner; None if it is disabled."""
        return self._cleaner.status(directory.path for directory in self.directories)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions with a log, sorted."""
        return tuple(sorted(partition for partition, managed in self._current.items() if managed.is_online))

    def log(self, partition: TopicPartition, *, future: bool = False) -> UnifiedLog:
        """A partition's log; if `future`, the one that will replace it (Kafka's future log).

        Raises NotFound, Offline, the error of a log that could not be opened; Unreadable if it may be in an offline directory.
        """
        managed = (self._future if future else self._current).get(partition)
        if managed is not None:
            if managed.directory.failure is not None:
                raise managed.directory.failure
            return managed.log
        if partition in self._unopened:
            raise self._unopened[partition].error
        if self.offline:
            raise self._perhaps_offline(partition)
        raise NotFound(f"{partition}: no such log in {', '.join(d.path for d in self._live())}")

    def _perhaps_offline(self, partition: TopicPartition) -> Unreadable:
        return Unreadable(f"{partition}: its log may be in a directory that is offline: {_listed(self.offline)}")

    def _live(self) -> list[DataDir]:
        return [d for d in self.directories if d.failure is None]

    def _logs(self) -> list[ManagedLog]:
        return [managed for managed in (*self._current.values(), *self._future.values()) if managed.is_online]

    def _in(self, directory: DataDir) -> list[ManagedLog]:
        return [managed for managed in self._logs() if managed.directory is directory]

    def _by_directory(self) -> list[tuple[DataDir, list[ManagedLog]]]:
        return [(directory, self._in(directory)) for directory in self._live()]

    def _config_of(self, topic: str) -> LogConfig:
        config = self._topics.get(topic, self._default)
        return replace(config, remote_storage_enable=False) if topic in _NEVER_TIERED else config

    def check_started(self) -> None:
        """Raises Invalid before a start, after one that failed, and after a stop: the directories may be another process's."""
        if not self.is_started:
            paths = ", ".join(d.path for d in self.directories)
            raise Invalid(f"{paths}: the logs are not open, so nothing is written; start first")

    def _check_alive(self) -> None:
        if not self._live():
            raise Unreadable(f"every log directory is offline: {_listed(self.offline)}")

    # Commands

    def configure(self, topic: str, config: LogConfig) -> None:
        """Changes a topic's settings. They apply to its open logs at once."""
        self._topics[topic] = config
        for managed in self._logs():
            if managed.partition.topic == topic:
                was_compacted = managed.log.folder.config.compact
                managed.log.folder.config = self._config_of(topic)
                if was_compacted and not managed.log.folder.config.compact:
                    self._cleaner.abort(managed.partition)

    def verify_transactions(self) -> None:
        """From now on a transaction's first batch needs a verification in every log: who appends asks a coordinator first."""
        self._verifies_transactions = True
        for managed in self._logs():
            managed.log.producers.verifies_transactions = True

    def _new_producers(self, disk: WritableDisk, folder: str, now_ms: Callable[[], int]) -> ProducerStateManager:
        return ProducerStateManager(
            disk,
            folder,
            now_ms,
            expiration_ms=self.config.producer_id_expiration_ms,
            transaction_timeout_max_ms=self.config.transaction_max_timeout_ms,
            verifies_transactions=self._verifies_transactions,
        )

    def get_or_create(self, partition: TopicPartition, topic_id: str | None = None, *, is_new: bool = False) -> UnifiedLog:
        """The partition's log. If it is missing, it is created in the directory with the fewest logs that is not offline.

        While a directory is offline, the log may be in it, so it is created only if `is_new`, and never if it is known to be
        in it. Raises Invalid (InconsistentTopicId included), Offline, Unreadable, and the error of a log that cannot be opened.
        """
        self.check_started()
        managed = self._current.get(partition)
        if managed is None or not managed.is_online:
            managed = self._current[partition] = self._created(partition, is_new=is_new)
        if topic_id is not None:
            managed.assign_topic_id(topic_id)
        return managed.log

    def _created(self, partition: TopicPartition, *, is_new: bool) -> ManagedLog:
        if partition in self._unopened and self._unopened[partition].directory.failure is None:
            raise self._unopened[partition].error
        if parse_partition_dir(str(partition)) != partition:
            raise Invalid(
                f"{partition}: expected a topic of 1 to 249 letters, digits, dots, - and _, and a number of 0 to 2^31-1"
            )
        if self.offline and not is_new:
            raise self._perhaps_offline(partition)
        self._check_alive()
        if partition in self._current or partition in self._unopened:
            self.log(partition)  # raises why it is not online
        for directory in sorted(self._live(), key=lambda d: len(self._in(d))):
            path = f"{directory.path}/{partition}"
            unless_offline(partial(self._forget_earlier, directory, partition))
            managed = unless_offline(partial(self._opener.open, directory, partition, path, clean=True, is_new=True))
            if managed is not None:
                return managed
        raise Unreadable(f"{partition}: no log directory takes it: {_listed(self.offline)}")

    def _forget_earlier(self, directory: DataDir, partition: TopicPartition) -> None:
        """Writes the checkpoints without those of an earlier log of that name, whose folder was gone at the start already.

        After a crash the new log would be recovered from that log's recovery point, and be deleted up to its log start offset.
        """
        if partition in directory.said.recovery_points or partition in directory.said.log_start_offsets:
            self.checkpoint([directory])

    def delete(self, partition: TopicPartition) -> None:
        """Deletes a log, also one that could not be opened: the log at once, its files after file.delete.delay.ms.

        Raises NotFound, Offline.
        """
        name = marked_log_dir(partition, self._new_id(), DELETE_DIR)
        if partition not in self._current and partition in self._unopened:
            unopened = self._unopened.pop(partition)
            directory = unopened.directory
            directory.rename(unopened.path, name)
            directory.unopened.discard(partition)
        else:
            self.log(partition)
            managed = self._current[partition]
            directory = managed.directory
            with self._cleaner.deleting(managed):
                del self._current[partition]
                managed.rename(name)
            managed.log.wake_waiters(everybody=True)  # what they wait for never comes
        self._doom(directory, f"{directory.path}/{name}")
        self.checkpoint([directory])

    def forget(self, partition: TopicPartition) -> None:
        """Forgets a log in an offline directory, for a caller that deletes it when the directory is back: it may be made anew."""
        for logs in (self._current, self._unopened):
            if partition in logs and logs[partition].directory.failure is not None:
                del logs[partition]

    def _doom(self, directory: DataDir, path: str) -> None:
        self._doomed.append(_Doomed(self._now_ms() + self._default.file_delete_delay_ms, path, directory))

    def truncate(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Truncates several logs, each to its offset. Unknown partitions are ignored. Raises Invalid, Offline."""
        cut = [self._current[p] for p, offset in offsets.items() if p in self._current and self._truncate(p, offset)]
        self.checkpoint({id(managed.directory): managed.directory for managed in cut}.values())

    def _truncate(self, partition: TopicPartition, offset: int) -> bool:
        log = self.log(partition)
        with self._cleaner.truncating(self._current[partition], offset):
            return log.truncate_to(offset)

    def truncate_fully_and_start_at(self, partition: TopicPartition, offset: int, log_start_offset: int | None = None) -> None:
        """Removes everything in a log, which starts again at `offset`. Raises NotFound, Offline."""
        log = self.log(partition)
        with self._cleaner.truncating(self._current[partition], 0):
            log.truncate_fully_and_start_at(offset, log_start_offset)
        self.checkpoint([self._current[partition].directory])

    def checkpoint(self, directories: Iterable[DataDir] | None = None) -> None:
        """Writes recovery points and log start offsets, of all directories unless given. Raises Offline."""
        for directory in self._live() if directories is None else directories:
            write_recovery_points(directory, self._in(directory))
            write_log_start_offsets(directory, self._in(directory))

    # Background tasks

    def tick(self, now_ms: int) -> tuple[LogError, ...]:
        """Runs the tasks that are due on all logs; returns the errors. Raises Unreadable once every directory is offline."""
        self.check_started()
        self._check_alive()
        problems: list[LogError] = []
        for task in self._schedule.due(now_ms):
            if task is Task.CLEANING:
                self._cleaner.run()
            problems += run_jobs(jobs_of(task, now_ms, self._by_directory(), self._archived_through, self._policies))
        due = [d for d in self._doomed if d.due_ms <= now_ms]
        latest_ms = now_ms + self._default.file_delete_delay_ms  # the clock may have been set back
        self._doomed = [replace(d, due_ms=min(d.due_ms, latest_ms)) for d in self._doomed if d.due_ms > now_ms]
        problems += run_jobs((d.directory, partial(_delete_folder, d)) for d in due)
        problems += run_jobs((m.directory, m.log.folder.delete_due) for m in self._logs())
        problems += self._cleaner.take_errors()
        self._check_alive()
        return tuple(problems)


def _delete_folder(doomed: _Doomed) -> None:
    with suppress(NotFound):
        doomed.directory.disk.delete_folder(doomed.path)


def _listed(failures: Iterable[Offline]) -> str:
    return "; ".join(str(failure) for failure in failures)
