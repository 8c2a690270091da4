"""Brokers of our own engine with replicas, producers and the time, as Kafka's tests of its tiers set them up.

A segment takes one batch or two, by the size of its indexes, and local retention keeps as little as it may. Every record is a
batch of its own; record n has the key k<n> and the value v<n>.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import NamedTuple, Self

import pyarrow as pa
from archive_fakes import SleptClock

from local_log.engine.config import LogConfig, read_config
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.offsets import Isolation as ReadUpTo
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.control import ControlType
from local_log.formats.filenames import TopicPartition
from local_log.formats.record_batch.few_records import write_marker
from local_log.formats.record_batch.writer import RECORDS, NewBatch, write_batch
from local_log.log_dir import LogDir
from local_log.os_disk import OsDisk, OsWritableDisk

A, B = TopicPartition("topicA", 0), TopicPartition("topicB", 0)
CHECK_MS = 1_000
HOUR_MS = 3_600_000


class HastyDisk(OsWritableDisk):
    """Does not wait for the device: no test pulls the plug."""

    def sync(self, file: str) -> None:
        """See WritableDisk."""
        assert self.exists(file)

    def sync_folder(self, folder: str) -> None:
        """See WritableDisk."""
        assert self.exists(folder)


class Producer(NamedTuple):
    """A transactional producer; every record of it is part of a transaction."""

    id: int
    epoch: int = 0


def values(*numbers: int) -> list[str]:
    """The values of the records of these numbers."""
    return [f"v{n}" for n in numbers]


def topic_id(topic: str) -> str:
    """The id of a topic of these tests."""
    return f"{topic:A<22}"


def tiered_topic(batches_per_segment: int, **settings: str) -> LogConfig:
    """A topic's settings, those of TieredStorageTestUtils; further ones with underscores for their dots."""
    named = {
        "remote.storage.enable": "true",
        "index.interval.bytes": "1",
        "segment.index.bytes": str(12 * batches_per_segment),
        "local.retention.bytes": "1",
    }
    return read_config(named | {name.replace("_", "."): text for name, text in settings.items()})


@dataclass
class Broker:
    """One of the cluster's brokers, with a directory for its logs or several."""

    number: int
    folders: tuple[Path, ...]
    manager: LogManager

    def folder_of(self, partition: TopicPartition) -> Path | None:
        """The directory that has the partition."""
        return next((f for f in self.folders if (f / str(partition)).is_dir()), None)

    def log_dirs(self) -> list[LogDir]:
        """Its directories as a sidecar reads them."""
        return [LogDir(OsDisk(), str(folder)) for folder in self.folders]


