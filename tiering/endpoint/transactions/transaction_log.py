"""Where a coordinator keeps its records, and the partitions in which its transactions end."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol

from local_log.formats.filenames import TopicPartition
from tiering.endpoint.coordinator.records import Record
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.transaction_metadata import TransactionMetadata

NAME: Final = "__transaction_state"

LoadedTransaction = tuple[str, TransactionMetadata | None]
"""A transactional id and its state, None where it was forgotten."""


class TransactionLog(Protocol):
    """Where a coordinator keeps its records."""

    def append(self, transactional_id: str, record: Record, now_ms: int) -> None:
        """Appends a record of a transactional id. Raises LogError."""

    def forget(self, transactional_ids: Iterable[str], now_ms: int) -> Iterator[Sequence[str]]:
        """Appends tombstones, many at once; the ids of each append after it. Raises the first LogError, after all others."""

    def load(self) -> Iterator[LoadedTransaction]:
        """All that is there, in the order of each partition. Raises LogError."""

    def epoch(self, transactional_id: str) -> int:
        """The coordinator's epoch: the leader epoch of the partition. Raises LogError."""


class Marker(NamedTuple):
    """How a producer's transaction ends."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    is_committed: bool
    transaction_version: int = 0


class WritesMarkers(Protocol):
    """What ends transactions in their partitions."""

    def write(self, partition: TopicPartition, marker: Marker) -> ErrorCode:
        """Whether the partition has the marker. One that it has already changes nothing."""
