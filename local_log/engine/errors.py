"""The errors of rejected appends, by the names that Kafka's clients use. No batch of a rejected append is written.

`code` is the error's code in Kafka's protocol (org.apache.kafka.common.protocol.Errors), -1 if it has none.
"""

from dataclasses import dataclass
from typing import ClassVar

from local_log.errors import LogError


@dataclass(frozen=True, slots=True)
class RecordError:
    """An error of one record of a rejected batch; `row` is its index in the batch, from 0 on."""

    row: int
    problem: str


class Refused(LogError):
    """Base of these errors: the batch breaks a rule of the log. The sender has to change the batch or stop.

    `record_errors` name the records that caused the rejection, if single records did.
    """

    code: ClassVar[int] = -1

    def __init__(self, problem: str, *, record_errors: tuple[RecordError, ...] = ()) -> None:
        super().__init__(problem)
        self.record_errors = record_errors


class UnknownServerError(Refused):
    """An error for which Kafka's broker has no specific code, such as a section that does not decompress."""


class CorruptMessage(Refused):
    """A batch whose checksum, size or format is wrong."""

    code = 2


class MessageTooLarge(Refused):
    """A batch of more than max.message.bytes."""

    code = 10


class RecordListTooLarge(Refused):
    """Batches that are larger together than a segment may be."""

    code = 18


class InvalidTimestamp(Refused):
    """A timestamp outside of message.timestamp.{before,after}.max.ms around the broker's time."""

    code = 32


class OutOfOrderSequenceNumber(Refused):
    """A producer's batch whose sequence number does not follow that of its last batch."""

    code = 45


class InvalidProducerEpoch(Refused):
    """A batch of a producer that was fenced by a newer epoch."""

    code = 47


class InvalidTxnState(Refused):
    """A batch or a marker that is invalid in the current state of the producer's transaction."""

    code = 48


class TransactionCoordinatorFenced(Refused):
    """A marker of a transaction coordinator that was fenced by a newer one."""

    code = 52


class InvalidRecord(Refused):
    """A record that breaks a rule of the topic, such as one without a key in a compacted topic."""

    code = 87


class OffsetsOutOfOrder(Refused):
    """Batches or records whose offsets do not increase."""


class UnexpectedAppendOffset(Refused):
    """A follower's batch whose offset is below the log end offset."""
