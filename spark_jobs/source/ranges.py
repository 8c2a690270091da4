"""Which offsets of which partitions a read is of: from the options and the manifests, and from indexes where it is by time."""

from dataclasses import dataclass

from local_log.errors import OffsetOutOfRange
from local_log.formats.search import TimestampOffset
from remote import archive
from remote.manifest.model import Manifest
from remote.object_store import ObjectStore
from remote.reader import ArchivedLog
from remote.reading import Reading, decoded_with
from spark_jobs.source.options import EARLIEST, LATEST, Offsets, OptionError, ReadOptions


@dataclass(frozen=True, slots=True)
class Range:
    """The offsets `[start, end)` of one partition, none where `end` is not above `start`, as version `manifest` has them."""

    manifest: Manifest
    start: int
    end: int


def resolve(store: ObjectStore, options: ReadOptions) -> tuple[Range, ...]:
    """The range of every partition of the topics, in their order.

    Raises NotFound, OffsetOutOfRange (unless failOnDataLoss is false), MissingRange, OptionError; Invalid for keys that cannot
    be had.
    """
    archive.open_archive(store)
    reading = Reading(decoded_with(options.keys))
    logs = (ArchivedLog(store, m, reading=reading) for topic in options.topics for m in archive.manifests(store, topic))
    return tuple(_range(log, options) for log in logs)


def _range(log: ArchivedLog, options: ReadOptions) -> Range:
    start, end = _start(log, options), _end(log, options)
    if not options.fail_on_data_loss:
        start = max(log.log_start_offset, min(start, log.end_offset))
    elif end > log.end_offset:
        name = f"{log.manifest.topic}-{log.manifest.partition}"
        raise OffsetOutOfRange(name, end, log.log_start_offset, log.end_offset)
    return Range(log.manifest, start, end)


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
