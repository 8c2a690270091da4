"""The records of a split as the rows of Spark's Kafka source: Arrow in, Arrow out. Loaded by executors."""

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from local_log.errors import Corrupt
from local_log.formats.chunks import Chunk
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.record_batch.columns import per_record
from local_log.formats.record_batch.projection import Projection
from local_log.formats.visible_records import record_batches, visible
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from spark_jobs.source.deleted_during_read import deleted_during_read
from spark_jobs.source.partitions import Split

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))

FIELDS = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestampType": pa.int32(),
    "headers": HEADERS,
}
"""Spark's columns in Spark's order; `headers` only with includeHeaders. Timestamps are exact to the ms that Kafka has."""

OF_BATCHES = frozenset(["topic", "partition", "timestampType"])
"""Columns that a batch's header tells: who wants no others has no record decoded, and nothing inflated."""

_LAST_MS = (2**63 - 1) // 1000
"""The last moment that a timestamp in microseconds can name, as milliseconds."""


def read_split(  # seven parameters: each of the four keywords is set by some callers only
    store: ObjectStore,
    split: Split,
    columns: Iterable[str],
    *,
    read_committed: bool,
    first_bytes: int,
    fail_on_data_loss: bool = True,
    context: ReadContext | None = None,
) -> Iterator[pa.RecordBatch]:
    """The split's rows with these columns, in this order, a few MB at a time. Only what they need is decoded.

    `context` has the keys of encrypted segments; None: no keys. Raises Corrupt, Unavailable, NoKey, WrongKey, Invalid. Raises
    DeletedDuringRead if retention has deleted the segment since; if data loss is allowed, the rows end there instead.
    """
    columns = tuple(columns)
    try:
        log = ArchivedLog(store, split.manifest, first_bytes, context or ReadContext())
        yield from _rows(log, split, columns, read_committed)
    except Corrupt as e:
        loss = deleted_during_read(store, split, e)
        if loss is None:
            raise
        if fail_on_data_loss:
            raise loss from e


def _rows(log: ArchivedLog, split: Split, columns: tuple[str, ...], read_committed: bool) -> Iterator[pa.RecordBatch]:
    want = Projection(
        key="key" in columns, value="value" in columns, headers="headers" in columns, timestamp_type="timestampType" in columns
    )
    span = split.span
    aborted = log.aborted(span.start, span.end) if read_committed else ()
    schema = pa.schema([(name, FIELDS[name]) for name in columns])
    chunks = log.span_chunks(span)
    if OF_BATCHES.issuperset(columns):
        parts = _counted(chunks, split, aborted, want)
    else:
        parts = record_batches(chunks, span.start, span.end, aborted, want)
    for records in parts:
        yield pa.RecordBatch.from_arrays([_column(records, name, split) for name in columns], schema=schema)


def _counted(chunks: Iterable[Chunk], split: Split, aborted: Iterable[AbortedTxn], want: Projection) -> Iterator[pa.RecordBatch]:
    """As `record_batches`, with timestamp types only. Only batches that are partly in the split are decoded."""
    span, aborted = split.span, tuple(aborted)
    for chunk in chunks:
        seen = visible(chunk, span.start, span.end, aborted)
        batches = seen.batches
        whole = (batches.base_offset >= span.start) & (batches.last_offset < span.end)
        inside = seen.where(whole)
        if len(inside.batches):
            inside.check()
            types = per_record(inside.batches, inside.batches.timestamp_type)
            yield pa.RecordBatch.from_arrays([pa.array(types, pa.int32())], names=["timestamp_type"])
        yield from record_batches([seen.where(~whole)], span.start, span.end, aborted, want)


def _column(records: pa.RecordBatch, name: str, split: Split) -> Any:
    if name == "topic":
        return pa.repeat(pa.scalar(split.topic, pa.string()), records.num_rows)
    if name == "partition":
        return pa.repeat(pa.scalar(split.partition, pa.int32()), records.num_rows)
    if name == "timestamp":
        return _timestamps(records.column("timestamp"))
    if name == "timestampType":
        return records.column("timestamp_type")
    if name == "headers":
        return _headers(records.column("headers"))
    return records.column(name)


def _timestamps(milliseconds: Any) -> Any:
    # A producer that counts in nanoseconds names times that Spark does not have: they show as its last moment, in 294247.
    span = pc.min_max(milliseconds).as_py()
    if span["max"] is not None and (span["max"] > _LAST_MS or span["min"] < -_LAST_MS):
        milliseconds = pc.max_element_wise(pc.min_element_wise(milliseconds, _LAST_MS), -_LAST_MS)
    return pc.multiply(milliseconds, 1000).cast(FIELDS["timestamp"])


def _headers(headers: Any) -> Any:
    """Header keys are text to Spark, and a record without headers has null, as in Spark's Kafka source."""
    keys = pc.struct_field(headers.values, "key")
    try:
        text = keys.cast(pa.string())
    except pa.ArrowInvalid:  # Kafka's clients write UTF-8, others may not: what is not, shows as Java would show it
        text = pa.array([key.decode("utf-8", errors="replace") for key in keys.to_pylist()], pa.string())
    pairs = pa.StructArray.from_arrays([text, pc.struct_field(headers.values, "value")], fields=list(HEADERS.value_type))
    lists = pa.ListArray.from_arrays(headers.offsets, pairs)
    filled = pc.greater(pc.list_value_length(lists), 0)
    return pc.if_else(filled, lists, pa.scalar(None, lists.type)).cast(HEADERS)
