"""How a coordinator writes its records: what the log refuses is answered with Kafka's error codes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from local_log.errors import LogError
from remote.clock import Clock
from tiering.endpoint.at_hand import NotAtHand
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.offsets_log import OffsetsLog, TransactionalProducer
from tiering.endpoint.coordinator.records import Record
from tiering.endpoint.protocol.errors import ErrorCode

_TOO_LARGE: Final = (10, 18)
"""Kafka's codes of a batch that is larger than the topic, or a segment, allows."""
_OF_PRODUCER: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE)
"""What a log says of a producer: it is fenced, or its transaction has ended."""


@dataclass(frozen=True, slots=True)
class Journal:
    """Appends records to a log. `report` is told why it cannot."""

    log: OffsetsLog
    clock: Clock
    report: Callable[[str], object]

    def write(self, group: str, records: Sequence[Record], producer: TransactionalProducer | None = None) -> int:
        """Appends records of a group, all or none; returns the offset of the first. Raises GroupError.

        Clients look for the coordinator again, and repeat what they asked for; not so what is larger than `max.message.bytes`.
        """
        try:
            return self.log.append(group, records, self.clock.now_ms(), producer)
        except LogError as e:
            raise self._refused(group, records, e) from e

    def write_at_once(self, group: str, records: Sequence[Record]) -> int:
        """Appends records of a group as `write`. Raises GroupError, and NotAtHand, without any change, if that had to wait."""
        try:
            first = self.log.append_at_once(group, records, self.clock.now_ms())
        except LogError as e:
            raise self._refused(group, records, e) from e
        if first is None:
            raise NotAtHand
        return first

    def open_producer(self, group: str, producer_id: int) -> TransactionalProducer | None:
        """The producer, if it has a transaction open where the records of a group are; None also where that cannot be told.

        What keeps it from being told is reported.
        """
        try:
            return self.log.open_producer(group, producer_id)
        except LogError as e:
            self.report(f"the transaction of producer {producer_id} with offsets of group {group} cannot be looked for: {e}")
            return None

    def sync(self, group: str) -> None:
        """Has what was appended of a group survive a loss of power. What keeps it from that is reported."""
        try:
            self.log.log_of(group).sync_appended()
        except LogError as e:
            self.report(f"records of group {group} may be lost with the power: {e}")

    def _refused(self, group: str, records: Sequence[Record], e: LogError) -> GroupError:
        code = getattr(e, "code", None)
        if code in _OF_PRODUCER:
            return GroupError(ErrorCode(code))
        self.report(f"{len(records)} records of group {group} cannot be kept: {e}")
        return GroupError(ErrorCode.UNKNOWN_SERVER_ERROR if code in _TOO_LARGE else ErrorCode.NOT_COORDINATOR)
