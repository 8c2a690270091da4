"""A transactional id with its producer and its transaction, and each change of it (Kafka's TransactionMetadata). Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from local_log.formats.filenames import TopicPartition
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.errors import TransactionError
from tiering.endpoint.transactions.transaction_states import (
    DEAD,
    EMPTY,
    ENDS,
    IDLE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
    PREVIOUS,
    TransactionState,
)

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIME_MS: Final = -1
EPOCH_MAX: Final = (1 << 15) - 1
BUMPS_EPOCHS_SINCE: Final = 2
"""The transaction version since which each end of a transaction has a new epoch (KIP-890)."""


def is_exhausted(epoch: int) -> bool:
    """Whether no client gets an epoch after this one; the greatest is left to fence it."""
    return epoch >= EPOCH_MAX - 1


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """What a record keeps, but for `last_producer_epoch`, the one before a change that a client may ask for again."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    last_update_ms: int
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The id that the client has when the markers of the old one are written, where its epochs end."""
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    state: TransactionState = EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    """Those of the open transaction; of a prepared one, those that lack their marker."""
    start_ms: int = NO_TIME_MS
    client_version: int = 0
    """The transaction version of the client that changed it last."""

    @property
    def bumps_epochs(self) -> bool:
        """Whether each end has a new epoch."""
        return self.client_version >= BUMPS_EPOCHS_SINCE

    def next_epoch(self, timeout_ms: int, expected_epoch: int | None, now_ms: int) -> "TransactionMetadata":
        """A producer begins, which has `expected_epoch` if it goes on after an error. Raises TransactionError if it is fenced."""
        epoch, last = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if expected_epoch == self.producer_epoch or self.producer_epoch == NO_PRODUCER_EPOCH:
                last = self.producer_epoch
            elif expected_epoch == self.last_producer_epoch:  # asked again: nobody else has begun since
                epoch, last = self.producer_epoch, self.last_producer_epoch
            else:
                raise TransactionError(ErrorCode.PRODUCER_FENCED)
        return self._begun(timeout_ms, now_ms, producer_epoch=epoch, last_producer_epoch=last)

    def next_id(self, producer_id: int, timeout_ms: int, now_ms: int, *, is_expected: bool) -> "TransactionMetadata":
        """A producer begins whose id has no more epochs."""
        last = self.producer_epoch if is_expected else NO_PRODUCER_EPOCH
        return self._begun(timeout_ms, now_ms, producer_id=producer_id, producer_epoch=0, last_producer_epoch=last)

    def _begun(self, timeout_ms: int, now_ms: int, **changes: Any) -> "TransactionMetadata":
        return self._to(EMPTY, now_ms, timeout_ms=timeout_ms, partitions=frozenset(), start_ms=NO_TIME_MS, **changes)

    def added(self, partitions: Iterable[TopicPartition], client_version: int, now_ms: int) -> "TransactionMetadata":
        """The transaction has these partitions, too."""
        start_ms = now_ms if self.state in IDLE else self.start_ms
        return self._to(
            ONGOING, now_ms, partitions=self.partitions.union(partitions), start_ms=start_ms, client_version=client_version
        )

    def prepared(self, *, is_committed: bool, client_version: int, next_producer_id: int, now_ms: int) -> "TransactionMetadata":
        """The outcome is decided. One that has no partitions begins with its end."""
        changes: dict[str, Any] = {}
        if client_version >= BUMPS_EPOCHS_SINCE:
            changes = {"producer_epoch": min(self.producer_epoch + 1, EPOCH_MAX), "last_producer_epoch": self.producer_epoch}
        return self._to(
            PREPARE_COMMIT if is_committed else PREPARE_ABORT,
            now_ms,
            start_ms=now_ms if self.state in IDLE else self.start_ms,
            next_producer_id=next_producer_id,
            client_version=client_version,
            **changes,
        )

    def fenced(self, next_producer_id: int, now_ms: int) -> "TransactionMetadata":
        """The transaction is to be aborted with an epoch that no producer has."""
        between = self._to(PREPARE_EPOCH_FENCE, now_ms)
        return between.prepared(
            is_committed=False, client_version=BUMPS_EPOCHS_SINCE, next_producer_id=next_producer_id, now_ms=now_ms
        )

    def lacks(self, partitions: Iterable[TopicPartition]) -> "TransactionMetadata":
        """Only these partitions lack their markers."""
        return replace(self, partitions=frozenset(partitions))

    def completed(self, now_ms: int) -> "TransactionMetadata":
        """Every partition has its marker."""
        changes: dict[str, Any] = {}
        if self.bumps_epochs and self.next_producer_id != NO_PRODUCER_ID:
            changes = {"producer_id": self.next_producer_id, "producer_epoch": 0}
        return self._to(ENDS[self.state], now_ms, partitions=frozenset(), next_producer_id=NO_PRODUCER_ID, **changes)

    def dead(self, now_ms: int) -> "TransactionMetadata":
        """It has expired."""
        return self._to(DEAD, now_ms)

    def _to(self, state: TransactionState, now_ms: int, **changes: Any) -> "TransactionMetadata":
        assert self.state in PREVIOUS[state], f"{self.transactional_id}: {self.state.title} to {state.title}"
        fixed: dict[str, Any] = {"state": state, "last_update_ms": now_ms, "previous_producer_id": self.producer_id}
        return replace(self, **{**fixed, **changes})
