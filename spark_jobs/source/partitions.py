"""Which offsets of which segments make the partitions of a read: planned on the driver, from manifests alone where it can be."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from local_log.errors import OffsetOutOfRange
from local_log.formats.search import TimestampOffset
from remote import archive
from remote.fetch_plan import Span, plan
from remote.manifest.model import Manifest
from remote.object_store import ObjectStore
from remote.reader import ArchivedLog
from remote.reading import Reading, decoded_with
from spark_jobs.source.options import EARLIEST, LATEST, Offsets, OptionError, ReadOptions


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

    Raises NotFound, OffsetOutOfRange, MissingRange (unless failOnDataLoss is false), OptionError; Invalid for keys that cannot be
    had.
    """
    archive.open_archive(store)
    reading = Reading(decoded_with(options.keys))
    logs = (ArchivedLog(store, m, reading=reading) for topic in options.topics for m in archive.manifests(store, topic))
    splits = tuple(split for log in logs for split in _splits(log, options))
    return splits if options.min_partitions is None else tuple(_divided(splits, options.min_partitions))


def _splits(log: ArchivedLog, options: ReadOptions) -> Iterator[Split]:
    manifest = log.manifest
    start, end = _start(log, options), _end(log, options)
    if not options.fail_on_data_loss:
        start = max(log.log_start_offset, min(start, log.end_offset))
    elif end > log.end_offset:
        raise OffsetOutOfRange(f"{manifest.topic}-{manifest.partition}", end, log.log_start_offset, log.end_offset)
    alone = replace(manifest, entries=(), pages=(), deleting=(), gaps=(), local_log_start_offsets={})
    for span in plan(manifest, log.entries.overlapping(start, end), start, end, fail_on_data_loss=options.fail_on_data_loss):
        yield Split(replace(alone, entries=(span.entry,)), span)


def _start(log: ArchivedLog, options: ReadOptions) -> int:
    if options.starting_timestamp is None:
        return _offset(log, options.starting_offsets, "startingOffsets")
    found = _at_time(log, options.starting_timestamp, options)
    if found is None and not options.latest_when_no_match:
        raise OptionError(
            f"startingTimestamp {options.starting_timestamp}: {log.manifest.topic}-{log.manifest.partition} has no record as "
            "late; set startingOffsetsByTimestampStrategy to latest to read nothing of such a partition"
        )
    return found.offset if found else log.end_offset


def _end(log: ArchivedLog, options: ReadOptions) -> int:
    if options.ending_timestamp is None:
        return _offset(log, options.ending_offsets, "endingOffsets")
    found = _at_time(log, options.ending_timestamp, options)
    return found.offset if found else log.end_offset


def _at_time(log: ArchivedLog, timestamp_ms: int, options: ReadOptions) -> TimestampOffset | None:
    return log.offset_for_time(timestamp_ms, log.log_start_offset, log.end_offset, fail_on_data_loss=options.fail_on_data_loss)


def _offset(log: ArchivedLog, offsets: Offsets, option: str) -> int:
    offset = offsets.of(log.manifest.topic, log.manifest.partition, option)
    if isinstance(offset, int):
        return offset
    return {EARLIEST: log.log_start_offset, LATEST: log.end_offset}[offset]


def _divided(splits: tuple[Split, ...], parts_min: int) -> Iterator[Split]:
    """At least `parts_min` splits, if there are as many offsets: each is divided by its share of all offsets, as Spark does."""
    total = sum(s.span.end - s.span.start for s in splits)
    for split in splits:
        start, end = split.span.start, split.span.end
        parts = min(end - start, -(-(end - start) * parts_min // total))
        for i in range(parts):
            part = replace(split.span, start=start + (end - start) * i // parts, end=start + (end - start) * (i + 1) // parts)
            yield replace(split, span=part)
