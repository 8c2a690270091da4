"""The log directories that this process owns: their logs and topics (what a broker's LogManager and its metadata are to it).

    made → start → tick, tick, … → stop

Many threads may call a LocalTier. Its lock is for the log manager, which one thread at a time may call, and for the topics.
Looking up a log takes no lock, so that no append and no read waits for a tick.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from local_log.disk import WritableDisk
from local_log.engine.config import LogConfig
from local_log.engine.manager.background import Background
from local_log.engine.manager.cleaner_status import CleanerStatus
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.data_dir import DataDir
from local_log.engine.manager.guarded_disk import Offline, unless_offline
from local_log.engine.manager.log_manager import LogManager, Started
from local_log.engine.manager.retention import KAFKAS, DeletionPolicy, is_copied
from local_log.engine.manager.schedule import Schedule, Task
from local_log.engine.manager.startup import Progress
from local_log.engine.offsets import LogOffsets
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import LogError, NotFound, Unreadable
from local_log.formats.filenames import TOPICS, TopicPartition
from local_log.formats.partition_metadata import new_uuid
from tiering.local_tier import directory_files
from tiering.local_tier.adoption import Folder, adopted, merged, renamings
from tiering.local_tier.errors import UnknownTopicOrPartition
from tiering.local_tier.followed_starts import FollowedStarts
from tiering.local_tier.topics import check_name, config_of, more_partitions
from tiering.local_tier.topics_file import DELETED_MAX, Topic, Topics, write_topics
from tiering.local_tier.untiering import refuse_untiered, refuse_untiering

Settings = Callable[[str], Mapping[str, str]]
"""The settings of a topic by its name, where it has none of its own: by Kafka's names."""


