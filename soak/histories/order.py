"""Anomalies of the order in which a process reads and writes."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from histories.anomalies import (
    Anomaly,
    EndOffsetBack,
    HangingTransaction,
    InternalNonmonotonicPoll,
    InternalNonmonotonicSend,
    InternalPollSkip,
    NonmonotonicPoll,
    NonmonotonicSend,
    PollSkip,
)
from histories.logs import SENDS, Logs
from histories.operations import Kind, Operation, Outcome


@dataclass(slots=True)
class _Reading:
    """Where a process is: the next offset of each partition, and what says so."""

    at: dict[str, tuple[int, Operation]] = field(default_factory=dict)


def polls(logs: Logs) -> Iterator[Anomaly]:
    """Offsets that a process reads after later ones, or goes past."""
    processes: dict[str, _Reading] = {}
    for one in logs.history:
        if one.kind is Kind.ASSIGN:
            processes[one.process] = _Reading({at.partition: (at.offset, one) for at in one.positions})
        elif one.kind is Kind.POLL:
            yield from _polled(logs, processes.setdefault(one.process, _Reading()), one)


def _polled(logs: Logs, reading: _Reading, one: Operation) -> Iterator[Anomaly]:
    for polled in one.polled:
        partition = polled.partition
        expected, before = reading.at.get(partition, (polled.offset, one))
        if polled.offset < expected:
            made = InternalNonmonotonicPoll if before is one else NonmonotonicPoll
            yield made((before, one), partition, (expected - 1, polled.offset))
        else:
            skipped = logs.between(partition, expected, polled.offset, is_committed_only=one.is_committed_only)
            if skipped:
                yield (InternalPollSkip if before is one else PollSkip)((before, one), partition, tuple(skipped))
        reading.at[partition] = polled.offset + 1, one
    for end in one.positions:
        expected, before = reading.at.get(end.partition, (end.offset, one))
        skipped = logs.between(end.partition, expected, end.offset, is_committed_only=one.is_committed_only)
        if skipped:
            yield PollSkip((before, one), end.partition, tuple(skipped))
        reading.at[end.partition] = max(end.offset, expected), one


def sends(logs: Logs) -> Iterator[Anomaly]:
    """Acknowledged offsets of a process that go back."""
    last: dict[tuple[str, str], tuple[int, Operation]] = {}
    done = (one for one in logs.history if one.kind in SENDS and one.outcome is Outcome.OK)
    for one in sorted(done, key=lambda one: one.invoked_ns):
        for sent in one.sent:
            if sent.offset is None:
                continue
            key = one.process, sent.partition
            before = last.get(key)
            if before is not None and sent.offset <= before[0]:
                made = InternalNonmonotonicSend if before[1] is one else NonmonotonicSend
                yield made((before[1], one), sent.partition, (before[0], sent.offset))
            last[key] = sent.offset, one


def ends(logs: Logs) -> Iterator[Anomaly]:
    """Ends of partitions that are below what was known before they were asked for."""
    known: dict[str, list[tuple[int, int, Operation]]] = {}  # when it was known, the least end, and who was told
    for one in sorted(logs.history, key=lambda one: one.completed_ns):
        for end in one.positions if one.kind is Kind.END_OFFSETS else ():
            entries = known.get(end.partition, [])
            before = bisect_left(entries, one.invoked_ns, key=lambda entry: entry[0]) - 1
            if before >= 0 and entries[before][1] > end.offset:
                _, least, told = entries[before]
                yield EndOffsetBack((told, one), end.partition, (least, end.offset))
        for partition, least in _least_ends(one):
            entries = known.setdefault(partition, [])
            if not entries or least > entries[-1][1]:
                entries.append((one.completed_ns, least, one))


def _least_ends(one: Operation) -> Iterator[tuple[str, int]]:
    """The ends that partitions have at least when the operation is completed."""
    if one.kind is Kind.END_OFFSETS:
        yield from ((end.partition, end.offset) for end in one.positions)
    elif one.kind in SENDS:
        yield from ((sent.partition, sent.offset + 1) for sent in one.sent if sent.offset is not None)
    elif one.kind is Kind.POLL:
        yield from ((polled.partition, polled.offset + 1) for polled in one.polled)


def hanging(logs: Logs) -> Iterator[Anomaly]:
    """Partitions whose last stable offset is below their end when all has ended."""
    finals = {one.process: one for one in logs.history if one.kind is Kind.ASSIGN and one.is_final}
    reached: dict[bool, dict[str, tuple[int, Operation]]] = {True: {}, False: {}}
    for one in logs.history:
        if one.kind is Kind.POLL and one.process in finals and one.index > finals[one.process].index:
            reached[one.is_committed_only].update({end.partition: (end.offset, one) for end in one.positions})
    for partition, (end, told) in reached[False].items():
        stable = reached[True].get(partition)
        if stable is not None and stable[0] < end:
            yield HangingTransaction((stable[1], told), partition, (stable[0], end))
