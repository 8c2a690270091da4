"""How the offsets of a read are cut into splits, each the work of one task: planned on the driver, from manifests."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from remote.fetch_plan import Span, plan
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.object_store import ObjectReader, ObjectStore
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.ranges import Range, resolve


@dataclass(frozen=True, slots=True)
class Split:
    """The offsets `[start, end)` of one segment. `manifest` is the version that was planned with, cut to that segment."""

    manifest: Manifest
    span: Span

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self.manifest.topic

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self.manifest.partition


def plan_splits(store: ObjectStore, options: ReadOptions) -> tuple[Split, ...]:
    """The splits of a read, in the order of topics, partitions and offsets; each offset in one of them.

    Raises what `resolve` and `splits` raise.
    """
    return splits(store, resolve(store, options), options)


def splits(store: ObjectReader, ranges: Iterable[Range], options: ReadOptions) -> tuple[Split, ...]:
    """The splits of ranges, in their order; each offset in one of them.

    Raises OffsetOutOfRange where a range starts outside the archive, MissingRange (unless failOnDataLoss is false), and what
    reading a page raises.
    """
    found = tuple(split for r in ranges for split in _of_segments(store, r, options))
    return found if options.min_partitions is None else tuple(_divided(found, options.min_partitions))


def _of_segments(store: ObjectReader, r: Range, options: ReadOptions) -> Iterator[Split]:
    alone = replace(r.manifest, entries=(), pages=(), deleting=(), gaps=(), local_log_start_offsets={})
    entries = Entries.of(store, r.manifest).overlapping(r.start, r.end)
    for span in plan(r.manifest, entries, r.start, r.end, fail_on_data_loss=options.fail_on_data_loss):
        yield Split(replace(alone, entries=(span.entry,)), span)


def _divided(splits: tuple[Split, ...], parts_min: int) -> Iterator[Split]:
    """At least `parts_min` splits, if there are as many offsets: each is divided by its share of all offsets, as Spark does."""
    total = sum(s.span.end - s.span.start for s in splits)
    for split in splits:
        start, end = split.span.start, split.span.end
        parts = min(end - start, -(-(end - start) * parts_min // total))
        for i in range(parts):
            part = replace(split.span, start=start + (end - start) * i // parts, end=start + (end - start) * (i + 1) // parts)
            yield replace(split, span=part)
