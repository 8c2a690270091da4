"""What a search does on an executor: an offset by time of one partition, or the records of a split that match."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from local_log.formats.chunks import CHUNK_BYTES
from local_log.formats.list_offsets import TimestampOffset
from remote.manifest.model import Manifest
from remote.read.log import ArchivedLog
from remote.store.open import open_store
from spark_jobs.read_context import read_context
from spark_jobs.search.predicate import Predicate
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import Split
from spark_jobs.source.rows import FIELDS, read_split

COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value")


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """Which records of what `options` reads are looked for: those that meet all predicates, of times `[from_ms, to_ms)`."""

    options: ReadOptions
    predicates: tuple[Predicate, ...]
    from_ms: int | None
    to_ms: int | None
    limit: int


def offset_at(archive: str, manifest: Manifest, timestamp_ms: int, keys: str | None) -> tuple[str, int, TimestampOffset | None]:
    """The topic, the partition, and the first record in it that is as late as the timestamp. Raises as `offset_for_time`."""
    log = ArchivedLog(open_store(archive), manifest, reading=read_context(archive, keys))
    return manifest.topic, manifest.partition, log.offset_for_time(timestamp_ms, log.log_start_offset, log.end_offset)


def matches(query: SearchQuery, split: Split) -> pa.Table:
    """The first `limit` records of a split that match, with COLUMNS; what is behind them is not read. Raises as `read_split`."""
    found: list[pa.RecordBatch] = []
    rows = 0
    for batch in _matching(query, split):
        found.append(batch.slice(0, query.limit - rows))
        rows += found[-1].num_rows
        if rows == query.limit:
            break
    return pa.Table.from_batches(found, pa.schema([(name, FIELDS[name]) for name in COLUMNS]))


def _matching(query: SearchQuery, split: Split) -> Iterator[pa.RecordBatch]:
    asked = query.options
    batches = read_split(
        open_store(asked.archive),
        split,
        COLUMNS,
        read_committed=asked.read_committed,
        first_bytes=CHUNK_BYTES,
        context=read_context(asked.archive, asked.keys),
    )
    for batch in batches:
        masks = [predicate.mask(batch) for predicate in query.predicates]
        times = batch.column("timestamp").cast(pa.int64())
        if query.from_ms is not None:
            masks.append(pc.greater_equal(times, query.from_ms * 1000))
        if query.to_ms is not None:
            masks.append(pc.less(times, query.to_ms * 1000))
        for mask in masks[1:]:
            masks[0] = pc.and_(masks[0], mask)
        # What is found is few of many: filtering copies it, so the batch is not kept for it.
        matching = batch.filter(masks[0]) if masks else batch
        if matching.num_rows:
            yield matching
