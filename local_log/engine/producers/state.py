"""The state of one producer, and how a batch or a marker changes it (ProducerStateEntry, ProducerAppendInfo).

Changes are made on a copy, which replaces the producer's state once the batch is written.
"""

from collections import deque
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from local_log.engine.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from local_log.formats.primitives import INT32_MAX, previous_sequence
from local_log.formats.producer_snapshot import ProducerEntry
from local_log.formats.record import NO_SEQUENCE, NO_TIMESTAMP

BATCHES_KEPT = 5
"""The number of a producer's last batches for which duplicates are detected."""

NO_PRODUCER_EPOCH = -1
_EPOCH_MAX = (1 << 15) - 1


class Origin(Enum):
    """The sender of an append (Kafka's AppendOrigin)."""

    REPLICATION = "replication"
    """A follower's append, or a replay of the log: sequence numbers are not checked."""
    COORDINATOR = "coordinator"
    CLIENT = "client"
    RAFT_LEADER = "raft_leader"


class BatchMetadata(NamedTuple):
    """The metadata of one of a producer's last batches."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """The sequence number of its first record."""
        return previous_sequence(self.last_sequence, self.offset_delta)

    @property
    def first_offset(self) -> int:
        """The offset of its first record."""
        return self.last_offset - self.offset_delta


@dataclass(slots=True)
class Producer:
    """A producer's state. `txn_first_offset` is the first offset of its open transaction, None without one."""

    producer_id: int
    epoch: int = NO_PRODUCER_EPOCH
    coordinator_epoch: int = -1
    last_timestamp: int = NO_TIMESTAMP
    txn_first_offset: int | None = None
    batches: deque[BatchMetadata] = field(default_factory=lambda: deque(maxlen=BATCHES_KEPT))

    @property
    def last_sequence(self) -> int:
        """The last sequence number of the last batch; -1 if there is none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    def duplicate_of(self, epoch: int, first_sequence: int, last_sequence: int) -> BatchMetadata | None:
        """The batch among the last few with this epoch and these sequence numbers."""
        if epoch != self.epoch:
            return None
        return next((b for b in self.batches if (b.first_sequence, b.last_sequence) == (first_sequence, last_sequence)), None)

    def add_batch(self, epoch: int, batch: BatchMetadata) -> None:
        """Adds a batch as the last one; with a new epoch the earlier batches are dropped."""
        if epoch != self.epoch:
            self.batches.clear()
            self.epoch = epoch
        self.batches.append(batch)
        self.last_timestamp = batch.timestamp

    def take_over(self, newer: "Producer") -> None:
        """Takes the state of `newer`, which was created from this one."""
        if newer.epoch != self.epoch:
            self.batches.clear()
            self.epoch = newer.epoch
        self.batches.extend(newer.batches)
        self.coordinator_epoch = newer.coordinator_epoch
        self.txn_first_offset = newer.txn_first_offset
        self.last_timestamp = newer.last_timestamp

    def entry(self) -> ProducerEntry:
        """The producer's entry in a producer snapshot."""
        last = self.batches[-1] if self.batches else BatchMetadata(NO_SEQUENCE, -1, 0, NO_TIMESTAMP)
        return ProducerEntry(
            self.producer_id,
            self.epoch,
            last.last_sequence,
            last.last_offset,
            last.offset_delta,
            self.last_timestamp,
            self.coordinator_epoch,
            self.txn_first_offset,
        )


def producer_of(entry: ProducerEntry) -> Producer:
    """The producer of a snapshot entry."""
    producer = Producer(
        entry.producer_id,
        entry.producer_epoch,
        entry.coordinator_epoch,
        entry.last_timestamp,
        entry.current_txn_first_offset,
    )
    if entry.last_offset >= 0:
        last = BatchMetadata(entry.last_sequence, entry.last_offset, entry.offset_delta, entry.last_timestamp)
        producer.batches.append(last)
    return producer


@dataclass(frozen=True, slots=True)
class CompletedTxn:
    """A transaction that a marker at `last_offset` has ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class DataBatch(NamedTuple):
    """The fields of a batch that affect its producer's state."""

    epoch: int
    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int
    is_transactional: bool


class Marker(NamedTuple):
    """A marker that ends a transaction; `offset` is its batch's offset."""

    producer_epoch: int
    coordinator_epoch: int
    is_abort: bool
    offset: int
    timestamp: int


@dataclass(slots=True)
class Verification:
    """A pending verification of a transaction's first batch, with the lowest sequence number seen (VerificationStateEntry)."""

    timestamp: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool

    def lower(self, sequence: int, epoch: int) -> None:
        """Updates the lowest sequence number with a batch's, and the epoch."""
        if (epoch == self.epoch and self.lowest_sequence > sequence) or epoch > self.epoch:
            self.lowest_sequence, self.epoch = sequence, epoch


