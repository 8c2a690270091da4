"""A broker of a few lines, correct unless it is given faults, and clients of it whose history is noted."""

import random  # noqa: TID251  # of a seed that is handed in
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from histories.operations import NONE, Kind, Operation, Outcome, Polled, Position, Sent

INPUT, OUTPUT = "input-0", "output-0"
TRANSACTIONAL = ("t0", "t1")
GROUP, APP = "readers", "app"


@dataclass
class Entry:
    """A record, or the marker of a transaction. `txn` is the one that it belongs to."""

    value: str | None
    txn: int | None = None


@dataclass
class Model:
    """Draws what happens from `chance`; the effects of an operation happen when it begins, and its answer comes later."""

    chance: random.Random
    faults: AbstractSet[str] = frozenset()
    logs: dict[str, list[Entry]] = field(default_factory=lambda: {INPUT: [], OUTPUT: []})
    committed_txns: set[int] = field(default_factory=set)
    open_txns: dict[str, tuple[int, int, list[Sent]]] = field(default_factory=dict)
    """By producer: the transaction, when it began, and what it has sent."""
    positions: dict[tuple[str, str], int] = field(default_factory=dict)
    reading: dict[str, dict[str, int]] = field(default_factory=dict)
    done: list[Operation] = field(default_factory=list)
    free_ns: dict[str, int] = field(default_factory=dict)
    now_ns: int = 0
    values: int = 0

    # What a broker does

    def append(self, partition: str, value: str | None, txn: int | None = None) -> int:
        if "acknowledge and forget" in self.faults and value is not None and self.chance.random() < 0.1:
            return len(self.logs[partition])
        if "append twice" in self.faults and self.chance.random() < 0.1:
            self.logs[partition].append(Entry(value, txn))
        self.logs[partition].append(Entry(value, txn))
        return len(self.logs[partition]) - 1

    def last_stable(self, partition: str) -> int:
        opened = {txn for txn, _, _ in self.open_txns.values()}
        log = self.logs[partition]
        if "forget open transactions" in self.faults:
            return len(log)
        return next((at for at, one in enumerate(log) if one.txn in opened), len(log))

    def readable(self, partition: str, start: int, *, is_committed_only: bool) -> list[Polled]:
        log = self.logs[partition]
        end = self.last_stable(partition) if is_committed_only else len(log)
        ignores = not is_committed_only or "forget aborted" in self.faults or "forget open transactions" in self.faults
        return [
            Polled(partition, at, one.value)
            for at, one in enumerate(log[:end])
            if at >= start and one.value is not None and (ignores or one.txn is None or one.txn in self.committed_txns)
        ]

    # What clients note

    def note(self, process: str, kind: Kind, outcome: Outcome = Outcome.OK, *, began_ns: int | None = None, **fields) -> None:
        self.now_ns = max(self.now_ns + 1, self.free_ns.get(process, 0))
        completed_ns = self.now_ns + self.chance.randrange(1, 20)
        self.free_ns[process] = completed_ns + 1
        invoked_ns = self.now_ns if began_ns is None else began_ns
        self.done.append(Operation(0, process, kind, outcome, invoked_ns, completed_ns, **fields))

    def history(self) -> tuple[Operation, ...]:
        return tuple(replace(one, index=at) for at, one in enumerate(sorted(self.done, key=lambda one: one.completed_ns)))

    def new_value(self) -> str:
        self.values += 1
        return f"v{self.values}"

    # What happens

    def send(self) -> None:
        value, partition = self.new_value(), self.chance.choice([INPUT, OUTPUT])
        fate = self.chance.random()
        offset = None if fate < 0.1 else self.append(partition, value)
        outcome = Outcome.OK if fate >= 0.2 else Outcome.UNKNOWN
        sent = Sent(partition, value, offset if outcome is Outcome.OK else None)
        self.note("p", Kind.SEND, outcome, sent=(sent,))

    def transact(self) -> None:
        """One step of a transaction."""
        process = self.chance.choice(TRANSACTIONAL)
        if process not in self.open_txns:
            self.values += 1
            self.open_txns[process] = self.values, self.now_ns, []
        txn, _, sent = self.open_txns[process]
        value, partition = self.new_value(), self.chance.choice([INPUT, OUTPUT])
        sent.append(Sent(partition, value, self.append(partition, value, txn)))
        self.now_ns += 1
        if self.chance.random() < 0.4:
            self.end(process, is_committed=self.chance.random() < 0.6)

    def end(self, process: str, *, is_committed: bool) -> None:
        txn, began_ns, sent = self.open_txns.pop(process)
        self.committed_txns |= {txn} if is_committed else set()
        outcome = Outcome.OK if is_committed else Outcome.FAIL
        if self.chance.random() < 0.2:
            outcome = Outcome.UNKNOWN
        self.now_ns = max(self.now_ns, self.free_ns.get(process, 0))
        for partition in sorted({one.partition for one in sent}):
            self.append(partition, None, txn)
        self.note(process, Kind.TXN, outcome, began_ns=began_ns, sent=tuple(sent), ends_ns=self.now_ns + 1)

    def assign(self, process: str, starts: dict[str, int], *, is_committed_only: bool, is_final: bool = False) -> None:
        self.reading[process] = dict(starts)
        at = tuple(Position(partition, offset) for partition, offset in starts.items())
        self.note(process, Kind.ASSIGN, positions=at, is_committed_only=is_committed_only, is_final=is_final)

    def read(self, is_committed_only: bool | None = None) -> None:
        chosen = self.chance.random() < 0.5 if is_committed_only is None else is_committed_only
        process = f"r{int(chosen)}"
        if process not in self.reading or self.chance.random() < 0.1:
            starts = {partition: self.chance.randrange(len(log) + 1) for partition, log in self.logs.items()}
            self.assign(process, starts, is_committed_only=chosen)
        self.poll(process, self.chance.randrange(1, 6), is_committed_only=chosen)

    def poll(self, process: str, count: int, *, is_committed_only: bool) -> list[Polled]:
        found: list[Polled] = []
        for partition, start in self.reading[process].items():
            records = self.readable(partition, start, is_committed_only=is_committed_only)[:count]
            if "skip records" in self.faults and len(records) > 1 and self.chance.random() < 0.2:
                del records[0]
            if "go back" in self.faults and start and self.chance.random() < 0.2:
                records = self.readable(partition, start - 1, is_committed_only=is_committed_only)[:count]
            found += records
        self.reading[process] |= {one.partition: one.offset + 1 for one in found}
        self.note(process, Kind.POLL, polled=tuple(found), is_committed_only=is_committed_only)
        return found

    def consume(self) -> None:
        """A member of a group takes over, reads and commits."""
        process = self.chance.choice(["m0", "m1"])
        at = self.positions.get((GROUP, INPUT), NONE)
        if "lose commits" in self.faults and self.chance.random() < 0.2:
            at = NONE
        self.note(process, Kind.COMMITTED, group=GROUP, positions=(Position(INPUT, at),))
        self.assign(process, {INPUT: max(at, 0)}, is_committed_only=True)
        self.poll(process, 3, is_committed_only=True)
        position, fate = self.reading[process][INPUT], self.chance.random()
        if "commit for others" in self.faults and position > 1 and fate > 0.8:
            position -= 1
        if fate >= 0.1:
            self.positions[GROUP, INPUT] = position
        outcome = Outcome.OK if fate >= 0.2 else Outcome.UNKNOWN
        self.note(process, Kind.COMMIT, outcome, group=GROUP, positions=(Position(INPUT, position),))

    def transform(self) -> None:
        """Reads, writes and commits what it has read in one transaction."""
        start = max(self.positions.get((APP, INPUT), NONE), 0)
        self.assign("app", {INPUT: start}, is_committed_only=True)
        read = self.poll("app", 2, is_committed_only=True)
        if not read:
            return
        began_ns, self.values = self.now_ns, self.values + 1
        txn, outputs = self.values, [f"{one.value}'{self.values}" for one in read]
        sent = tuple(Sent(OUTPUT, value, self.append(OUTPUT, value, txn)) for value in outputs)
        is_committed = self.chance.random() < 0.7
        self.append(OUTPUT, None, txn)
        position = Position(INPUT, self.reading["app"][INPUT])
        if is_committed:
            self.committed_txns.add(txn)
        if is_committed != ("forget consumed" in self.faults and self.chance.random() < 0.3):
            self.positions[APP, INPUT] = position.offset
        outcome = Outcome.OK if is_committed else Outcome.FAIL
        more = {"polled": tuple(read), "sent": sent, "positions": (position,), "group": APP, "ends_ns": self.now_ns + 1}
        self.note("app", Kind.TXN, outcome, began_ns=began_ns, **more)

    def ask_ends(self) -> None:
        back = 1 if "ends go back" in self.faults else 0
        at = tuple(Position(partition, max(0, len(log) - back)) for partition, log in self.logs.items())
        self.note("e", Kind.END_OFFSETS, positions=at)

    def finish(self) -> None:
        """Nobody writes any longer, and all is read."""
        for process in tuple(self.open_txns):
            if "leave transactions open" not in self.faults:
                self.end(process, is_committed=False)
        self.now_ns = max((self.now_ns, *self.free_ns.values()))
        if "lose the end" in self.faults:
            self.logs[INPUT] = self.logs[INPUT][:-1]
        for is_committed_only in (True, False):
            process = f"f{int(is_committed_only)}"
            self.assign(process, dict.fromkeys(self.logs, 0), is_committed_only=is_committed_only, is_final=True)
            self.poll(process, 1_000_000, is_committed_only=is_committed_only)
            ends = {name: self.last_stable(name) if is_committed_only else len(log) for name, log in self.logs.items()}
            at = tuple(Position(partition, end) for partition, end in ends.items())
            self.note(process, Kind.POLL, positions=at, is_committed_only=is_committed_only)
        for group in (GROUP, APP):
            self.note("f", Kind.COMMITTED, group=group, positions=(Position(INPUT, self.positions.get((group, INPUT), NONE)),))


def lived(seed: int, steps: int, faults: AbstractSet[str] = frozenset()) -> tuple[Operation, ...]:
    """The history of so many steps, and of a read of all in the end."""
    model = Model(random.Random(seed), faults)
    happens = (model.send, model.transact, model.read, model.consume, model.transform, model.ask_ends)
    for _ in range(steps):
        model.chance.choice(happens)()
    model.finish()
    return model.history()
