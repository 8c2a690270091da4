"""Which archived segments make up one log on disk: pure, each offset once, as few cuts as there can be.

Two replicas roll at different offsets, so what they archived overlaps. A log directory may not: of each segment only what comes
after the one before it is kept. A segment that starts just where the one before has ended needs no cut, so it is preferred.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from local_log.formats.checkpoints import EpochEntry, epoch_of
from local_log.ranges import uncovered
from remote.manifest.gaps import Gap, emptied_ranges, reason_of
from remote.manifest.segment_entry import SegmentEntry


@dataclass(frozen=True, slots=True)
class Link:
    """The batches of one segment in `[start, end)`; if `is_whole`, all of its batches."""

    entry: SegmentEntry
    start: int
    end: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing of the segment is left out."""
        return self.start == self.entry.base_offset and self.end == self.entry.end_offset


@dataclass(frozen=True, slots=True)
class MissingOffsets:
    """Offsets `[start, end)` that no segment holds, and why."""

    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class DivergedSegment:
    """A segment of another history than the log's: its leader epochs contradict the lineage."""

    entry: SegmentEntry
    offset: int
    """The first offset where they do."""


def chain(
    entries: Iterable[SegmentEntry], gaps: Iterable[Gap], lineage: tuple[EpochEntry, ...], start: int, end: int
) -> Iterator[Link | MissingOffsets | DivergedSegment]:
    """What holds `[start, end)`, in order, and what nothing holds, but for what compaction has left empty.

    `entries` come in the order of their base offsets, and few are held at a time. The first segment keeps its beginning below
    `start`, as Kafka's own first segment does.
    """
    known = tuple(gaps)
    waiting: list[SegmentEntry] = []
    at, is_first = start, True
    for entry in entries:
        if entry.base_offset >= end:
            break
        offset = first_contradiction(entry, lineage)
        if offset is not None:
            yield DivergedSegment(entry, offset)
        elif entry.end_offset > at:
            # Nothing that starts at `at` is overlooked: what comes from here on starts above it.
            while entry.base_offset > at and waiting:
                link = _next(waiting, at, end, keeps_beginning=is_first)
                yield link
                at, is_first = link.end, False
                waiting = [e for e in waiting if e.end_offset > at]
            if entry.base_offset > at:
                yield from _holes(known, at, entry.base_offset)
                at, is_first = entry.base_offset, False
            if entry.end_offset > at:
                waiting.append(entry)
    while waiting and at < end:
        link = _next(waiting, at, end, keeps_beginning=is_first)
        yield link
        at, is_first = link.end, False
        waiting = [e for e in waiting if e.end_offset > at]
    if at < end:
        yield from _holes(known, at, end)


def first_contradiction(entry: SegmentEntry, lineage: tuple[EpochEntry, ...]) -> int | None:
    """The first offset at which the leader epochs of a segment are not those of the lineage; None where there is none.

    As far as its entry tells: it has the offset of the first batch of each epoch, and that of the last batch of all.
    """
    for offset in (*(e.start_offset for e in entry.leader_epochs), entry.last_offset):
        ours, theirs = epoch_of(entry.leader_epochs, offset), epoch_of(lineage, offset)
        if ours is not None and theirs is not None and ours != theirs:
            return offset
    return None


def _holes(gaps: Iterable[Gap], start: int, end: int) -> Iterator[MissingOffsets]:
    return (MissingOffsets(a, b, reason_of(gaps, a, b)) for a, b in uncovered(emptied_ranges(gaps), start, end))


def _next(waiting: list[SegmentEntry], at: int, end: int, *, keeps_beginning: bool) -> Link:
    """Of the segments that hold `at`: one that starts there, else any; of those the one that reaches farthest."""
    best = max(waiting, key=lambda e: (e.base_offset == at, e.end_offset))
    if keeps_beginning:
        best = max(waiting, key=lambda e: (e.end_offset, e.base_offset))
    return Link(best, best.base_offset if keeps_beginning else max(at, best.base_offset), min(best.end_offset, end))
