"""What an append is refused for, by the names that Kafka's clients know. No batch of a refused append is written.

`code` is the number of the error in Kafka's protocol (org.apache.kafka.common.protocol.Errors), -1 where it has none.
"""

from dataclasses import dataclass
from typing import ClassVar

from local_log.errors import LogError


@dataclass(frozen=True, slots=True)
class RecordError:
    """What is wrong with one record of a batch that is refused; `row` is its place in it, from 0 on."""

    row: int
    problem: str


class Refused(LogError):
    """Base of all these: the batch breaks a rule of the log's. Its sender has to change it, or to stop.

    `record_errors` are for the sender, too: which records it was refused for, if it was for some.
    """

    code: ClassVar[int] = -1

    def __init__(self, problem: str, *, record_errors: tuple[RecordError, ...] = ()) -> None:
        super().__init__(problem)
        self.record_errors = record_errors


class UnknownServerError(Refused):
    """What Kafka's broker stumbles over rather than looks for, such as a section that does not inflate."""


class CorruptMessage(Refused):
    """A batch whose checksum, size or format is wrong."""

    code = 2


class MessageTooLarge(Refused):
    """A batch of more than max.message.bytes."""

    code = 10


class RecordListTooLarge(Refused):
    """Batches that together are larger than a segment may be."""

    code = 18


class InvalidTimestamp(Refused):
    """A record further before or after the log's own time than message.timestamp.{before,after}.max.ms allow."""

    code = 32


class OutOfOrderSequenceNumber(Refused):
    """A producer's batch that does not follow its last one."""

    code = 45


class InvalidProducerEpoch(Refused):
    """A batch of a producer that a newer one has replaced."""

    code = 47


class InvalidTxnState(Refused):
    """A batch or a marker that the state of its producer's transaction does not allow."""

    code = 48


class TransactionCoordinatorFenced(Refused):
    """A marker of a transaction coordinator that a newer one has replaced."""

    code = 52


class InvalidRecord(Refused):
    """A record that breaks the rules of its topic, such as one without a key where the topic is compacted."""

    code = 87


class OffsetsOutOfOrder(Refused):
    """Batches or records whose offsets do not grow."""


class UnexpectedAppendOffset(Refused):
    """A follower's batch that starts below the end of its log."""
