"""What a history may not have. The names are those of Jepsen's workload for Kafka, where it has one."""

from dataclasses import dataclass
from typing import ClassVar

from histories.operations import Operation


@dataclass(frozen=True, slots=True)
class Anomaly:
    """`operations` show it."""

    operations: tuple[Operation, ...]
    name: ClassVar[str] = ""

    def __init_subclass__(cls, *, name: str | None = None) -> None:
        if name is not None:
            cls.name = name

    def __str__(self) -> str:
        told = (f"{name}={getattr(self, name)}" for name in self.__dataclass_fields__ if name != "operations")
        return f"{self.name}: {', '.join(told)}; {'; '.join(map(str, self.operations[:3]))}"


@dataclass(frozen=True, slots=True)
class OfValue(Anomaly):
    partition: str
    value: str


class LostWrite(OfValue, name="lost-write"):
    """It was acknowledged, later offsets are read, and nobody reads it."""


class Unseen(OfValue, name="unseen"):
    """It was acknowledged or read before, and who reads to the end does not come to it."""


@dataclass(frozen=True, slots=True)
class Duplicate(OfValue, name="duplicate"):
    """It is at several offsets."""

    offsets: tuple[int, ...]


class NeverSent(OfValue, name="never-sent"):
    """Somebody reads it, and nobody sent it."""


class AbortedRead(OfValue, name="G1a"):
    """It was aborted, and somebody who reads committed records only reads it."""


class PrecommittedRead(OfValue, name="precommitted-read"):
    """Somebody who reads committed records only reads it before its transaction was asked to commit."""


@dataclass(frozen=True, slots=True)
class OfOffsets(Anomaly):
    partition: str
    offsets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class InconsistentOffsets(OfOffsets, name="inconsistent-offsets"):
    """An offset has several values."""

    values: tuple[str, ...]


class NonmonotonicPoll(OfOffsets, name="nonmonotonic-poll"):
    """A process reads an offset after a later one, in two polls."""


class InternalNonmonotonicPoll(OfOffsets, name="int-nonmonotonic-poll"):
    """An offset comes after a later one in one poll."""


class PollSkip(OfOffsets, name="poll-skip"):
    """A process goes on after offsets that it had to be given."""


class InternalPollSkip(OfOffsets, name="int-poll-skip"):
    """Within one poll offsets are missing."""


class NonmonotonicSend(OfOffsets, name="nonmonotonic-send"):
    """A process is told a lower offset for what it sent later."""


class InternalNonmonotonicSend(OfOffsets, name="int-nonmonotonic-send"):
    """So within one transaction."""


class EndOffsetBack(OfOffsets, name="end-offset-back"):
    """The end of a partition is below an offset that was acknowledged or told before."""


class HangingTransaction(OfOffsets, name="hanging-transaction"):
    """When nobody writes any longer, readers of committed records end before others do."""


class CyclicReads(Anomaly, name="G1c"):
    """Transactions that have read from each other."""


@dataclass(frozen=True, slots=True)
class OfGroup(Anomaly):
    group: str
    partition: str
    offsets: tuple[int, ...]


class LostCommit(OfGroup, name="lost-commit"):
    """A group is told another position than that of its last commit."""


class NeverCommitted(OfGroup, name="never-committed"):
    """A group is told a position that it has not committed."""


class NonmonotonicCommit(OfGroup, name="nonmonotonic-commit"):
    """A commit that came later, of somebody who has read less, was taken."""


class ConsumedTwice(OfGroup, name="consumed-twice"):
    """Two committed transactions of a group have the same record."""


class ConsumedNever(OfGroup, name="consumed-never"):
    """A committed transaction has a later record, and none has this one."""
