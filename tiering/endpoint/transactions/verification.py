"""Whether a producer's batch may begin a transaction in a partition (KIP-890, Kafka's AddPartitionsToTxnManager).

Who appends asks here first, and hands what it is given to the append. A log takes no other first batch of a transaction. If the
transaction ends in between, its marker makes what was given worthless: a late batch begins no transaction that nobody ends.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.errors import TransactionError
from tiering.endpoint.transactions.transaction_coordinator import ProducerIdAndEpoch, TransactionCoordinator
from tiering.endpoint.transactions.transaction_metadata import BUMPS_EPOCHS_SINCE

if TYPE_CHECKING:  # the engine that writes is loaded only if it is needed
    from local_log.engine.producers.state import Verification
    from local_log.engine.unified_log import UnifiedLog


class Supported(Enum):
    """What a client knows of verification, by the version of its request."""

    NOTHING = auto()
    ABORTABLE = auto()
    """The error TRANSACTION_ABORTABLE."""
    ADDS_PARTITIONS = auto()
    """A batch adds its partition to the transaction; nobody does so before."""


def of_produce(version: int) -> Supported:
    """Of a client that sends Produce in this version."""
    return _of(version, 11)


def of_offset_commit(version: int) -> Supported:
    """Of a client that sends TxnOffsetCommit in this version."""
    return _of(version, 4)


def _of(version: int, abortable: int) -> Supported:
    if version > abortable:
        return Supported.ADDS_PARTITIONS
    return Supported.ABORTABLE if version == abortable else Supported.NOTHING


_AGAIN: Final = frozenset(
    {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}
    | {ErrorCode.NOT_COORDINATOR}
)


@dataclass(frozen=True, slots=True)
class FirstBatch:
    """The first of a request's batches for a partition."""

    transactional_id: str | None
    producer: ProducerIdAndEpoch
    sequence: int


@dataclass(frozen=True, slots=True)
class TransactionVerifier:
    """Asks the coordinator."""

    coordinator: TransactionCoordinator

    def verify(
        self, partition: TopicPartition, log: "UnifiedLog", batch: FirstBatch, supported: Supported
    ) -> "Verification | None":
        """What the append needs, None where it needs nothing. Raises TransactionError, other LogError."""
        adds, producer = supported is Supported.ADDS_PARTITIONS, batch.producer
        if batch.transactional_id is None:
            return None  # the log refuses it
        try:
            asked = log.ask_verification(producer.producer_id, batch.sequence, producer.epoch, supports_epoch_bump=adds)
        except LogError as e:
            if getattr(e, "code", None) == ErrorCode.INVALID_PRODUCER_EPOCH:
                raise TransactionError(ErrorCode.INVALID_PRODUCER_EPOCH) from e
            raise
        if asked is None:
            return None  # the transaction has begun there
        code = self._confirmed(batch.transactional_id, producer, partition, adds=adds)
        if code:
            raise TransactionError(_told(code, supported))
        return asked

    def _confirmed(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partition: TopicPartition, *, adds: bool
    ) -> ErrorCode:
        try:
            if not adds:
                return self.coordinator.verify(transactional_id, producer, (partition,))[partition]
            self.coordinator.add_partitions(transactional_id, producer, (partition,), BUMPS_EPOCHS_SINCE)
        except TransactionError as e:
            return e.code
        return ErrorCode.NONE


def _told(code: ErrorCode, supported: Supported) -> ErrorCode:
    """As producers know it."""
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and supported is Supported.NOTHING:
        return ErrorCode.INVALID_TXN_STATE
    return code


def told_to_producer(code: ErrorCode, supported: Supported) -> ErrorCode:
    """As Produce is answered: what older clients would not repeat is one that they do."""
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and supported is Supported.ADDS_PARTITIONS:
        return code
    return ErrorCode.NOT_ENOUGH_REPLICAS if code in _AGAIN else code
