"""What a client asked for, and what it was answered: an operation with its invocation and its completion."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path


class Kind(StrEnum):
    SEND = "send"
    """One record, outside of transactions."""
    TXN = "txn"
    """A transaction: what it sent, what it had read, and the positions that it commits for a group."""
    ASSIGN = "assign"
    """A process reads on from `positions`, and no other partitions."""
    POLL = "poll"
    """Records in the order in which they came. `positions` are the ends of partitions that were reached after them."""
    COMMIT = "commit"
    """A group's positions."""
    COMMITTED = "committed"
    """The positions of a group that a broker tells; NONE where it has none."""
    END_OFFSETS = "end-offsets"
    """The ends of partitions (their high watermarks) that a broker tells."""


class Outcome(StrEnum):
    OK = "ok"
    FAIL = "fail"
    """It has not happened, and never will."""
    UNKNOWN = "unknown"
    """It may have happened, or may happen later."""


NONE = -1
"""The position of a group that has committed none."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A value, which nobody else sends; `offset` is None if nobody was told."""

    partition: str
    value: str
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Polled:
    partition: str
    offset: int
    value: str


@dataclass(frozen=True, slots=True)
class Position:
    """The next offset of a partition."""

    partition: str
    offset: int


@dataclass(frozen=True, slots=True)
class Operation:
    """`index` counts completions, times are those of one monotonic clock."""

    index: int
    process: str
    kind: Kind
    outcome: Outcome
    invoked_ns: int
    completed_ns: int
    sent: tuple[Sent, ...] = ()
    polled: tuple[Polled, ...] = ()
    positions: tuple[Position, ...] = ()
    group: str = ""
    is_committed_only: bool = True
    """Of ASSIGN and POLL: whether the process reads committed records only."""
    is_final: bool = False
    """Of ASSIGN: nobody writes any longer, and the process reads until the end."""
    ends_ns: int = 0
    """Of TXN: when it was asked to commit or to abort."""

    def __str__(self) -> str:
        said = [f"#{self.index} {self.process} {self.kind} {self.outcome}"]
        said += [f"{self.group} " * bool(self.group) + f"{one.partition}@{one.offset}" for one in self.positions[:4]]
        said += [f"{one.partition}@{one.offset}={one.value}" for one in (*self.sent[:4], *self.polled[:4])]
        return " ".join(said)


History = tuple[Operation, ...]


def write_history(history: Iterable[Operation], path: Path) -> None:
    """One operation a line, in JSON, without the fields that have their default."""
    with path.open("w") as file:
        for one in history:
            file.write(json.dumps({name: value for name, value in asdict(one).items() if value or name == "index"}) + "\n")


def read_history(path: Path) -> History:
    with path.open() as file:
        return tuple(_operation(json.loads(line)) for line in file)


def _operation(fields: dict[str, object]) -> Operation:
    parts: dict[str, type] = {"sent": Sent, "polled": Polled, "positions": Position}
    made: dict[str, object] = {name: tuple(parts[name](**one) for one in fields.pop(name, ())) for name in parts}  # type: ignore[attr-defined]
    made |= {"is_committed_only": False, "invoked_ns": 0, "completed_ns": 0, **fields}
    return Operation(**{**made, "kind": Kind(str(fields["kind"])), "outcome": Outcome(str(fields["outcome"]))})  # type: ignore[arg-type]
