"""The topic `__transaction_state` in a log directory of its own: compacted, with a transactional id in one partition.

A real broker that is started on the directory goes on with these transactions, and the other way round.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from local_log.errors import LogError, placed
from tiering.endpoint.coordinator.compacted_topic import ChecksRoom, CompactedTopic, always
from tiering.endpoint.coordinator.offsets_log import Loaded, partition_for
from tiering.endpoint.coordinator.records import Record, in_batches
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.records import read_metadata, read_transactional_id, transaction_tombstone
from tiering.endpoint.transactions.transaction_log import NAME, LoadedTransaction
from tiering.local_tier.local_tier import LocalTier

_TOMBSTONE_BYTES: Final = 50
"""Of a tombstone besides its text."""


@dataclass(frozen=True, slots=True)
class TransactionsTopic:
    """The topic in a local tier that has started."""

    topic: CompactedTopic
    syncs: bool = False

    @classmethod
    def of(cls, tier: LocalTier, config: TransactionConfig, check_room: ChecksRoom = always) -> "TransactionsTopic":
        """The topic as it is there, or made anew. Raises Invalid if some of its partitions are missing, Unreadable."""
        settings = {"compression.type": "uncompressed", "segment.bytes": str(config.state_segment_bytes)}
        return cls(CompactedTopic.of(tier, NAME, config.state_partitions, settings, check_room), config.syncs)

    def append(self, transactional_id: str, record: Record, now_ms: int) -> None:
        """Appends a record of a transactional id. Raises LogError."""
        self._append(self._number(transactional_id), [record], now_ms)

    def forget(self, transactional_ids: Iterable[str], now_ms: int) -> Iterator[Sequence[str]]:
        """Appends tombstones, many of a partition at once; the ids of each append after it.

        Raises the first LogError, once it has gone on with the other partitions.
        """
        by_partition: dict[int, list[str]] = defaultdict(list)
        for one in transactional_ids:
            by_partition[self._number(one)].append(one)
        errors: list[LogError] = []
        for number, of_partition in by_partition.items():
            try:
                for batch in in_batches(of_partition, lambda one: 3 * len(one) + _TOMBSTONE_BYTES):
                    self._append(number, [transaction_tombstone(one) for one in batch], now_ms)
                    yield batch
            except LogError as e:
                errors.append(e)
        for error in errors:
            raise error

    def _append(self, number: int, records: Sequence[Record], now_ms: int) -> None:
        self.topic.append(number, records, now_ms)
        if self.syncs:
            self.topic.log(number).sync_appended()

    def load(self) -> Iterator[LoadedTransaction]:
        """All that is there, in the order of each partition. Raises LogError."""
        with placed(NAME):
            for found in self.topic.load():
                if isinstance(found, Loaded):
                    transactional_id = read_transactional_id(found.record.key)
                    value = found.record.value
                    if transactional_id is not None:
                        yield transactional_id, None if value is None else read_metadata(transactional_id, value)

    def epoch(self, transactional_id: str) -> int:
        """The coordinator's epoch: the leader epoch of the partition. Raises LogError."""
        return self.topic.log(self._number(transactional_id)).epochs.latest_epoch or 0

    def _number(self, transactional_id: str) -> int:
        return partition_for(transactional_id, self.topic.partitions)