class LocalTier:
    """The logs of `config.log_dirs`, which have no other replicas.

    `now_ms` returns ms since 1970, `random` numbers in [0, 1), `new_id` ids of 32 hexadecimal digits. `background` is where the
    log cleaner runs, by default in threads. Segments of tiered logs are deleted by `local_retention`, which asks the archive.
    """

    # The dependencies of a log manager, which a simulation replaces; a class for them would be used in this call alone.
    def __init__(
        self,
        disk: WritableDisk,
        config: ManagerConfig,
        now_ms: Callable[[], int],
        random: Callable[[], float],
        new_id: Callable[[], str],
        settings: Settings = lambda topic: {},
        background: Background | None = None,
        policies: Sequence[DeletionPolicy] = KAFKAS,
    ) -> None:
        self._disk, self._now_ms, self._new_id, self._settings = disk, now_ms, new_id, settings
        self._manager = LogManager(
            disk, config, now_ms, random, new_id, default=config_of("*", settings("*"), {}),
            archived_through=lambda partition: None, only_replica=True, background=background, policies=policies,
        )  # fmt: skip
        self.policies = tuple(policies)
        """Which old segments go."""
        self._lock = threading.RLock()
        self._known = Topics()
        self._names_of: tuple[Mapping[str, Topic], Mapping[str | None, str]] = ({}, {})
        self._starts = FollowedStarts()
        self._save_starts = Schedule.beginning(0, {})
        self.deleted = deque[str](maxlen=DELETED_MAX)
        """The ids of topics that were deleted since the start, the last ones."""
        self.notes: tuple[str, ...] = ()
        """What the last start did with topics and folders that somebody should know."""

    # Start and stop

    def start(self, on_progress: Callable[[Progress], None] = lambda progress: None) -> Started:
        """Locks the directories, recovers and opens the logs, and finds the topics. A directory that is new is formatted.

        Raises Invalid if a broker or another process has a directory, or for settings that a topic cannot have (also where
        tiering would end while only the archive has some of the records); Corrupt if a file of topics is damaged; Unreadable.
        """
        with self._lock:
            started = self._manager.start(on_progress, on_locked=self._read_topics)
            try:
                self._find_topics()
            except BaseException:
                self._manager.stop()
                raise
            return started

    def stop(self) -> tuple[LogError, ...]:
        """Flushes and closes the logs, and writes clean-shutdown files; returns the errors."""
        with self._lock:
            problems = self._keep_starts() if self._manager.is_started else ()
            return (*problems, *self._manager.stop())

    def tick(self) -> tuple[LogError, ...]:
        """Runs the background tasks that are due; returns the errors. Raises Unreadable once every directory is offline."""
        with self._lock:
            self._manager.check_started()
            now_ms = self._now_ms()
            problems = self._keep_starts() if self._save_starts.due(now_ms) else ()
            return (*problems, *self._manager.tick(now_ms))

    # Queries

    @property
    def directories(self) -> tuple[str, ...]:
        """The paths of the log directories."""
        return tuple(directory.path for directory in self._manager.directories)

    @property
    def manager_config(self) -> ManagerConfig:
        """The log manager's settings."""
        return self._manager.config

    @property
    def offline(self) -> tuple[Offline, ...]:
        """The errors of directories that are offline."""
        return self._manager.offline

    @property
    def was_clean(self) -> bool:
        """Whether all directories were cleanly shut down before the start, so that no log had to be recovered."""
        return all(directory.was_clean for directory in self._manager.directories)

    def topics(self) -> Mapping[str, Topic]:
        """The topics by name, as they are now; later changes make another mapping."""
        return self._known.topics

    def partitions(self, directory: str | None = None) -> tuple[TopicPartition, ...]:
        """The partitions with a log that is online, of one directory or of all, sorted."""
        return tuple(self.offsets(directory))

    def offsets(self, directory: str | None = None) -> dict[TopicPartition, LogOffsets]:
        """The offsets of the logs that are online, of one directory or of all, sorted."""
        logs = self.logs()
        return {p: log.offsets for p, log in logs.items() if directory is None or log.folder.path == f"{directory}/{p}"}

    def logs(self, topic: str | None = None) -> dict[TopicPartition, UnifiedLog]:
        """The logs that are online, of one topic or of all, sorted."""
        logs: dict[TopicPartition, UnifiedLog] = {}
        with self._lock:
            for partition in self._manager.partitions():
                if topic in (None, partition.topic):
                    with suppress(Offline):  # an append has found out meanwhile that the disk fails
                        logs[partition] = self._manager.log(partition)
        return logs

    def uncleanable(self) -> Mapping[TopicPartition, LogError]:
        """The partitions that the log cleaner leaves alone after an error."""
        return self._manager.uncleanable

    def cleaner_status(self) -> CleanerStatus | None:
        """The metrics of the log cleaner; None if it is disabled."""
        return self._manager.cleaner_status()

    def missing(self) -> tuple[TopicPartition, ...]:
        """Partitions of known topics without a log in any directory: a disk is offline or not mounted, or a log is damaged."""
        with self._lock:
            return self._known.missing(self._manager.partitions())

    def log(self, partition: TopicPartition) -> UnifiedLog:
        """A partition's log. Raises UnknownTopicOrPartition, Offline, and the error of a log that could not be opened."""
        try:
            return self._manager.log(partition)
        except NotFound as e:
            raise UnknownTopicOrPartition(str(e)) from e

    def is_tiered(self, partition: TopicPartition) -> bool:
        """Whether the local retention of a log waits for the archive. Raises as `log`."""
        return is_copied(self.log(partition).folder.config)

    def followed_start(self, partition: TopicPartition) -> int:
        """The offset below which the archive deletes records since they were deleted from the log. Raises as `log`."""
        return self._starts.look(partition, self.log(partition))

    def config(self, name: str) -> LogConfig:
        """The settings of a topic's logs. Raises UnknownTopicOrPartition."""
        return config_of(name, self._settings(name), self.topic(name).config)

    def defaults(self, name: str) -> Mapping[str, str]:
        """The settings that a topic has where it has none of its own, by Kafka's names."""
        return self._settings(name)

    def verify_transactions(self) -> None:
        """From now on a transaction's first batch needs a verification in every log (KIP-890)."""
        with self._lock:
            self._manager.verify_transactions()

    def checkpoint(self) -> None:
        """As LogManager, after saving what archives follow: else deleted records count as lost after a crash. Raises LogError."""
        with self._lock:
            for problem in self._keep_starts():
                raise problem
            self._manager.checkpoint()

    def read_files(self, name: str) -> dict[str, bytes]:
        """A file's content by its path, in the directories that are online and have it."""
        return directory_files.read_all(self._live(), name)

    def write_files(self, name: str, data: bytes) -> None:
        """Replaces a file in the directories that are online, durably. Raises Unreadable if none is, Invalid if not started."""
        with self._lock:
            self._manager.check_started()
            directory_files.replace_all(self._live(), name, data)
            if not self._live():
                raise self.offline[0]

    # Topics

    def create_topic(self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> Topic:
        """Creates a topic with its logs. Raises InvalidTopic, TopicExists, InvalidPartitions, InvalidTopicConfig, Unreadable."""
        with self._lock:
            check_name(name, self.topics())
            numbers, own = more_partitions(name, None, partitions), dict(config or {})
            config_of(name, self._settings(name), own)
            try:
                return self._make(name, Topic(new_uuid(self._new_id), numbers, own, being_made=numbers))
            except LogError:
                with suppress(LogError):  # what is left is deleted, or completed, by the next start
                    self.delete_topic(name)
                raise

    def create_partitions(self, name: str, count: int) -> Topic:
        """More partitions of a topic, `count` in all; asked again, it completes what has failed.

        Raises UnknownTopicOrPartition, InvalidPartitions, Unreadable.
        """
        with self._lock:
            topic = self.topic(name)
            numbers = more_partitions(name, topic, count)
            being_made = tuple(n for n in numbers if n in topic.being_made or n not in topic.partitions)
            return self._make(name, replace(topic, partitions=numbers, being_made=being_made))

    def alter_configs(self, name: str, changes: Mapping[str, str | None]) -> Topic:
        """Changes a topic's own settings; None removes one.

        Raises UnknownTopicOrPartition, InvalidTopicConfig (also where tiering would end while only the archive has some of the
        records), Unreadable.
        """
        with self._lock:
            own = {setting: text for setting, text in {**self.topic(name).config, **changes}.items() if text is not None}
            config, logs = config_of(name, self._settings(name), own), self.logs(name)
            refuse_untiering(name, config, logs.values())
            topic = self._starts.kept(self._known, logs).topics[name]
            offsets = topic.log_start_offsets if config.remote_storage_enable else {}
            self._save(self._known.with_topic(name, replace(topic, config=own, log_start_offsets=offsets)))
            self._manager.configure(name, config)
            self._keep_starts()
            return self.topic(name)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic: its logs at once, their files after file.delete.delay.ms. Its archive is left as it is.

        Raises UnknownTopicOrPartition, Unreadable.
        """
        with self._lock:
            topic, kept = self.topic(name), self._known.without(name)
            if topic.topic_id is not None:
                self._save(kept)
                self.deleted.append(topic.topic_id)
            left = [n for n in topic.partitions if not self._delete(TopicPartition(name, n))]
            if topic.topic_id is not None:  # the file has it, so that folders of it are deleted when their directory is back
                for number in left:
                    self._manager.forget(TopicPartition(name, number))
            else:  # after a crash nothing would tell its folders from those of a new topic
                self._save(kept)
            if topic.topic_id is not None and (not left or (not self.offline and {*left} <= {*topic.being_made})):
                self._save(self._known.without_deleted(topic.topic_id))

    def topic(self, name: str) -> Topic:
        """A topic by name. Raises UnknownTopicOrPartition."""
        topic = self.topics().get(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"topic {name} is not in {', '.join(self.directories)}; create it first")
        return topic

    def name_of(self, topic_id: str) -> str | None:
        """The name of the topic with this id, None if there is none."""
        (topics, names), now = self._names_of, self.topics()
        if topics is not now:
            names = {topic.topic_id: name for name, topic in now.items()}
            self._names_of = now, names
        return names.get(topic_id)

    def _make(self, name: str, topic: Topic) -> Topic:
        """Creates the logs of its being_made partitions. The topics are saved first, so that a crash leaves no half of it.

        Raises the first error, once the others are created; those that failed are being made yet.
        """
        self._save(self._known.with_topic(name, topic))
        self._manager.configure(name, config_of(name, self._settings(name), topic.config))
        failed: dict[int, LogError] = {}
        for number in topic.being_made:
            try:
                self._manager.get_or_create(TopicPartition(name, number), topic.topic_id, is_new=True)
            except LogError as e:
                failed[number] = e
        made = replace(topic, being_made=tuple(failed))
        self._save(self._known.with_topic(name, made))
        for error in failed.values():
            raise error
        return made

    def _delete(self, partition: TopicPartition) -> bool:
        """Deletes a log of a deleted topic; False if it is not there: its directory is offline, or not mounted."""
        self._starts.forget(partition)
        try:
            self._manager.delete(partition)
        except (NotFound, Unreadable):
            return False
        return True

    # The file of topics

    def _keep_starts(self) -> tuple[LogError, ...]:
        """Saves what archives follow of the log start offsets, if they have moved; returns the error."""
        kept = self._starts.kept(self._known, self.logs())
        if kept != self._known:
            try:
                self._save(kept)
            except LogError as e:
                return (e,)
        return ()

    def _live(self) -> list[DataDir]:
        return [directory for directory in self._manager.directories if directory.failure is None]

    def _read_topics(self) -> None:
        """Reads the topics, and renames folders of other ones, before the logs are opened with the topics' settings."""
        files: dict[str, Topics] = {}
        folders: list[Folder] = []
        for directory in self._live():
            with suppress(Offline):
                folders += directory_files.folders_in(directory)
                # A damaged file may be the newest: an older one would undo later changes.
                files |= directory_files.read_file(directory)
        known, messages = merged(files, folders)
        new = {f.topic_id for f in folders} - {None, *known.deleted} - {topic.topic_id for topic in known.topics.values()}
        self._known = adopted(known, folders, directory_files.settings_of_brokers(self._live()) if new else {})
        self._refuse_unmounted()
        self.notes = (*messages, *directory_files.rename_all(self._live(), renamings(self._known, folders), self._new_id))
        self._configure()

    def _refuse_unmounted(self) -> None:
        there = {one.name.partition for d in self._live() for one in unless_offline(d.folders) or () if not one.name.mark}
        missing = [p for p in self._known.missing(there) if p.partition not in self._known.topics[p.topic].being_made]
        for directory in self._live():
            unless_offline(partial(directory_files.refuse_unmounted, directory, self._known, missing))

    def _configure(self) -> None:
        """Gives the logs that are opened next the settings of their topics. Raises InvalidTopicConfig."""
        untiered: dict[str, Topic] = {}
        for name, topic in sorted(self._known.topics.items()):
            config = config_of(name, self._settings(name), topic.config)
            if topic.log_start_offsets and not config.remote_storage_enable:
                untiered[name] = topic
            self._manager.configure(name, config)
        for directory in self._live():
            unless_offline(partial(refuse_untiered, directory, untiered))

    def _find_topics(self) -> None:
        """Writes the topics where they are not yet, completes what a crash has interrupted, and formats new directories."""
        directory_files.format_new(self._live(), self._new_id)
        self._starts = FollowedStarts()
        period_ms = self._manager.config.flush_start_offset_checkpoint_interval_ms
        self._save_starts = Schedule.beginning(self._now_ms(), {Task.LOG_START_OFFSETS: (period_ms, period_ms)})
        paths = (unless_offline(partial(d.disk.real_path, d.path)) for d in self._live())
        known = self._starts.kept(self._known, self.logs()).used({path for path in paths if path is not None})
        if known != self._known or not all(directory_files.has(directory, self._known) for directory in self._live()):
            self._save(known)
        self._assign_ids()
        if not self.offline:  # else an offline directory may have what seems to be missing
            for name, topic in self._known.topics.items():
                if topic.being_made:
                    self._make(name, topic)

    def _assign_ids(self) -> None:
        """Writes the id of its topic into a log's folder that lacks it: archives are found by the ids in the folders.

        Not where only the archive has the log's first records: it was archived without an id, and would not be found by it.
        """
        for partition, log in self.logs().items():
            topic, now = self._known.topics.get(partition.topic), log.offsets
            if topic is not None and topic.topic_id is not None and now.log_start >= now.local_log_start:
                with suppress(Unreadable):
                    self._manager.get_or_create(partition, topic.topic_id)

    def _save(self, topics: Topics) -> None:
        """Writes the topics into every directory that is online. Raises Unreadable if none is, Invalid unless logs are open."""
        topics = replace(topics, version=self._known.version + 1)
        self.write_files(TOPICS, write_topics(topics))
        self._known = topics
