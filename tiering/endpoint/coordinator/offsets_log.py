"""Where a coordinator keeps its records, and what it finds there when it starts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from tiering.endpoint.coordinator.records import Record

if TYPE_CHECKING:  # the engine that writes is loaded only if it is needed
    from local_log.engine.producers.state import Verification
    from local_log.engine.unified_log import UnifiedLog

NAME: Final = "__consumer_offsets"


Transaction = tuple[int, int]
"""The number of a partition of the topic, and a producer id. Each partition has its own marker."""


@dataclass(frozen=True, slots=True)
class TransactionalProducer:
    """Who appends as part of a transaction, and what the partition's log needs to begin it."""

    producer_id: int
    producer_epoch: int
    verification: "Verification | None" = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """A record of the topic, and the transaction that it belongs to."""

    record: Record
    offset: int
    transaction: Transaction | None = None


@dataclass(frozen=True, slots=True)
class EndOfTransaction:
    """A transaction's marker."""

    transaction: Transaction
    is_committed: bool


class OffsetsLog(Protocol):
    """Where a coordinator keeps its records: `partitions` of the topic."""

    @property
    def partitions(self) -> int:
        """How many there are."""

    def append(self, group: str, records: Sequence[Record], now_ms: int, producer: TransactionalProducer | None = None) -> int:
        """Appends records of a group, all or none; returns the offset of the first. Raises LogError."""

    def append_at_once(self, group: str, records: Sequence[Record], now_ms: int) -> int | None:
        """Appends records of a group as `append`. None, without any change, if something had to be waited for."""

    def log_of(self, group: str) -> "UnifiedLog":
        """Where a group's records are. Raises LogError."""

    def open_producer(self, group: str, producer_id: int) -> TransactionalProducer | None:
        """The producer, if it has a transaction open where a group's records are. Raises LogError."""

    def load(self) -> Iterator[Loaded | EndOfTransaction]:
        """All that is there, in the order of each partition. Raises LogError."""


@lru_cache(maxsize=1_000)  # groups, whose names have 32,767 bytes at most
def partition_for(group: str, partitions: int) -> int:
    """The partition that keeps a group: by the absolute value of Java's hash code of its id, 0 for the one that has none."""
    code = 0
    units = group.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8 | units[at + 1])) & 0xFFFF_FFFF
    signed = code - (1 << 32) if code >> 31 else code
    return (0 if signed == -(1 << 31) else abs(signed)) % partitions