class ProducerUpdate:
    """The changes that one append makes to one producer."""

    def __init__(self, current: Producer, origin: Origin, verification: Verification | None = None) -> None:
        """`current` is the known state, or an empty one; it is not modified."""
        self._current = current
        self._origin = origin
        self._verification = verification
        self.updated = replace(current, batches=deque(maxlen=BATCHES_KEPT))
        self.started: list[int] = []
        """The first offsets of the transactions that start in the append."""

    def append(self, batch: DataBatch) -> None:
        """Adds a batch of records. Raises InvalidProducerEpoch, OutOfOrderSequenceNumber, InvalidTxnState."""
        self._check_epoch(batch.epoch, batch.first_offset, 0)
        if self._origin is Origin.CLIENT:
            self._check_sequence(batch)
        delta = batch.last_offset - batch.first_offset
        self.updated.add_batch(batch.epoch, BatchMetadata(batch.last_sequence, batch.last_offset, delta, batch.timestamp))
        if self.updated.txn_first_offset is None:
            if batch.is_transactional:
                self.updated.txn_first_offset = batch.first_offset
                self.started.append(batch.first_offset)
        elif not batch.is_transactional:
            raise InvalidTxnState(
                f"producer {self.updated.producer_id} has a transaction open from offset {self.updated.txn_first_offset} on, and "
                f"its batch at offset {batch.first_offset} is not part of one"
            )

    def end(self, marker: Marker, transaction_version: int = 0) -> CompletedTxn | None:
        """Applies a marker. None if no transaction was open. Raises InvalidProducerEpoch, TransactionCoordinatorFenced."""
        self._check_epoch(marker.producer_epoch, marker.offset, transaction_version)
        known = self.updated.coordinator_epoch
        if known > marker.coordinator_epoch and self._origin is not Origin.REPLICATION:
            raise TransactionCoordinatorFenced(
                f"the marker at offset {marker.offset} for producer {self.updated.producer_id} is of coordinator epoch "
                f"{marker.coordinator_epoch}; {known} has been seen"
            )
        first, updated = self.updated.txn_first_offset, self.updated
        if marker.producer_epoch != updated.epoch:
            updated.batches.clear()
            updated.epoch = marker.producer_epoch
        updated.coordinator_epoch = marker.coordinator_epoch
        updated.txn_first_offset = None
        updated.last_timestamp = marker.timestamp
        return None if first is None else CompletedTxn(updated.producer_id, first, marker.offset, marker.is_abort)

    def _check_epoch(self, epoch: int, offset: int, transaction_version: int) -> None:
        known = self.updated.epoch
        # In transaction version 2 the coordinator increments the epoch with each marker.
        if epoch > known or (epoch == known and transaction_version < 2):
            return
        if epoch == known and (self.updated.txn_first_offset is None or epoch == _EPOCH_MAX):
            return  # a retried marker
        if self._origin is not Origin.REPLICATION:
            raise InvalidProducerEpoch(
                f"producer {self.updated.producer_id} writes at offset {offset} with epoch {epoch}; {known} has been seen"
            )

    def _check_sequence(self, batch: DataBatch) -> None:
        first, updated, current = batch.first_sequence, self.updated, self._current
        asked = self._verification
        if asked is not None and asked.supports_epoch_bump and first != 0 and not current.batches:
            self._out_of_order(batch, "0, since nothing is known of this producer")
        if asked is not None and first > asked.lowest_sequence:
            self._out_of_order(batch, f"at most {asked.lowest_sequence}, which has been asked for before")
        if batch.epoch != updated.epoch:
            if first != 0 and updated.epoch != NO_PRODUCER_EPOCH:
                self._out_of_order(batch, f"0, since epoch {batch.epoch} is new after {updated.epoch}")
            return
        if updated.batches:
            last = updated.last_sequence
        else:
            last = current.last_sequence if batch.epoch == current.epoch else NO_SEQUENCE
        in_order = first == last + 1 or (first == 0 and last == INT32_MAX)
        if not in_order and current.epoch != NO_PRODUCER_EPOCH:
            self._out_of_order(batch, f"{last + 1}")

    def _out_of_order(self, batch: DataBatch, expected: str) -> None:
        raise OutOfOrderSequenceNumber(
            f"producer {self.updated.producer_id} writes sequence number {batch.first_sequence} at offset {batch.first_offset}; "
            f"expected {expected}"
        )
