"""All transactional ids: what the records say, each change written before it counts (Kafka's TransactionStateManager)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from local_log.errors import LogError
from remote.clock import Time
from tiering.endpoint.coordinator.group_memory import GroupMemory, texts_size
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.errors import TransactionError
from tiering.endpoint.transactions.records import transaction_record
from tiering.endpoint.transactions.transaction_log import TransactionLog
from tiering.endpoint.transactions.transaction_metadata import TransactionMetadata
from tiering.endpoint.transactions.transaction_states import IDLE, ONGOING, PREPARED

FULL: Final = (
    "transactions take all of the memory that endpoint.transactions.max.bytes allows: raise it, or let ids expire sooner"
)
TRANSACTION_BYTES: Final = 1_500
"""Of a transactional id besides its text: measured, and rounded up."""
PARTITION_BYTES: Final = 300
_TOO_LARGE: Final = (10, 18)
"""Kafka's codes of a batch that is larger than the topic, or a segment, allows."""


@dataclass(slots=True)
class TransactionStateManager:
    """`transactions` are by transactional id. One thread at a time may use it."""

    config: TransactionConfig
    log: TransactionLog
    clock: Time
    report: Callable[[str], object]
    transactions: dict[str, TransactionMetadata] = field(default_factory=dict)
    _memory: GroupMemory = field(init=False)

    def __post_init__(self) -> None:
        self._memory = GroupMemory(self.config.bytes_max, lambda: sum(map(_size, self.transactions.values())), self.clock)

    def load(self) -> None:
        """Takes up what the log has. Raises LogError."""
        for transactional_id, metadata in self.log.load():
            if metadata is None:
                self.transactions.pop(transactional_id, None)
            else:
                self.transactions[transactional_id] = metadata
        self._memory.recount()

    def of(self, transactional_id: str) -> TransactionMetadata:
        """A transactional id that a producer has. Raises TransactionError."""
        if not transactional_id:
            raise TransactionError(ErrorCode.INVALID_REQUEST)
        metadata = self.transactions.get(transactional_id)
        if metadata is None:
            raise TransactionError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        return metadata

    def put(self, metadata: TransactionMetadata) -> None:
        """Keeps a change. Raises TransactionError if it cannot be kept, and then it has not happened."""
        before = self.transactions.get(metadata.transactional_id)
        if not self._memory.takes(_size(metadata) - (0 if before is None else _size(before))):
            self.report(FULL)
            raise TransactionError(ErrorCode.POLICY_VIOLATION)
        try:
            self.log.append(metadata.transactional_id, transaction_record(metadata), self.clock.now_ms())
        except LogError as e:
            self.report(f"a change of a transaction cannot be kept: {e}")
            is_too_large = getattr(e, "code", None) in _TOO_LARGE
            raise TransactionError(ErrorCode.UNKNOWN_SERVER_ERROR if is_too_large else ErrorCode.NOT_COORDINATOR) from e
        self.transactions[metadata.transactional_id] = metadata

    def timed_out(self) -> Iterator[TransactionMetadata]:
        """The transactions that are open for longer than their producers asked for."""
        now_ms = self.clock.now_ms()
        found = (one for one in tuple(self.transactions.values()) if one.state is ONGOING)
        return (one for one in found if one.start_ms + one.timeout_ms < now_ms)

    def prepared(self) -> Iterator[TransactionMetadata]:
        """The transactions that lack markers, or the record that they have them."""
        return (one for one in tuple(self.transactions.values()) if one.state in PREPARED)

    def expire(self) -> None:
        """Forgets the transactional ids that nobody has used for long."""
        now_ms = self.clock.now_ms()
        since_ms = now_ms - self.config.id_expiration_ms
        idle = [one for one in self.transactions.values() if one.state in IDLE and one.last_update_ms <= since_ms]
        left = len(idle)
        try:
            for forgotten in self.log.forget([one.dead(now_ms).transactional_id for one in idle], now_ms):
                left -= len(forgotten)
                for transactional_id in forgotten:
                    del self.transactions[transactional_id]
        except LogError as e:
            self.report(f"{left} transactional ids that have expired cannot be forgotten: {e}")  # the next time will do


def _size(metadata: TransactionMetadata) -> int:
    return TRANSACTION_BYTES + texts_size(metadata.transactional_id) + PARTITION_BYTES * len(metadata.partitions)