@dataclass
class Brokers:
    """Brokers with topics that replicas have, and the time, which goes on only in `later`. Nothing is archived yet."""

    base: Path
    brokers: list[Broker] = field(default_factory=list)
    clock: SleptClock = field(default_factory=SleptClock)
    replicas: dict[TopicPartition, list[int]] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    configs: dict[str, LogConfig] = field(default_factory=dict)
    _sequences: dict[tuple[TopicPartition, Producer], int] = field(default_factory=dict)

    @classmethod
    def of(cls, base: Path, brokers: int = 1, *, log_dirs: int = 1) -> Self:
        """So many brokers that run."""
        cluster = cls(base)
        for number in range(brokers):
            folders = tuple(base / f"broker-{number}" / f"logs-{at}" for at in range(log_dirs))
            cluster.brokers.append(Broker(number, folders, cluster._started(folders)))
        return cluster

    def _started(self, folders: Sequence[Path]) -> LogManager:
        config = ManagerConfig(
            log_dirs=tuple(map(str, folders)),
            initial_task_delay_ms=0,
            retention_check_interval_ms=CHECK_MS,
            flush_start_offset_checkpoint_interval_ms=0,
            high_watermark_checkpoint_interval_ms=0,
        )
        numbers = count(1)
        manager = LogManager(
            HastyDisk(),
            config,
            self.clock.now_ms,
            lambda: 0.0,
            lambda: f"{next(numbers):032x}",
            topics=self.configs,
            archived_through=self.archived_through,
        )
        manager.start()
        return manager

    def archived_through(self, partition: TopicPartition) -> int:
        """The last offset that is archived, which is all that local retention may take."""
        return -1

    # Topics and who has them

    def create_topic(
        self, topic: str, assignment: Mapping[int, Sequence[int]] | None = None, *, batches_per_segment: int = 1, **settings: str
    ) -> None:
        """A topic with these brokers for each partition, the leader first; by default of one partition on broker 0."""
        self.configure(topic, tiered_topic(batches_per_segment, **settings))
        self.create_partitions(topic, assignment or {0: [0]})

    def create_partitions(self, topic: str, assignment: Mapping[int, Sequence[int]]) -> None:
        """More partitions of a topic."""
        for number, replicas in assignment.items():
            partition = TopicPartition(topic, number)
            self.replicas[partition], self.epochs[partition] = list(replicas), 0
            for broker in replicas:
                self.manager(broker).get_or_create(partition, topic_id(topic), is_new=True)
            self.log(partition).epochs.assign(0, 0)

    def configure(self, topic: str, config: LogConfig) -> None:
        """Gives a topic these settings."""
        self.configs[topic] = config
        for broker in self.brokers:
            broker.manager.configure(topic, config)

    def change(self, topic: str, **settings: object) -> None:
        """Changes some of a topic's settings, by our names for them."""
        self.configure(topic, replace(self.configs[topic], **settings))  # type: ignore[arg-type]

    def lead(self, partition: TopicPartition, broker: int) -> None:
        """Another replica becomes leader, in a new leader epoch."""
        self.replicas[partition].sort(key=lambda number: number != broker)
        assert self.replicas[partition][0] == broker
        self.epochs[partition] += 1
        log = self.log(partition)
        log.epochs.assign(self.epochs[partition], log.log_end_offset)

    def drop_replica(self, partition: TopicPartition, broker: int) -> None:
        """A replica less; its files go."""
        self.replicas[partition].remove(broker)
        self.manager(broker).delete(partition)

    def delete_topic(self, topic: str) -> None:
        """Deletes a topic from the brokers."""
        for partition in [p for p in self.replicas if p.topic == topic]:
            for broker in self.replicas.pop(partition):
                self.manager(broker).delete(partition)

    # What brokers do

    def log(self, partition: TopicPartition, broker: int | None = None) -> UnifiedLog:
        """A replica's log, the leader's unless said otherwise."""
        return self.manager(self.replicas[partition][0] if broker is None else broker).log(partition)

    def produce(
        self,
        partition: TopicPartition,
        *numbers: int,
        times: Mapping[int, int] | None = None,
        by: Producer | None = None,
        replicated: bool = True,
    ) -> None:
        """Appends records, each a batch, now or at the times that are given for them; in a transaction of `by`."""
        for n in numbers:
            self._append(partition, self._batch(partition, n, (times or {}).get(n, self.clock.now), by), Origin.CLIENT)
        if replicated:
            self.replicate(partition)

    def _batch(self, partition: TopicPartition, n: int, time: int, by: Producer | None) -> bytes:
        row = {"offset": 0, "timestamp": time, "key": b"k%d" % n, "value": b"v%d" % n, "headers": []}
        new = NewBatch(0)
        if by is not None:
            sequence = self._sequences.get((partition, by), 0)
            self._sequences[partition, by] = sequence + 1
            new = NewBatch(0, producer_id=by.id, producer_epoch=by.epoch, base_sequence=sequence, is_transactional=True)
        return write_batch(new, pa.RecordBatch.from_pylist([row], schema=RECORDS))

    def end_transaction(self, by: Producer, *partitions: TopicPartition, commits: bool, epoch: int | None = None) -> None:
        """Writes a transaction's markers, in the producer's epoch or in a later `epoch` that the coordinator gave it."""
        control = ControlType.COMMIT if commits else ControlType.ABORT
        raised = by.epoch if epoch is None else epoch
        for p in partitions:
            marker = write_marker(
                0, self.clock.now, control, producer_id=by.id, producer_epoch=raised, coordinator_epoch=0
            )  # fmt: skip
            self._append(p, marker, Origin.COORDINATOR, transaction_version=2 if raised > by.epoch else 0)
            self.replicate(p)

    def _append(self, partition: TopicPartition, batch: bytes, origin: Origin, *, transaction_version: int = 0) -> None:
        self.log(partition).append_as_leader(batch, self.epochs[partition], origin, transaction_version)

    def replicate(self, partition: TopicPartition) -> None:
        """All replicas fetch what they lack; then all of it is replicated, and written down as such."""
        leader = self.log(partition)
        for broker in self.replicas[partition][1:]:
            follower = self.log(partition, broker)
            while follower.log_end_offset < leader.log_end_offset:
                fetched = leader.read(follower.log_end_offset, 1, ReadUpTo.LOG_END)  # a batch, as each was produced alone
                follower.append_as_follower(fetched.records, self.epochs[partition])
        for broker in self.replicas[partition]:
            self.log(partition, broker).update_high_watermark(leader.log_end_offset)
            self.tick(broker)

    def delete_records(self, partition: TopicPartition, offset: int) -> None:
        """Kafka's DeleteRecords: the log starts at `offset`, on every replica."""
        for broker in self.replicas[partition]:
            self.log(partition, broker).maybe_increment_log_start_offset(offset)
            self.tick(broker)

    def restart(self, broker: int, *, without: Sequence[str] = ()) -> None:
        """Stops a broker and starts it, meanwhile without some of the files in its directories."""
        one = self.brokers[broker]
        assert one.manager.stop() == ()
        for folder in one.folders:
            for name in without:
                (folder / name).unlink()
        self._start(one)

    def alter_log_dir(self, partition: TopicPartition, broker: int) -> None:
        """A replica's folder moves to the other directory of its broker."""
        one = self.brokers[broker]
        assert one.manager.stop() == ()
        at = one.folder_of(partition)
        (other,) = (folder for folder in one.folders if folder != at)
        shutil.move(f"{at}/{partition}", other)
        self._start(one)

    def _start(self, broker: Broker) -> None:
        broker.manager = self._started(broker.folders)
        for partition in [p for p, replicas in self.replicas.items() if broker.number in replicas]:
            self.replicate(partition)

    def tick(self, broker: int) -> None:
        assert self.manager(broker).tick(self.clock.now) == ()

    def manager(self, broker: int) -> LogManager:
        return self.brokers[broker].manager

    def later(self, ms: int) -> None:
        """The time after so many milliseconds, and what brokers then do by themselves."""
        self.clock.now += ms
        for broker in self.brokers:
            self.tick(broker.number)

    def local(self, partition: TopicPartition, broker: int | None = None) -> list[int]:
        """The base offsets of the segments that lie in a replica's folder, the leader's unless said otherwise."""
        folder = self.brokers[self.replicas[partition][0] if broker is None else broker].folder_of(partition)
        assert folder is not None
        return sorted(int(file.stem) for file in (folder / str(partition)).glob("*.log"))
