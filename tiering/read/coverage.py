"""The offsets and timestamps that each tier of a partition has, from the manifest and the indexes; reads no records."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from local_log.errors import Corrupt
from local_log.ranges import Range, joined, uncovered
from local_log.segment_reader import Segment
from remote.manifest.losses import missing_for_readers
from remote.manifest.model import Item, Manifest
from remote.manifest.segment_entry import SegmentEntry
from tiering.read.readable_log import ReadableLog
from tiering.read.tiered_log import TieredLog


@dataclass(frozen=True, slots=True)
class TierCoverage:
    """`offsets` are ranges [start, end), including offsets that compaction removed.

    `times_ms` are ranges [first, last] of whole segments, both inclusive; they include records below the log start and records
    that compaction removed. The first timestamp of a local segment is that of its first batches. Messages without timestamps
    have none.

    Both are sorted, and adjacent ranges are merged.
    """

    offsets: tuple[Range, ...]
    times_ms: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class CoverageGap:
    """Offsets [start, end) that the archive lacks, and why: inside it, or lost behind its end."""

    start: int
    end: int
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """The coverage of each tier; None for a tier that does not have the partition."""

    archive: TierCoverage | None
    local: TierCoverage | None
    gaps: tuple[CoverageGap, ...]


NO_COVERAGE: Final = TierCoverage((), ())


def coverage_of(log: TieredLog) -> Coverage:
    """The coverage of both tiers. Raises the errors of reading the first batches of local segments and the end of the active
    one.
    """
    manifest = log.archived.manifest if log.archived else None
    return Coverage(
        None if manifest is None else _archived(manifest),
        None if log.local is None else _local(log.local),
        () if manifest is None else tuple(CoverageGap(gap.start, gap.end, gap.reason) for gap in missing_for_readers(manifest)),
    )


def as_json(coverage: Coverage) -> dict[str, Any]:
    """The coverage as a JSON object."""
    tiers = {"archive": coverage.archive, "local": coverage.local}
    return {
        **{name: tier and {"offsets": list(tier.offsets), "times_ms": list(tier.times_ms)} for name, tier in tiers.items()},
        "gaps": [{"start": gap.start, "end": gap.end, "reason": gap.reason} for gap in coverage.gaps],
    }


def _archived(manifest: Manifest) -> TierCoverage:
    start, end = manifest.log_start_offset, manifest.end_offset
    holes = ((gap.start, gap.end) for gap in manifest.holes)
    return TierCoverage(uncovered(holes, start, end), _merged(map(_times_of, manifest.items)))


def _times_of(item: Item) -> Range:
    """The timestamp range of an entry or a page; the page itself is not read."""
    oldest = item.min_timestamp_ms if isinstance(item, SegmentEntry) else item.bounds.oldest_ms if item.bounds else None
    return item.max_timestamp_ms if oldest is None else min(oldest, item.max_timestamp_ms), item.max_timestamp_ms


def _local(log: ReadableLog) -> TierCoverage:
    start, end = log.log_start_offset, log.log_end_offset
    return TierCoverage(((start, end),) if start < end else (), _merged(_times_in(log.segments)))


def _times_in(segments: Iterable[Segment]) -> Iterator[Range]:
    from remote.segment.times import UNKNOWN, least_timestamps  # with numpy, which the archive's part does not need

    for segment in segments:
        first = next(segment.chunks(), None)
        if first is not None:
            last = _greatest(segment)
            least = least_timestamps(first)
            yield min([last, *least[least != UNKNOWN].tolist()]), last


def _greatest(segment: Segment) -> int:
    """The largest timestamp of a segment. The time index is complete only in inactive segments, and missing if damaged."""
    try:
        known = segment.time_index().timestamps
    except Corrupt:
        known = ()
    if len(known) and segment.next_base_offset is not None:
        return int(known[-1])
    start = segment.last_indexed_offset() if len(known) else segment.base_offset
    behind = (int(chunk.batches.max_timestamp.max()) for chunk in segment.chunks(start) if len(chunk.batches))
    return max([*behind, *map(int, known[-1:])], default=-1)


def _merged(times: Iterable[Range]) -> tuple[Range, ...]:
    known = sorted((max(first, 0), last + 1) for first, last in times if last >= 0)
    return tuple((start, end - 1) for start, end in joined(known))
