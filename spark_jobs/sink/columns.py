"""What a row has to have to become a record: the columns of Spark's Kafka sink, with its words for those that will not do.

key         string or binary, null where it is missing            value      string or binary, needed
headers     array<struct<key:string,value:binary>>                topic      string, needed without the option topic
partition   int; the key decides where it is null or missing     timestamp  timestamp; the time of the write, as above

Other columns are left out, as the Kafka sink does.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from local_log.errors import Invalid
from local_log.formats.record_batch.columns import HEADERS_TYPE, no_headers
from spark_jobs.errors import OptionError

_HEADERS = "array<struct<key:string,value:binary>>"
_TYPES = {
    "topic": ("string",),
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "headers": (_HEADERS,),
    "partition": ("int",),
    "timestamp": ("timestamp",),
}
_NO_TIMESTAMP = -1

ROWS = pa.schema([("timestamp", pa.int64()), ("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS_TYPE)])
"""Rows that have only an offset to get."""


def check_columns(types: Mapping[str, str], topic: str | None) -> None:
    """Raises OptionError unless columns of these types, as Spark's SQL names them, are enough for records."""
    if topic is None and "topic" not in types:
        raise OptionError("topic option required when no 'topic' attribute is present. Use the topic option for setting a topic.")
    if "value" not in types:
        raise OptionError("Required attribute 'value' not found")
    for name, allowed in _TYPES.items():
        if name in types and types[name] not in allowed and not (name == "topic" and topic is not None):
            raise OptionError(f"{name} attribute unsupported type {types[name]}. {name} must be a(n) {' or '.join(allowed)}")


def rows_of(batch: Any, now_ms: int) -> pa.RecordBatch:
    """A batch of Spark's as ROWS. `now_ms` is the time of those that have none. Raises Invalid for what no record can be."""
    names = set(batch.schema.names)
    count = batch.num_rows
    key = batch.column("key").cast(pa.binary()) if "key" in names else pa.nulls(count, pa.binary())
    headers = _headers(batch.column("headers")) if "headers" in names else no_headers(count)
    times = _times(batch.column("timestamp"), now_ms) if "timestamp" in names else np.full(count, now_ms, np.int64)
    return pa.RecordBatch.from_arrays(
        [pa.array(times, pa.int64()), key, batch.column("value").cast(pa.binary()), headers], schema=ROWS
    )


def _times(column: Any, now_ms: int) -> Any:
    """Milliseconds; -1 stands for a record without a time, as readers of old messages see it."""
    micros = column.cast(pa.int64()).fill_null(now_ms * 1000).to_numpy()
    times = np.floor_divide(micros, 1000)
    if len(times) and times.min() < _NO_TIMESTAMP:
        raise Invalid(f"Invalid timestamp: {times.min()}. Timestamp should always be non-negative or null.")
    return times


def _headers(column: Any) -> Any:
    lists = pc.coalesce(column, pa.scalar([], column.type)) if column.null_count else column
    pairs = lists.flatten()
    names, values = pc.struct_field(pairs, "key"), pc.struct_field(pairs, "value")
    if names.null_count:
        raise Invalid("a header without a key; Kafka has none such")
    ends = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy())]).astype(np.int32)
    flat = pa.StructArray.from_arrays([names.cast(pa.binary()), values.cast(pa.binary())], fields=list(HEADERS_TYPE.value_type))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat, type=HEADERS_TYPE)


def row_bytes(rows: pa.RecordBatch) -> Any:
    """About how many bytes each row takes as a record: what it holds, and a few for its lengths."""
    sizes = np.full(rows.num_rows, 8, np.int64) + _lengths(rows.column("key")) + _lengths(rows.column("value"))
    headers = rows.column("headers")
    pairs = headers.flatten()
    if len(pairs):
        each = _lengths(pairs.field("key")) + _lengths(pairs.field("value")) + 2
        ends = np.concatenate([[0], np.cumsum(pc.list_value_length(headers).to_numpy())])
        sizes += np.diff(np.concatenate([[0], np.cumsum(each)])[ends])
    return sizes


def _lengths(column: Any) -> Any:
    return pc.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
