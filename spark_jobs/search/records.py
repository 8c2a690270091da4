"""The records that a search finds, split by split, and how they are shown."""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from spark_jobs.common.estimate import bytes_of
from spark_jobs.common.tasks import TaskLimits, run_tasks
from spark_jobs.search.task import SearchQuery, matches
from spark_jobs.source.partitions import Split

FIRST_WAVE = 8
"""How many splits are read before it is asked whether enough was found; twice as many each time."""
_SHOWN_MAX = 60

Row = Mapping[str, Any]


def records(query: SearchQuery, found: Sequence[Split], master: str | None = None) -> Iterator[pa.Table]:
    """The records that match, `limit` at most, in the order of topics, partitions and offsets.

    Splits are read in waves, so that a search that finds enough soon does not read the rest. Where splits fail, the records of
    the others come first; then the worst error is raised.
    """
    left, wave, start, errors = query.limit, FIRST_WAVE, 0, []
    while start < len(found) and left:

        def task(split: Split) -> pa.Table:
            return matches(query, split)

        tables, error = run_tasks(
            "search",
            found[start : start + wave],
            task,
            bytes_of,
            limits=TaskLimits(master, query.options.bytes_per_split, query.options.min_partitions),
        )
        if error is not None:
            errors.append(error)
        if tables:
            keys = [(name, "ascending") for name in ("topic", "partition", "offset")]
            table = pa.concat_tables(tables).sort_by(keys).slice(0, left)
            left -= table.num_rows
            yield table
        start, wave = start + wave, wave * 2
    if errors:
        raise errors[0]


def rows_of(tables: Iterable[pa.Table], encoding: str) -> Iterator[Row]:
    """Records as rows: times in ms since 1970, keys and values as text, what is no UTF-8 replaced, or in base64."""
    for table in tables:
        times = table.column("timestamp").cast(pa.int64()).to_pylist()
        for record, time_us in zip(table.drop_columns(["timestamp"]).to_pylist(), times, strict=True):
            yield {
                "topic": record["topic"],
                "partition": record["partition"],
                "offset": record["offset"],
                "timestamp": time_us // 1000,
                "key": _shown(record["key"], encoding),
                "value": _shown(record["value"], encoding),
            }


def shortened(row: Row) -> Row:
    """A row as a table has it: the beginnings of long texts, on one line."""
    return {name: _cut(value) if isinstance(value, str) else value for name, value in row.items()}


def _shown(body: bytes | None, encoding: str) -> str | None:
    if body is None:
        return None
    return b64encode(body).decode() if encoding == "base64" else body.decode("utf-8", errors="replace")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN_MAX else f"{line[: _SHOWN_MAX - 1]}…"
