"""Anomalies of what groups commit: lost, back, and records that transactions have consumed twice or never."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from histories.anomalies import Anomaly, ConsumedNever, ConsumedTwice, LostCommit, NeverCommitted, NonmonotonicCommit
from histories.logs import Logs
from histories.operations import NONE, Kind, Operation, Outcome

NEVER = 1 << 63


class _Commit(NamedTuple):
    """Of one partition. `is_done`: it is known to be taken; nobody knows when `done_ns` is NEVER."""

    offset: int
    began_ns: int
    done_ns: int
    operation: Operation


def commits(logs: Logs) -> Iterator[Anomaly]:
    """Positions that are told, against those that were committed."""
    made: dict[tuple[str, str], list[_Commit]] = defaultdict(list)
    for one in logs.history:
        if one.group and one.kind in (Kind.COMMIT, Kind.TXN) and one.outcome is not Outcome.FAIL:
            done_ns = one.completed_ns if one.outcome is Outcome.OK else NEVER
            began_ns = one.ends_ns if one.kind is Kind.TXN else one.invoked_ns
            for at in one.positions:
                made[one.group, at.partition].append(_Commit(at.offset, began_ns, done_ns, one))
    for (group, partition), found in made.items():
        yield from _back(group, partition, found)
    for one in logs.history:
        for at in one.positions if one.kind is Kind.COMMITTED else ():
            yield from _told(one.group, at.partition, at.offset, one, made[one.group, at.partition])


def _back(group: str, partition: str, found: list[_Commit]) -> Iterator[Anomaly]:
    """Acknowledged commits that begin after a higher one was acknowledged."""
    done = sorted((one for one in found if one.done_ns != NEVER), key=lambda one: one.done_ns)
    times, most = [one.done_ns for one in done], list[_Commit]()
    for one in done:
        most.append(one if not most or one.offset > most[-1].offset else most[-1])
    for one in done:
        before = bisect_left(times, one.began_ns) - 1
        if before >= 0 and most[before].offset > one.offset:
            higher = most[before]
            yield NonmonotonicCommit((higher.operation, one.operation), group, partition, (higher.offset, one.offset))


def _told(group: str, partition: str, told: int, reader: Operation, found: list[_Commit]) -> Iterator[Anomaly]:
    """Whether `told` may be the last commit when the reader asks."""
    before = [one for one in found if one.done_ns < reader.invoked_ns]
    latest_ns = max((one.began_ns for one in before), default=-1)  # what was done before it began is replaced
    may_be = [one for one in found if one.offset == told and one.began_ns <= reader.completed_ns and one.done_ns >= latest_ns]
    if may_be or (told == NONE and not before):
        return
    if told != NONE and not any(one.offset == told for one in found):
        yield NeverCommitted((reader,), group, partition, (told,))
        return
    last = max(before, key=lambda one: one.began_ns)
    yield LostCommit((last.operation, reader), group, partition, (last.offset, told))


def consumed(logs: Logs) -> Iterator[Anomaly]:
    """Records that committed transactions have consumed twice, or gone past."""
    found: dict[tuple[str, str], dict[int, Operation]] = defaultdict(dict)
    for one in logs.history:
        if one.kind is Kind.TXN and one.group and logs.is_committed(one):
            for polled in one.polled:
                known = found[one.group, polled.partition]
                if polled.offset in known:
                    yield ConsumedTwice((known[polled.offset], one), one.group, polled.partition, (polled.offset,))
                known[polled.offset] = one
    for (group, partition), known in found.items():
        last = max(known)
        for offset in logs.between(partition, 0, last, is_committed_only=True):
            if offset not in known:
                yield ConsumedNever((known[last],), group, partition, (offset,))
