"""Anomalies of single values: lost, duplicated, aborted and read all the same."""

from collections.abc import Iterator

from histories.anomalies import (
    AbortedRead,
    Anomaly,
    CyclicReads,
    Duplicate,
    InconsistentOffsets,
    LostWrite,
    NeverSent,
    PrecommittedRead,
    Unseen,
)
from histories.logs import Logs
from histories.operations import Kind, Outcome


def of_offsets(logs: Logs) -> Iterator[Anomaly]:
    """Several values at one offset, or a value at several."""
    for partition, values in logs.values.items():
        for offset, found in values.items():
            if len(found) > 1:
                yield InconsistentOffsets(tuple(found.values()), partition, (offset,), tuple(found))
    for (partition, value), offsets in logs.offsets.items():
        if len(offsets) > 1:
            yield Duplicate(tuple(offsets.values()), partition, value, tuple(offsets))


def lost(logs: Logs) -> Iterator[Anomaly]:
    """Acknowledged and not read by anybody, though somebody has read what is around it."""
    for value, sender in logs.sender_of.items():
        partition = logs.partition_of[value]
        if any((partition, value) in polls for polls in logs.polls.values()) or not logs.is_committed(sender):
            continue
        offset = min(logs.offsets.get((partition, value), ()), default=None)
        if offset is not None and any(start <= offset < end for start, end in logs.ranges.get(partition, ())):
            yield LostWrite((sender,), partition, value)


def unseen(logs: Logs) -> Iterator[Anomaly]:
    """What final readers do not come to: acknowledged, or seen before."""
    finals = [one for one in logs.history if one.kind is Kind.ASSIGN and one.is_final]
    for final in finals:
        reached = {one.partition: one.offset for one in final.positions}
        for one in logs.history:
            if one.process == final.process and one.kind is Kind.POLL and one.index > final.index:
                reached |= {polled.partition: max(polled.offset + 1, reached.get(polled.partition, 0)) for polled in one.polled}
                reached |= {end.partition: max(end.offset, reached.get(end.partition, 0)) for end in one.positions}
        for partition, offset in reached.items():
            for missing in logs.between(partition, offset, 1 << 63, is_committed_only=final.is_committed_only):
                for value, told in logs.values[partition][missing].items():
                    yield Unseen((told, final), partition, value)
    if finals:
        for value, sender in logs.sender_of.items():
            if sender.outcome is Outcome.OK and not logs.offsets.get((logs.partition_of[value], value)):
                yield Unseen((sender,), logs.partition_of[value], value)


def dirty(logs: Logs) -> Iterator[Anomaly]:
    """Read by who reads committed records only, though it was aborted or not yet committed; or sent by nobody."""
    for is_committed_only, polls in logs.polls.items():
        for (partition, value), reader in polls.items():
            sender = logs.sender_of.get(value)
            if sender is None:
                yield NeverSent((reader,), partition, value)
            elif is_committed_only and sender.outcome is Outcome.FAIL:
                yield AbortedRead((sender, reader), partition, value)
            elif is_committed_only and sender.kind is Kind.TXN and reader.completed_ns < sender.ends_ns:
                yield PrecommittedRead((sender, reader), partition, value)


def cyclic(logs: Logs) -> Iterator[Anomaly]:
    """Transactions that have read from each other (G1c with the edges of reads; Kafka's transactions may write interleaved)."""
    txns = {one.index: one for one in logs.history if one.kind is Kind.TXN and one.polled}
    reads_from = {
        index: {logs.sender_of[polled.value].index for polled in one.polled if polled.value in logs.sender_of} & txns.keys()
        for index, one in txns.items()
    }
    yield from (CyclicReads(tuple(txns[index] for index in cycle)) for cycle in _cycles(reads_from))


def _cycles(edges: dict[int, set[int]]) -> Iterator[list[int]]:
    """A cycle for each one that a walk over the edges comes back to."""
    done: set[int] = set()
    for start in edges:
        path, todo = [start], [iter(edges[start] - done)]
        if start in done:
            continue
        while path:
            following = next(todo[-1], None)
            if following is None:
                done.add(path.pop())
                todo.pop()
            elif following in path:
                yield path[path.index(following) :]
            elif following not in done:
                path.append(following)
                todo.append(iter(edges[following]))
