"""The topic `__consumer_offsets` in a log directory of its own: compacted, with the records of a group in one partition.

A real broker that is started on the directory goes on with these groups, and the other way round.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_log.engine.unified_log import UnifiedLog
from tiering.endpoint.coordinator.compacted_topic import ChecksRoom, CompactedTopic, always
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.offsets_log import NAME, EndOfTransaction, Loaded, TransactionalProducer, partition_for
from tiering.endpoint.coordinator.records import Record
from tiering.local_tier.local_tier import LocalTier


@dataclass(frozen=True, slots=True)
class OffsetsTopic:
    """The topic in a local tier that has started."""

    topic: CompactedTopic

    @classmethod
    def of(cls, tier: LocalTier, config: GroupCoordinatorConfig, check_room: ChecksRoom = always) -> "OffsetsTopic":
        """The topic as it is there, or made anew. Raises Invalid if some of its partitions are missing, Unreadable."""
        settings = {"compression.type": "producer", "segment.bytes": str(config.offsets_topic_segment_bytes)}
        return cls(CompactedTopic.of(tier, NAME, config.offsets_topic_partitions, settings, check_room))

    @property
    def partitions(self) -> int:
        """How many there are."""
        return self.topic.partitions

    def append(self, group: str, records: Sequence[Record], now_ms: int, producer: TransactionalProducer | None = None) -> int:
        """Appends records of a group, all or none; returns the offset of the first. Raises LogError."""
        number = partition_for(group, self.partitions)
        if producer is None:
            return self.topic.append(number, records, now_ms)
        of = (producer.producer_id, producer.producer_epoch)
        return self.topic.append(number, records, now_ms, of, producer.verification)

    def append_at_once(self, group: str, records: Sequence[Record], now_ms: int) -> int | None:
        """Appends records of a group as `append`. None, without any change, if something had to be waited for."""
        return self.topic.append_at_once(partition_for(group, self.partitions), records, now_ms)

    def log_of(self, group: str) -> UnifiedLog:
        """Where a group's records are. Raises LogError."""
        return self.topic.log(partition_for(group, self.partitions))

    def open_producer(self, group: str, producer_id: int) -> TransactionalProducer | None:
        """The producer, if it has a transaction open where a group's records are. Raises LogError."""
        known = self.log_of(group).producers.producers.get(producer_id)
        return None if known is None or known.txn_first_offset is None else TransactionalProducer(producer_id, known.epoch)

    def load(self) -> Iterator[Loaded | EndOfTransaction]:
        """All that is there, in the order of each partition. Raises LogError."""
        return self.topic.load()
