"""A group coordinator whose log is in memory, or refuses what is appended; and commits and fetches in one line each."""

from collections.abc import Iterator, Sequence
from typing import Any

from archive_fakes import CountingIds, SleptClock

from local_log.errors import Unreadable
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.offsets_log import EndOfTransaction, Loaded, TransactionalProducer, partition_for
from tiering.endpoint.coordinator.records import Record
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics


class MemoryLog:
    """What was appended, in order, and how much of it is synced; `is_broken` refuses more."""

    partitions = 50

    def __init__(self) -> None:
        self.kept: list[Loaded | EndOfTransaction] = []
        self.synced = 0
        self.is_broken = False

    def append(self, group: str, records: Sequence[Record], now_ms: int, producer: TransactionalProducer | None = None) -> int:
        if self.is_broken:
            raise Unreadable("the disk is gone")
        first = len(self.kept)
        transaction = None if producer is None else (partition_for(group, self.partitions), producer.producer_id)
        self.kept += (Loaded(record, first + delta, transaction) for delta, record in enumerate(records))
        return first

    def append_at_once(self, group: str, records: Sequence[Record], now_ms: int) -> int:
        return self.append(group, records, now_ms)

    def log_of(self, group: str) -> "MemoryLog":
        return self

    def open_producer(self, group: str, producer_id: int) -> TransactionalProducer | None:
        return TransactionalProducer(producer_id, 0)

    def sync_appended(self) -> None:
        if self.is_broken:
            raise Unreadable("the disk is gone")
        self.synced = len(self.kept)

    def load(self) -> Iterator[Loaded | EndOfTransaction]:
        yield from self.kept


class Coordinator:
    """A coordinator, its clock and its log; `said` is what it reported."""

    def __init__(self, log: Any = None, **config: int) -> None:
        self.clock = SleptClock()
        self.said: list[str] = []
        self.log = MemoryLog() if log is None else log
        self.config = GroupCoordinatorConfig(**config)
        self.groups = self.started()

    def started(self) -> GroupCoordinator:
        """Another one, with what the log has."""
        found = GroupCoordinator(self.config, self.log, self.clock, CountingIds(), self.said.append)
        found.load()
        self.groups = found
        return found

    def commit(self, offset: int, *, group: str = "readers", partition: int = 0, version: int = 9, **more: Any) -> int:
        """The error code of a commit of one partition of the topic `orders`."""
        of_topic = {name: more.pop(name) for name in ("topic_id",) if name in more}
        of_partition = {name: more.pop(name) for name in ("committed_leader_epoch", "committed_metadata") if name in more}
        one = OffsetCommitRequestPartition(partition, offset, **of_partition)
        request = OffsetCommitRequest(group, topics=(OffsetCommitRequestTopic("orders", partitions=(one,), **of_topic),), **more)
        return self.groups.commit_offsets(request, version).topics[0].partitions[0].error_code

    def fetch(self, *partitions: int, group: str = "readers", require_stable: bool = False, topic_id: str | None = None) -> Any:
        """Offset, leader epoch, metadata and error code by partition of `orders`; of all topics without partitions."""
        ids = {} if topic_id is None else {"topic_id": topic_id}
        topics = (OffsetFetchRequestTopics("orders", partition_indexes=partitions, **ids),) if partitions else None
        found = self.groups.fetch_offsets(OffsetFetchRequestGroup(group, topics=topics), require_stable=require_stable)
        return {
            (topic.name, one.partition_index): (
                one.committed_offset,
                one.committed_leader_epoch,
                one.metadata,
                one.error_code,
            )
            for topic in found.topics
            for one in topic.partitions
        }

    def offsets(self, group: str = "readers") -> dict[tuple[str, int], int]:
        """All committed offsets of a group."""
        return {partition: found[0] for partition, found in self.fetch(group=group).items()}

    def delete(self, *partitions: int, group: str = "readers") -> Any:
        """The response to a deletion of offsets of `orders`."""
        of_topic = OffsetDeleteRequestTopic("orders", tuple(map(OffsetDeleteRequestPartition, partitions)))
        return self.groups.delete_offsets(OffsetDeleteRequest(group, (of_topic,)))
