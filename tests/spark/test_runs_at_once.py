"""Runs of the same work at once, with real Spark: each row once, whoever is first."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from doomed_source import active, write
from found_rows import a_sweep_takes_the_rest, found, times_each
from pyspark.sql import SparkSession

from remote.store.open import open_store
from spark_jobs.common.target import Target
from spark_jobs.jobs import backfill
from spark_jobs.source.options import parse

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]  # on a busy machine, too


def at_once(spark: SparkSession, *runs: Callable[[], Any]) -> Sequence[Any]:
    def run(each: Callable[[], Any]) -> Any:
        active(spark)
        return each()

    with ThreadPoolExecutor(len(runs)) as pool:
        return [*pool.map(run, runs)]


def test_writes_at_once_and_again_add_their_rows_once_for_each_id(
    spark: SparkSession, tmp_path: Path, tiering: Callable[..., str]
) -> None:
    """Each commits in a process of its own."""
    archive = str(tmp_path / "archive")
    at_once(spark, *(lambda write_id=write_id: write(spark, archive, write_id) for write_id in ("one", "one", "two")))
    store = open_store(archive)
    assert found(store) == times_each(2)
    for write_id in ("one", "two"):
        write(spark, archive, write_id)
    assert found(store) == times_each(2)
    a_sweep_takes_the_rest(tiering, archive)


def test_two_backfills_at_once_leave_each_offset_once(
    spark: SparkSession, archive: str, expected: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    options = parse({"archive": archive, "subscribe": "g-txn", "includeHeaders": "true", "minPartitions": "3"})
    reports = at_once(spark, *2 * [lambda: backfill.run(options, Target(str(tmp_path / "out")), "snappy")])
    wanted = [row["offset"] for row in expected("g-txn")]
    assert sum(report["rows"] for report in reports) == len(wanted)
    files = (tmp_path / "out").rglob("*.parquet")
    assert sorted(o for f in files for o in pq.ParquetFile(f).read(["offset"]).column("offset").to_pylist()) == wanted
