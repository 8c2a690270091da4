"""How the offsets of a read are cut into splits, each the work of one task: planned on the driver, from manifests.

No index is asked for where a manifest will do: a segment that is larger than a split is cut where so many bytes should be, as if
its records were of one size, and the task that reads a part looks its bytes up. Only where a query's window of time begins or
ends in a segment, its indexes say where; there is one such segment for each end, unless records are far out of order.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from local_log.ranges import bounding_range
from remote.keys import PartitionPath
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import SegmentEntry
from remote.parallel import in_order
from remote.read.context import ReadContext, decoder_with
from remote.read.index_cache import SegmentIndexes
from remote.read.plan import Span, check_start_offset, fetch_plan, first_missing
from remote.segment.times import UNKNOWN, passed_by
from remote.store.api import ObjectReader, ObjectStore
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.pushdown import ALL, EVERYTHING, Pushdown
from spark_jobs.source.ranges import THREADS, Range, resolve
from spark_jobs.work_division import split_sizes


@dataclass(frozen=True, slots=True)
class Split:
    """The offsets `[start, end)` of one segment. `manifest` is the version that was planned with, cut to that segment."""

    manifest: Manifest
    span: Span

    @property
    def path(self) -> PartitionPath:
        """The partition."""
        return self.manifest.path

    @property
    def topic(self) -> str:
        """Its topic's name."""
        return self.manifest.topic

    @property
    def partition(self) -> int:
        """Its number in the topic."""
        return self.manifest.partition

    @property
    def records(self) -> int:
        """How many offsets it has; compaction may have left fewer records."""
        return self.span.end - self.span.start

    @property
    def bytes(self) -> int:
        """About how many bytes of the segment's log it takes, as if all records were of one size."""
        entry = self.span.entry
        return -(-entry.log_size * self.records // (entry.end_offset - entry.base_offset))

    def cut(self, count: int) -> "tuple[Split, ...]":
        """The split in `count` parts, or as many as it has offsets; sizes differ by one offset at most."""
        size = self.records
        count = min(size, count)
        return tuple(_divided(self, [size * (i + 1) // count - size * i // count for i in range(count)]))


def plan_splits(store: ObjectStore, options: ReadOptions, pushdown: Pushdown = EVERYTHING) -> tuple[Split, ...]:
    """The splits of a read, in the order of topics, partitions and offsets; each offset that the filters leave in one of them.

    Raises what `resolve` and `splits` raise.
    """
    return splits(store, resolve(store, options, pushdown), options, pushdown)


def splits(
    store: ObjectReader, ranges: Iterable[Range], options: ReadOptions, pushdown: Pushdown = EVERYTHING
) -> tuple[Split, ...]:
    """The splits of ranges, in their order; each offset that the filters leave in one of them.

    Raises OffsetOutOfRange where a range starts outside the archive, MissingRange (unless failOnDataLoss is false), what reading
    a page raises, and where a window of time is asked for what reading indexes raises.
    """
    reading = ReadContext(decoder_with(options.keys))

    def of_range(r: Range) -> list[Split]:
        return list(_of_range(store, r, options, pushdown, reading))

    with in_order(of_range, ranges, THREADS) as found:
        uncut = [split for of_one in found for split in of_one]
    sizes = [s.records for s in uncut]
    divided = split_sizes(sizes, options.max_records_per_partition, options.min_partitions)
    return tuple(part for split, of_split in zip(uncut, divided, strict=True) for part in _divided(split, of_split))


def _of_range(store: ObjectReader, r: Range, options: ReadOptions, pushdown: Pushdown, reading: ReadContext) -> Iterator[Split]:
    alone = replace(r.manifest, entries=(), pages=(), deleting=(), gaps=(), local_log_start_offsets={}, losses=())
    for span in _spans(store, r, options, pushdown, reading):
        split = Split(replace(alone, entries=(span.entry,)), span)
        yield from split.cut(-(-split.bytes // options.bytes_per_split))


def _spans(store: ObjectReader, r: Range, options: ReadOptions, pushdown: Pushdown, reading: ReadContext) -> Iterator[Span]:
    check_start_offset(r.manifest, r.start)
    inside = bounding_range(pushdown.offsets, r.start, min(r.end, r.manifest.end_offset))
    if inside is None:
        return
    entries = Entries.of(store, r.manifest)
    if pushdown.times_ms == ALL:
        found = fetch_plan(r.manifest, entries.overlapping(*inside), *inside, fail_on_data_loss=options.fail_on_data_loss)
    else:
        found = tuple(_in_time(store, entries, *inside, options, pushdown, reading))
    for span in found:
        part = bounding_range(pushdown.offsets, span.start, span.end)
        if part is not None:
            yield replace(span, start=part[0], end=part[1])


def _in_time(  # seven parameters: those of `_spans`, and the range that it has found
    store: ObjectReader, entries: Entries, start: int, end: int, options: ReadOptions, pushdown: Pushdown, reading: ReadContext
) -> Iterator[Span]:
    """As `plan`, but for the segments that hold no record of a wanted time, and the pages that hold no such segments.

    What is missing could have been of any time. Where segments overlap and one of them is left out, the other's records of the
    same offsets are of no wanted time either.
    """
    missing = first_missing(entries.manifest, start, end)
    if missing is not None and options.fail_on_data_loss:
        raise missing
    if not pushdown.times_ms:
        return
    late = entries.as_late_as(pushdown.times_ms[0][0], start, end)
    some = (e for e in late if bounding_range(pushdown.times_ms, _earliest(e), e.max_timestamp_ms + 1) is not None)
    source, first = reading.source(store), True
    for span in fetch_plan(entries.manifest, some, start, end, fail_on_data_loss=False):
        part = bounding_range(pushdown.times_ms, _earliest(span.entry), span.entry.max_timestamp_ms + 1)
        is_inside = part == (_earliest(span.entry), span.entry.max_timestamp_ms + 1)
        # Without a least time nothing tells which segments are worth a look; where the window begins, one surely is.
        if part is not None and not is_inside and (first or span.entry.min_timestamp_ms is not None):
            span = _narrowed(span, part, reading.indexes.get(source, entries.manifest.path, span.entry))
        first = False
        if span.start < span.end:
            yield span


def _narrowed(span: Span, times_ms: tuple[int, int], indexes: SegmentIndexes) -> Span:
    """The offsets of the span between which all records of `[start, end)` ms lie."""
    start = indexes.times().lookup(times_ms[0], span.entry.base_offset)
    end = passed_by(indexes.least_times(), times_ms[1], span.entry.end_offset)
    return replace(span, start=max(span.start, start), end=min(span.end, end))


def _earliest(entry: SegmentEntry) -> int:
    return UNKNOWN if entry.min_timestamp_ms is None else entry.min_timestamp_ms


def _divided(split: Split, sizes: Iterable[int]) -> Iterator[Split]:
    """The split cut into parts of so many offsets."""
    start = split.span.start
    for size in sizes:
        yield Split(split.manifest, replace(split.span, start=start, end=start + size))
        start += size
