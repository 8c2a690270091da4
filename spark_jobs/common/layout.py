"""Which folder a record's row belongs in: its topic, and the date or hour of its timestamp in UTC. Pure: Arrow in, Arrow out.

    topic=orders/date=2026-11-21/hour=05/

Rows of one time mostly lie together, so a batch is sliced; only one whose times are mixed is copied into order first.
"""

from collections.abc import Iterator
from datetime import date
from enum import StrEnum

import numpy as np
import pyarrow as pa

_HOUR_US = 3_600_000_000
_RUNS_MAX = 64
"""Above as many changes of folder in one batch, sorting it is cheaper than its many slices."""
_FIRST_DAY = date(1970, 1, 1).toordinal()
NO_DATE = "__HIVE_DEFAULT_PARTITION__"
"""Hive's word for null; here for times outside of the years 1 to 9999, which no calendar of a reader has."""


class By(StrEnum):
    """How finely rows are parted by time."""

    date = "date"
    hour = "hour"
    none = "none"


def parts(batch: pa.RecordBatch, topic: str, by: By) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of a batch by folder, those of one folder in the order of their offsets. Needs the column `timestamp`."""
    if by is By.none or not batch.num_rows:
        yield f"topic={topic}", batch
        return
    units = batch.column("timestamp").cast(pa.int64()).to_numpy() // (_HOUR_US * (24 if by is By.date else 1))
    if units.min() == units.max():
        yield folder(topic, by, int(units[0])), batch
        return
    changes = np.flatnonzero(np.diff(units)) + 1
    if len(changes) > _RUNS_MAX:
        order = np.argsort(units, kind="stable")
        batch, units = batch.take(pa.array(order)), units[order]
        changes = np.flatnonzero(np.diff(units)) + 1
    starts = [0, *changes.tolist()]
    for start, end in zip(starts, [*starts[1:], len(units)], strict=True):
        yield folder(topic, by, int(units[start])), batch.slice(start, end - start)


def folder(topic: str, by: By, unit: int) -> str:
    """The folder of the day or hour with this number since 1970."""
    day, hour = divmod(unit, 24) if by is By.hour else (unit, 0)
    ordinal = day + _FIRST_DAY
    text = date.fromordinal(ordinal).isoformat() if date.min.toordinal() <= ordinal <= date.max.toordinal() else NO_DATE
    return f"topic={topic}/date={text}" + (f"/hour={hour:02}" if by is By.hour else "")


def file_name(folder: str, partition: int, start: int, end: int, number: int) -> str:
    """The file of a split's rows in a folder; `number` counts from 0 where it had to be begun again."""
    return f"{folder}/{partition}-{start:020d}-{end:020d}{f'.{number}' if number else ''}.parquet"
