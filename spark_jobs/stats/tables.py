"""Sums as rows and as Arrow tables, and as lines of blocks for a terminal."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from local_log.formats.record import Codec
from spark_jobs.stats.sums import HOUR_MS, Hour, HourSums, PartitionSums

Row = dict[str, Any]

_BLOCKS = "▁▂▃▄▅▆▇█"
_COUNTS = ("records", "batches", "stored_bytes", "decoded_bytes", "null_keys", "null_values", "record_bytes")
_OF_RECORDS_ALONE = {"decoded_bytes", "compression_ratio", "null_keys", "null_values"}
_SUMS = pa.schema(
    [
        *((name, pa.int64()) for name in _COUNTS),
        ("record_bytes_min", pa.int64()),
        ("record_bytes_max", pa.int64()),
        ("record_bytes_avg", pa.float64()),
        ("compression_ratio", pa.float64()),
        ("producers", pa.int64()),
        *((f"batches_{codec.name}", pa.int64()) for codec in Codec),
    ]
)
_PARTITION = [("topic", pa.string()), ("partition", pa.int32())]
HOURS = pa.schema([*_PARTITION, ("hour", pa.timestamp("ms", tz="UTC")), *_SUMS])
PARTITIONS = pa.schema(
    [
        *_PARTITION, ("start", pa.int64()), ("end", pa.int64()), ("first_hour", pa.timestamp("ms", tz="UTC")),
        ("last_hour", pa.timestamp("ms", tz="UTC")), *_SUMS, ("control_records", pa.int64()), ("missing_offsets", pa.int64()),
        ("gap_offsets", pa.int64()),
    ]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """One partition: the offsets `[start, end)` that were asked for, how many of them the archive lacks, the sums of the rest."""

    topic: str
    partition: int
    start: int
    end: int
    gap_offsets: int
    sums: PartitionSums


def hour_rows(measured: Iterable[Measured], *, with_records: bool) -> list[Row]:
    """A row for each partition and hour, in order; what has no hour comes first. Hours are ms since 1970."""
    return [
        {"topic": one.topic, "partition": one.partition, "hour": hour, **_sums(one.sums.hours[hour], with_records)}
        for one in measured
        for hour in sorted(one.sums.hours, key=_first_none)
    ]


def partition_rows(measured: Iterable[Measured], *, with_records: bool) -> list[Row]:
    """A row for each partition. `missing_offsets` are those that the log itself lacks, `gap_offsets` only the archive."""
    rows = []
    for one in measured:
        hours = [hour for hour in one.sums.hours if hour is not None]
        rows.append(
            {
                "topic": one.topic,
                "partition": one.partition,
                "start": one.start,
                "end": one.end,
                "first_hour": min(hours, default=None),
                "last_hour": max(hours, default=None),
                **_sums(one.sums.total, with_records),
                "control_records": one.sums.of.control_records,
                "missing_offsets": one.sums.missing_offsets,
                "gap_offsets": one.gap_offsets,
            }
        )
    return rows


def _sums(sums: HourSums, with_records: bool) -> Row:
    row: Row = {name: getattr(sums, name) for name in _COUNTS}
    row |= {
        "record_bytes_min": sums.record_bytes_min,
        "record_bytes_max": sums.record_bytes_max if sums.records else None,
        "record_bytes_avg": sums.record_bytes / sums.records if sums.records else None,
        "compression_ratio": sums.decoded_bytes / sums.stored_bytes if sums.stored_bytes else None,
        "producers": len(sums.producers),
        **{f"batches_{codec.name}": sums.codecs.get(codec, 0) for codec in Codec},
    }
    unknown = () if with_records else (n for n in row if n in _OF_RECORDS_ALONE or n.startswith("record_bytes"))
    return row | dict.fromkeys(unknown)


def table(rows: Sequence[Row], schema: Any) -> Any:
    """Rows as an Arrow table of HOURS or PARTITIONS."""
    return pa.Table.from_pylist(list(rows), schema)


def line(values: Mapping[Hour, int], width: int) -> str:
    """Values by hour as one line of blocks, each column as many hours as fit; empty hours are spaces."""
    hours = [hour for hour in values if hour is not None]
    if not hours:
        return ""
    first = min(hours)
    count = (max(hours) - first) // HOUR_MS + 1
    columns = [0] * min(width, count)
    for hour in hours:
        columns[(hour - first) // HOUR_MS * len(columns) // count] += values[hour]
    most = max(max(columns), 1)
    return "".join(" " if not value else _BLOCKS[min(value * len(_BLOCKS) // most, len(_BLOCKS) - 1)] for value in columns)


def _first_none(hour: Hour) -> tuple[bool, int]:
    return hour is not None, hour or 0
