"""The sums of a split: batches by their headers, records by their columns. Loaded by executors."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from local_log.formats.chunks import CHUNK_BYTES, Chunk
from local_log.formats.compression import inflate
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.messages.magic_0_1 import held_set, read_message
from local_log.formats.record import NO_PRODUCER, Codec
from local_log.formats.record_batch.projection import Projection
from local_log.formats.visible_records import record_batches
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.read.plan import Span
from remote.store.api import ObjectReader
from spark_jobs.source.partitions import Split
from spark_jobs.stats.sums import HOUR_MS, NO_HOUR, Hour, HourSums, OffsetSums, PartitionSums, merged

_KEYS_AND_VALUES = Projection(headers=False)


def measure(store: ObjectReader, split: Split, *, with_records: bool = True, context: ReadContext | None = None) -> PartitionSums:
    """The sums of a split. A batch that a split's border cuts counts where its last record is; its records where they are.

    Without `with_records` nothing is decoded and no checksum is checked: a batch's records all count with it, in the hour of its
    latest one, and what only records tell stays 0. Raises as `read_split`.
    """
    span = split.span
    log = ArchivedLog(store, split.manifest, CHUNK_BYTES, context or ReadContext())
    parts = (part for chunk in log.span_chunks(span) for part in _of_chunk(chunk, span, with_records))
    return PartitionSums(OffsetSums(span.end - span.start)) + merged(parts)


def _of_chunk(chunk: Chunk, span: Span, with_records: bool) -> Iterator[PartitionSums]:
    ends_here = (chunk.batches.last_offset >= span.start) & (chunk.batches.last_offset < span.end)
    is_control = chunk.batches.is_control
    if with_records:
        for records in record_batches([chunk], span.start, span.end, want=_KEYS_AND_VALUES):
            yield PartitionSums(hours=_of_records(records))
    control_records = int(chunk.batches.count[ends_here & is_control].sum())
    yield PartitionSums(OffsetSums(0, control_records), _of_batches(chunk.where(ends_here & ~is_control), with_records))


def _of_batches(chunk: Chunk, with_records: bool) -> dict[Hour, HourSums]:
    batches, sums = chunk.batches, {}
    decoded = _decoded_bytes(chunk) if with_records else np.zeros(len(batches), np.int64)
    for hour, rows in _by_hour(batches.max_timestamp):
        codecs, counts = np.unique(batches.codec[rows], return_counts=True)
        sums[hour] = HourSums(
            records=0 if with_records else int(batches.count[rows].sum()),
            batches=int(counts.sum()),
            stored_bytes=int(batches.size[rows].sum()),
            decoded_bytes=int(decoded[rows].sum()),
            codecs=dict(zip(codecs.tolist(), counts.tolist(), strict=True)),
            producers=frozenset(np.unique(batches.header["producer_id"][rows]).tolist()) - {NO_PRODUCER},
        )
    return sums


def _of_records(records: pa.RecordBatch) -> dict[Hour, HourSums]:
    keys, values = records.column("key"), records.column("value")
    sizes = sum(pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64) for column in (keys, values))
    no_key, no_value = (column.is_null().to_numpy(zero_copy_only=False) for column in (keys, values))
    sums = {}
    for hour, rows in _by_hour(records.column("timestamp").to_numpy()):
        of_hour = sizes[rows]
        sums[hour] = HourSums(
            records=len(of_hour),
            null_keys=int(no_key[rows].sum()),
            null_values=int(no_value[rows].sum()),
            record_bytes=int(of_hour.sum()),
            record_bytes_min=int(of_hour.min()),
            record_bytes_max=int(of_hour.max()),
        )
    return sums


def _by_hour(timestamps: Any) -> Iterator[tuple[Hour, Any]]:
    """The hours that timestamps (ms) fall into, each with its rows."""
    hours = np.where(timestamps < 0, -1, timestamps // HOUR_MS * HOUR_MS)
    if len(hours) and hours.min() == hours.max():  # mostly so, and sorting costs more than all else
        yield _named(hours[0]), slice(None)
        return
    order = np.argsort(hours, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(hours[order])) + 1):
        if len(rows):
            yield _named(hours[rows[0]]), rows


def _named(hour: Any) -> Hour:
    return NO_HOUR if hour < 0 else int(hour)


def _decoded_bytes(chunk: Chunk) -> Any:
    """What each batch would be without its codec. The records were decoded, so all of them inflate."""
    batches, view = chunk.batches, memoryview(chunk.buffer)
    sizes = batches.size.astype(np.int64)
    for row in np.flatnonzero((batches.codec != Codec.none) & (batches.count > 0)).tolist():
        start, end = int(batches.positions[row]), int(batches.end[row])
        if batches.are_messages:
            sizes[row] = len(held_set(read_message(chunk.buffer, start)[0]))
        else:
            sizes[row] = BATCH_HEADER_BYTES + len(inflate(int(batches.codec[row]), view[start + BATCH_HEADER_BYTES : end]))
    return sizes
