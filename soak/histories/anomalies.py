"""What a history may not have. The names are those of Jepsen's workload for Kafka, where it has one."""

from dataclasses import dataclass
from typing import ClassVar

from histories.operations import Operation


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`operations` show it."""

    operations: tuple[Operation, ...]
    name: ClassVar[str] = ""

    def __str__(self) -> str:
        told = (f"{name}={getattr(self, name)}" for name in self.__dataclass_fields__ if name != "operations")
        return f"{self.name}: {', '.join(told)}; {'; '.join(map(str, self.operations[:3]))}"


@dataclass(frozen=True, slots=True)
class OfValue(Anomaly):
    partition: str
    value: str


@dataclass(frozen=True, slots=True)
class LostWrite(OfValue):
    """It was acknowledged, later offsets are read, and nobody reads it."""

    name = "lost-write"


@dataclass(frozen=True, slots=True)
class Unseen(OfValue):
    """It was acknowledged or read before, and who reads to the end does not come to it."""

    name = "unseen"


@dataclass(frozen=True, slots=True)
class Duplicate(OfValue):
    """It is at several offsets."""

    name = "duplicate"
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NeverSent(OfValue):
    """Somebody reads it, and nobody sent it."""

    name = "never-sent"


@dataclass(frozen=True, slots=True)
class AbortedRead(OfValue):
    """It was aborted, and somebody who reads committed records only reads it."""

    name = "G1a"


@dataclass(frozen=True, slots=True)
class PrecommittedRead(OfValue):
    """Somebody who reads committed records only reads it before its transaction was asked to commit."""

    name = "precommitted-read"


@dataclass(frozen=True, slots=True)
class OfOffsets(Anomaly):
    partition: str
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InconsistentOffsets(OfOffsets):
    """An offset has several values."""

    name = "inconsistent-offsets"
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NonmonotonicPoll(OfOffsets):
    """A process reads an offset after a later one, in two polls."""

    name = "nonmonotonic-poll"


@dataclass(frozen=True, slots=True)
class InternalNonmonotonicPoll(OfOffsets):
    """An offset comes after a later one in one poll."""

    name = "int-nonmonotonic-poll"


@dataclass(frozen=True, slots=True)
class PollSkip(OfOffsets):
    """A process goes on after offsets that it had to be given."""

    name = "poll-skip"


@dataclass(frozen=True, slots=True)
class InternalPollSkip(OfOffsets):
    """Within one poll offsets are missing."""

    name = "int-poll-skip"


@dataclass(frozen=True, slots=True)
class NonmonotonicSend(OfOffsets):
    """A process is told a lower offset for what it sent later."""

    name = "nonmonotonic-send"


@dataclass(frozen=True, slots=True)
class InternalNonmonotonicSend(OfOffsets):
    """So within one transaction."""

    name = "int-nonmonotonic-send"


@dataclass(frozen=True, slots=True)
class EndOffsetBack(OfOffsets):
    """The end of a partition is below an offset that was acknowledged or told before."""

    name = "end-offset-back"


@dataclass(frozen=True, slots=True)
class HangingTransaction(OfOffsets):
    """When nobody writes any longer, readers of committed records end before others do."""

    name = "hanging-transaction"


@dataclass(frozen=True, slots=True)
class CyclicReads(Anomaly):
    """Transactions that have read from each other."""

    name = "G1c"


@dataclass(frozen=True, slots=True)
class OfGroup(Anomaly):
    group: str
    partition: str
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LostCommit(OfGroup):
    """A group is told another position than that of its last commit."""

    name = "lost-commit"


@dataclass(frozen=True, slots=True)
class NeverCommitted(OfGroup):
    """A group is told a position that it has not committed."""

    name = "never-committed"


@dataclass(frozen=True, slots=True)
class NonmonotonicCommit(OfGroup):
    """A commit that came later, of somebody who has read less, was taken."""

    name = "nonmonotonic-commit"


@dataclass(frozen=True, slots=True)
class ConsumedTwice(OfGroup):
    """Two committed transactions of a group have the same record."""

    name = "consumed-twice"


@dataclass(frozen=True, slots=True)
class ConsumedNever(OfGroup):
    """A committed transaction has a later record, and none has this one."""

    name = "consumed-never"
