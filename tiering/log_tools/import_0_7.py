"""Converts a log of Kafka 0.7 to record batches: the values in their order, with new offsets.

A message of Kafka 0.7 has only a value, so the records have no key, no timestamp and no headers. Its offset was a byte position
and has no meaning in the new log.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from local_log.formats.record import NO_TIMESTAMP
from local_log.formats.record_batch.writer import RECORDS, NewBatch, write_batch
from local_log.log_0_7 import Log07

BATCH_RECORDS_MAX = 500
BATCH_BYTES = 256 << 10
"""Values of a batch, about: a larger value has a batch to itself."""


def batches(log: Log07) -> Iterator[bytes]:
    """Record batches with base offset 0, as a producer sends them. Raises Corrupt, NotFound."""
    for records in log.records(log.log_start_offset):
        values = records.column("value")
        start = 0
        while start < len(values):
            end, size = start, 0
            while end < len(values) and end - start < BATCH_RECORDS_MAX and (end == start or size < BATCH_BYTES):
                size += values[end].as_buffer().size
                end += 1
            yield write_batch(NewBatch(0), _records(values.slice(start, end - start)))
            start = end


def _records(values: pa.Array) -> pa.RecordBatch:
    n = len(values)
    columns: tuple[Any, ...] = (range(n), [NO_TIMESTAMP] * n, [None] * n, values.to_pylist(), [[]] * n)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, RECORDS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)
