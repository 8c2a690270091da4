"""What the checker of histories finds, and that it finds nothing where nothing is wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest
from histories.anomalies import Anomaly
from histories.checker import anomalies
from histories.operations import NONE, Kind, Operation, Outcome, Polled, Position, Sent, read_history, write_history
from history_model import lived
from hypothesis import given, settings
from hypothesis import strategies as st

FAULTS = {
    "acknowledge and forget": {"lost-write", "inconsistent-offsets"},
    "append twice": {"duplicate"},
    "forget open transactions": {"G1a", "precommitted-read"},
    "forget aborted": {"G1a"},
    "skip records": {"poll-skip"},
    "go back": {"nonmonotonic-poll"},
    "lose commits": {"lost-commit"},
    "commit for others": {"nonmonotonic-commit"},
    "forget consumed": {"consumed-twice", "consumed-never"},
    "ends go back": {"end-offset-back"},
    "leave transactions open": {"hanging-transaction"},
    "lose the end": {"unseen"},
}


@given(seed=st.integers(0, 1 << 32), steps=st.integers(0, 60))
@settings(max_examples=40, deadline=None)
def test_the_history_of_a_correct_broker_has_no_anomaly(seed: int, steps: int) -> None:
    assert anomalies(lived(seed, steps)) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_broker_with_a_fault_is_found_out(fault: str) -> None:
    found = {one.name for seed in range(12) for one in anomalies(lived(seed, 60, {fault}))}
    assert found >= FAULTS[fault]


class Events:
    """A history that is written down, each operation after the one before unless its times are given."""

    def __init__(self) -> None:
        self.done: list[Operation] = []

    def note(
        self, process: str, kind: Kind, outcome: Outcome = Outcome.OK, at: tuple[int, int] | None = None, **fields
    ) -> "Events":
        index = len(self.done)
        invoked, completed = at or (10 * index + 1, 10 * index + 9)
        self.done.append(Operation(index, process, kind, outcome, invoked, completed, **fields))
        return self

    def send(self, value: str, offset: int | None, outcome: Outcome = Outcome.OK, process: str = "w") -> "Events":
        return self.note(process, Kind.SEND, outcome, sent=(Sent("p", value, offset),))

    def txn(
        self, outcome: Outcome, *values: tuple[str, int], ends_ns: int = 0, reads: tuple[Polled, ...] = (), **more
    ) -> "Events":
        sent = tuple(Sent("p", value, offset) for value, offset in values)
        return self.note(more.pop("process", "t"), Kind.TXN, outcome, sent=sent, polled=reads, ends_ns=ends_ns, **more)

    def assign(self, offset: int, **more: bool) -> "Events":
        return self.note("r", Kind.ASSIGN, positions=(Position("p", offset),), **more)

    def poll(self, *records: tuple[int, str], end: int | None = None, **more: bool) -> "Events":
        ends = () if end is None else (Position("p", end),)
        return self.note("r", Kind.POLL, polled=tuple(Polled("p", *one) for one in records), positions=ends, **more)

    def commit(self, offset: int, outcome: Outcome = Outcome.OK, at: tuple[int, int] | None = None) -> "Events":
        return self.note("c", Kind.COMMIT, outcome, at, group="g", positions=(Position("p", offset),))

    def told(self, offset: int, at: tuple[int, int] | None = None) -> "Events":
        return self.note("c", Kind.COMMITTED, at=at, group="g", positions=(Position("p", offset),))

    def ends(self, offset: int) -> "Events":
        return self.note("e", Kind.END_OFFSETS, positions=(Position("p", offset),))


def consumer(*offsets: int) -> Callable[[Events], Events]:
    """A transaction of a group that has consumed these."""

    def done(events: Events) -> Events:
        value, at = f"of {offsets} {len(events.done)}", 100 + len(events.done)
        reads = tuple(Polled("p", offset, f"v{offset}") for offset in offsets)
        sent = (Sent("out", value, at),)
        return events.note("t", Kind.TXN, sent=sent, polled=reads, group="g", positions=(Position("p", max(offsets) + 1),))

    return done


OK, FAIL, UNKNOWN = Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN
E = Events
three = [(0, "v0"), (1, "v1"), (2, "v2")]


def sent_three() -> Events:
    return E().send("v0", 0).send("v1", 1).send("v2", 2)


WITH_AND_WITHOUT: dict[str, tuple[list[Events], list[Events]]] = {
    "lost-write": (
        [sent_three().assign(0).poll((0, "v0"), (2, "v2"))],
        [
            sent_three().assign(2).poll((2, "v2")),
            sent_three().assign(0).poll((0, "v0")),
            E().send("v0", 0).send("v1", None, UNKNOWN).send("v2", 2).assign(0).poll((0, "v0"), (2, "v2")),
        ],
    ),
    "unseen": (
        [
            sent_three().assign(0, is_final=True).poll(*three[:2], end=2),
            E().send("v0", None).assign(0, is_final=True).poll(end=0),
        ],
        [sent_three().assign(0, is_final=True).poll(*three, end=3), sent_three().assign(0).poll(*three[:2], end=2)],
    ),
    "duplicate": (
        [sent_three().assign(0).poll((0, "v0"), (1, "v1"), (2, "v2"), (3, "v1"))],
        [sent_three().assign(0).poll(*three)],
    ),
    "never-sent": ([E().assign(0).poll((0, "v0"))], [E().send("v0", None, UNKNOWN).assign(0).poll((0, "v0"))]),
    "G1a": (
        [E().txn(FAIL, ("v0", 0)).assign(0).poll((0, "v0"))],
        [
            E().txn(FAIL, ("v0", 0)).assign(0, is_committed_only=False).poll((0, "v0"), is_committed_only=False),
            E().txn(OK, ("v0", 0)).assign(0).poll((0, "v0")),
        ],
    ),
    "precommitted-read": (
        [E().assign(0).poll((0, "v0")).txn(OK, ("v0", 0), ends_ns=30)],
        [E().assign(0).poll((0, "v0")).txn(OK, ("v0", 0), ends_ns=15)],
    ),
    "inconsistent-offsets": ([E().send("v0", 0).send("v1", 0)], [E().send("v0", 0).send("v1", None, UNKNOWN).send("v2", 1)]),
    "nonmonotonic-poll": (
        [sent_three().assign(0).poll(*three).poll((1, "v1"))],
        [sent_three().assign(0).poll(*three).assign(1).poll((1, "v1"))],
    ),
    "int-nonmonotonic-poll": (
        [sent_three().assign(0).poll((0, "v0"), (2, "v2"), (1, "v1"))],
        [sent_three().assign(0).poll(*three)],
    ),
    "poll-skip": (
        [
            sent_three().assign(0).poll((0, "v0")).poll((2, "v2")),
            sent_three().assign(0).poll(*three[1:]),
            sent_three().assign(0).poll(end=1),
        ],
        [
            sent_three().assign(0).poll((0, "v0")).poll(*three[1:]),
            E().send("v0", 0).txn(FAIL, ("v1", 1)).send("v2", 2).assign(0).poll((0, "v0")).poll((2, "v2")),
        ],
    ),
    "int-poll-skip": (
        [
            sent_three().assign(0).poll((0, "v0"), (2, "v2")),
            E().txn(UNKNOWN, ("v0", 0), ("v1", 1), ("v2", 2)).assign(0).poll((0, "v0"), (2, "v2")),
        ],
        [sent_three().assign(0).poll(*three), E().txn(UNKNOWN, ("v0", 0), ("v1", 1)).send("v2", 2).assign(0).poll((2, "v2"))],
    ),
    "nonmonotonic-send": ([E().send("v0", 1).send("v1", 0)], [E().send("v0", 1).send("v1", 0, process="other")]),
    "int-nonmonotonic-send": ([E().txn(OK, ("v0", 1), ("v1", 0))], [E().txn(OK, ("v0", 0), ("v1", 1))]),
    "end-offset-back": (
        [E().send("v0", 4).ends(4), E().ends(5).ends(4), E().assign(0).poll((4, "v0")).ends(4)],
        [E().send("v0", 4).ends(5).ends(5).ends(9)],
    ),
    "hanging-transaction": (
        [
            E()
            .assign(0, is_final=True)
            .poll(end=1)
            .note("u", Kind.ASSIGN, is_final=True, is_committed_only=False)
            .note("u", Kind.POLL, positions=(Position("p", 2),), is_committed_only=False)
        ],
        [
            E()
            .assign(0, is_final=True)
            .poll(end=2)
            .note("u", Kind.ASSIGN, is_final=True, is_committed_only=False)
            .note("u", Kind.POLL, positions=(Position("p", 2),), is_committed_only=False)
        ],
    ),
    "G1c": (
        [E().txn(OK, ("v0", 0), reads=(Polled("p", 1, "v1"),)).txn(OK, ("v1", 1), reads=(Polled("p", 0, "v0"),))],
        [
            E()
            .txn(OK, ("v0", 0))
            .txn(OK, ("v1", 1), reads=(Polled("p", 0, "v0"),))
            .txn(OK, ("v2", 2), reads=(Polled("p", 1, "v1"),))
        ],
    ),
    "lost-commit": (
        [E().commit(3).commit(5).told(3), E().commit(3).told(NONE), E().commit(3).commit(5, UNKNOWN).commit(7).told(3)],
        [
            E().told(NONE).commit(3).commit(5, UNKNOWN).told(3).told(5),
            E().commit(3).commit(5, at=(11, 40)).told(3, at=(20, 30)).told(5),
            E().commit(5, FAIL).told(NONE),
        ],
    ),
    "never-committed": ([E().commit(3).told(4), E().commit(4, FAIL).told(4)], [E().commit(4, UNKNOWN).told(4)]),
    "nonmonotonic-commit": (
        [E().commit(5).commit(3)],
        [E().commit(5, UNKNOWN).commit(3), E().commit(5, at=(1, 9)).commit(3, at=(5, 15))],
    ),
    "consumed-twice": ([consumer(1, 2)(consumer(0, 1)(sent_three()))], [consumer(2)(consumer(0, 1)(sent_three()))]),
    "consumed-never": ([consumer(2)(consumer(0)(sent_three()))], [consumer(2)(consumer(1)(consumer(0)(sent_three())))]),
}


def found_in(events: Events) -> list[Anomaly]:
    return anomalies(tuple(events.done))


@pytest.mark.parametrize("name", WITH_AND_WITHOUT)
def test_an_anomaly_is_found_where_it_is_with_the_operations_that_show_it(name: str) -> None:
    has, has_not = WITH_AND_WITHOUT[name]
    for events in has:
        (first, *_) = [one for one in found_in(events) if one.name == name]
        assert first.operations
        assert {*first.operations} <= {*events.done}
        assert str(first).startswith(f"{name}: ")
    for events in has_not:
        assert name not in {one.name for one in found_in(events)}


def test_every_anomaly_has_a_history_that_shows_it() -> None:
    def named(of: type[Anomaly]) -> set[str]:
        return ({of.name} if of.name else set()).union(*map(named, of.__subclasses__()))

    assert named(Anomaly) == WITH_AND_WITHOUT.keys()


def test_a_history_is_the_same_when_it_is_read_back(tmp_path: Path) -> None:
    history = lived(1, 40)
    write_history(history, tmp_path / "history.jsonl")
    assert read_history(tmp_path / "history.jsonl") == history
