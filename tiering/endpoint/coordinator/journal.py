"""How a coordinator writes its records: what the log refuses is answered with Kafka's error codes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from local_log.errors import LogError
from remote.clock import Clock
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.offsets_log import OffsetsLog
from tiering.endpoint.coordinator.records import Record
from tiering.endpoint.protocol.errors import ErrorCode

_TOO_LARGE: Final = (10, 18)
"""Kafka's codes of a batch that is larger than the topic, or a segment, allows."""


@dataclass(frozen=True, slots=True)
class Journal:
    """Appends records to a log. `report` is told why it cannot."""

    log: OffsetsLog
    clock: Clock
    report: Callable[[str], object]

    def write(self, group: str, records: Sequence[Record]) -> int:
        """Appends records of a group, all or none; returns the offset of the first. Raises GroupError.

        Clients look for the coordinator again, and repeat what they asked for; not so what is larger than `max.message.bytes`.
        """
        try:
            return self.log.append(group, records, self.clock.now_ms())
        except LogError as e:
            self.report(f"{len(records)} records of group {group} cannot be kept: {e}")
            is_too_large = getattr(e, "code", None) in _TOO_LARGE
            raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR if is_too_large else ErrorCode.NOT_COORDINATOR) from e
