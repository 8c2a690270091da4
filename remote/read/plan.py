"""Fetch plan: the spans of segments that hold a range of offsets, each offset once. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from local_log.errors import NotFound, OffsetOutOfRange
from local_log.ranges import clipped, uncovered
from remote.manifest.gaps import emptied_ranges, reason_of
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import SegmentEntry


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets `[start, end)` of one segment."""

    entry: SegmentEntry
    start: int
    end: int


class MissingRange(NotFound):
    """Offsets that the archive lacks although they may have had records: the part of a gap inside the requested range."""

    def __init__(self, partition: str, start: int, end: int, reason: str) -> None:
        super().__init__(partition, start, end, reason)
        self.partition = partition
        self.start = start
        self.end = end
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.partition}: the archive lacks offsets [{self.start}, {self.end}): {self.reason}; read from {self.end} on"


def fetch_plan(
    manifest: Manifest, entries: Iterable[SegmentEntry], start: int, end: int, *, fail_on_data_loss: bool = True
) -> tuple[Span, ...]:
    """The spans that hold `[start, end)`, in order; `end` is cut to the archive's end. `entries` are as for `spans_and_gaps`.

    Overlapping segments give each offset once, from the segment that starts first. Raises OffsetOutOfRange if `start` is
    outside the archive, and MissingRange if offsets in between are missing, unless `fail_on_data_loss` is false.
    """
    spans: list[Span] = []
    for piece in spans_and_gaps(manifest, entries, start, end):
        if isinstance(piece, Span):
            spans.append(piece)
        elif fail_on_data_loss:
            raise piece
    return tuple(spans)


def spans_and_gaps(manifest: Manifest, entries: Iterable[SegmentEntry], start: int, end: int) -> Iterator[Span | MissingRange]:
    """Like `fetch_plan`, but yields a MissingRange in the place of missing offsets instead of raising it.

    `entries` are the manifest's entries that overlap `[start, end)`, ordered by base offset (others are ignored). They are
    consumed lazily.
    """
    check_start_offset(manifest, start)
    end = min(end, manifest.end_offset)
    if start >= end:
        return
    for entry in entries:
        if entry.base_offset > start:
            yield from _missing(manifest, start, min(end, entry.base_offset))
        if entry.end_offset > start and entry.base_offset < end:
            yield Span(entry, max(start, entry.base_offset), min(end, entry.end_offset))
        start = max(start, entry.end_offset)
        if start >= end:
            return
    yield from _missing(manifest, start, end)


def check_start_offset(manifest: Manifest, start: int) -> None:
    """Raises OffsetOutOfRange if a read cannot start at this offset."""
    if not manifest.log_start_offset <= start <= manifest.end_offset:
        raise OffsetOutOfRange(_name(manifest), start, manifest.log_start_offset, manifest.end_offset)


def first_missing(manifest: Manifest, start: int, end: int) -> MissingRange | None:
    """The first offsets of `[start, end)` in a recorded gap, None without one. Gaps left by compaction do not count."""
    missing = clipped(((g.start, g.end) for g in manifest.holes), start, end)
    return _missing_range(manifest, *missing[0]) if missing else None


def _missing(manifest: Manifest, start: int, end: int) -> Iterator[MissingRange]:
    """The offsets of `[start, end)` without an entry, but for those that compaction removed, which consumers skip as well."""
    return (_missing_range(manifest, *part) for part in uncovered(emptied_ranges(manifest.gaps), start, end))


def _missing_range(manifest: Manifest, start: int, end: int) -> MissingRange:
    return MissingRange(_name(manifest), start, end, reason_of(manifest.gaps, start, end))


def _name(manifest: Manifest) -> str:
    return f"{manifest.topic}-{manifest.partition}"
