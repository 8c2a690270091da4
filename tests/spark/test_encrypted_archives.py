"""Encrypted archives in Spark: driver and executors open the keys that the option names, and say what is missing without them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from golden_logs import broker_logs, live
from key_files import write_keys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from local_log.errors import Invalid
from spark_jobs.jobs import backfill, search
from spark_jobs.source.batch_reader import BatchReader
from spark_jobs.source.options import parse

pytestmark = pytest.mark.spark

Expected = Callable[..., list[dict[str, Any]]]
NEEDED = "key 'k1' is needed: no keys are given; give keys that have it"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A key file."""
    return str(write_keys(tmp_path_factory.mktemp("keys") / "keys.json", "k1", k1=bytes(range(32))))


@pytest.fixture(scope="module")
def hidden(keys: str, tiering: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """An archive of g-txn, encrypted."""
    logs, url = broker_logs(tmp_path_factory.mktemp("logs"), "g-txn-0"), str(tmp_path_factory.mktemp("archive"))
    tiering("offload", "--log-dir", logs, "--archive", url, "--encrypt", "--keys", keys, "--compress", "zstd")
    return url


def test_the_data_source_reads_it_with_its_keys(spark: SparkSession, hidden: str, keys: str, expected: Expected) -> None:
    start, low, *_ = live("g-txn-0")["offset_for_timestamp"][60]
    reader = spark.read.format("tiering").options(
        archive=hidden, keys=keys, subscribe="g-txn", includeHeaders="true", startingTimestamp=str(start)
    ).option("kafka.isolation.level", "read_committed")  # fmt: skip
    found = sorted(reader.load().toArrow().to_pylist(), key=lambda row: row["offset"])
    assert found == expected("g-txn", start=low, only=set(live("g-txn-0")["read_committed_offsets"]))
    assert found


@pytest.mark.parametrize("more", [{}, {"startingTimestamp": "1700000500000"}])
def test_the_data_source_says_which_key_it_needs(spark: SparkSession, hidden: str, more: dict[str, str]) -> None:
    reader = spark.read.format("tiering").options(archive=hidden, subscribe="g-txn", **more)
    with pytest.raises(PySparkException, match=NEEDED):
        reader.load().collect()


def test_keys_that_cannot_be_had_are_refused_before_any_task(hidden: str, tmp_path: Path) -> None:
    reader = BatchReader(parse({"archive": hidden, "subscribe": "g-txn", "keys": str(tmp_path / "none")}), ("offset",))
    with pytest.raises(Invalid, match="cannot be read: No such file"):
        reader.partitions()


@pytest.mark.parametrize("is_given", [True, False])
def test_the_backfill_takes_keys_as_the_commands_do(
    spark: SparkSession, hidden: str, keys: str, expected: Expected, tmp_path: Path, is_given: bool
) -> None:
    given = ("--keys", keys) if is_given else ()
    result = CliRunner().invoke(backfill.main, ["--archive", hidden, "--to", str(tmp_path), "--topic", "g-txn", *given])
    if not is_given:
        assert (result.exit_code, result.stdout) == (1, "")
        assert NEEDED in result.stderr
        return
    assert result.exit_code == 0, result.stderr
    table = pq.read_table(tmp_path / "topic=g-txn", partitioning=None)
    assert sorted(table.column("offset").to_pylist()) == [row["offset"] for row in expected("g-txn")]


def test_the_search_takes_keys_as_the_commands_do(
    spark: SparkSession, hidden: str, keys: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, offset, *_ = live("g-txn-0")["offset_for_timestamp"][60]
    question = ["--archive", hidden, "--timestamp", str(asked), "--output", "json"]
    without = CliRunner().invoke(search.main, question)
    assert without.exit_code == 1
    assert NEEDED in without.stderr
    monkeypatch.setenv("TIERING_KEYS", keys)
    found = CliRunner().invoke(search.main, question)
    assert [row["offset"] for row in json.loads(found.stdout)] == [offset]
