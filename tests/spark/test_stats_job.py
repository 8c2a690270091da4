"""The job stats: its tables, its report and its dry run, over Spark's executors."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from golden_logs import live
from pyspark.sql import SparkSession

from spark_jobs.jobs.stats import main

pytestmark = pytest.mark.spark

TOPICS = ("g-big", "g-codec-lz4", "g-compacted", "g-txn")


@pytest.fixture
def stats(spark: SparkSession, archive: str) -> Callable[..., Result]:
    """`stats(ARGS…)`: the job on the session of the tests, for a few topics."""
    topics = [arg for topic in TOPICS for arg in ("--topic", topic)]
    return lambda *args: CliRunner().invoke(main, ["--archive", archive, *topics, *map(str, args)], catch_exceptions=False)


def test_files_and_report_have_the_sums_however_many_tasks_there_are(
    stats: Callable[..., Result], expected: Callable[..., list[dict[str, object]]], tmp_path: Path
) -> None:
    for run, options in (("few", ()), ("many", ("--option", "minPartitions=23"))):
        done = stats("--to", tmp_path / run, "--report", tmp_path / f"{run}.json", "--output", "jsonl", *options)
        assert done.exit_code == 0, done.stderr
    few, many = (json.loads((tmp_path / f"{run}.json").read_text()) for run in ("few", "many"))
    assert few["splits"] * 2 < many["splits"]
    assert few["partitions"] == many["partitions"]
    assert [p["records"] for p in few["partitions"]] == [len(expected(topic)) for topic in TOPICS]
    for name in ("hours.parquet", "partitions.parquet"):
        assert pq.read_table(tmp_path / "few" / name).equals(pq.read_table(tmp_path / "many" / name))
    hours = pq.read_table(tmp_path / "few" / "hours.parquet").to_pylist()
    assert [(h["topic"], h["records"]) for h in hours] == [
        (row["topic"], row["records"]) for row in map(json.loads, done.stdout.splitlines())
    ]


def test_a_second_run_replaces_the_files_of_the_first(stats: Callable[..., Result], tmp_path: Path) -> None:
    for _ in range(2):
        assert stats("--to", tmp_path / "to").exit_code == 0
    seen = sorted(file.name for file in (tmp_path / "to").iterdir() if not file.name.startswith("_"))
    assert seen == ["hours.parquet", "partitions.parquet"]


def test_a_range_counts_alone_and_a_terminal_shows_hours_as_blocks(stats: Callable[..., Result]) -> None:
    offsets = json.dumps({topic: {"0": live(f"{topic}-0")["earliest"][0]} for topic in TOPICS} | {"g-txn": {"0": 2000}})
    shown = stats("--option", f"startingOffsets={offsets}", "--headers-only")
    assert shown.exit_code == 0, shown.stderr
    header, *rows = shown.stdout.split("\n\n")[0].splitlines()
    assert header.split()[:5] == ["topic", "partition", "start", "end", "records"]
    assert [row.split()[:4] for row in rows][-1] == ["g-txn", "0", "2000", "2744"]
    assert "g-txn-0, records by hour\n" in shown.stdout
    assert "█" in shown.stdout


def test_a_dry_run_tells_splits_bytes_and_cost_and_reads_no_record(stats: Callable[..., Result]) -> None:
    plan = json.loads(stats("--dry-run", "--storage-class", "s3-glacier-ir").stdout)
    assert (plan["job"], plan["dry_run"], len(plan["partitions"])) == ("stats", True, len(TOPICS))
    assert plan["cost"]["total_usd"] > 0


def test_a_picture_without_the_package_is_refused_before_anything_is_read(
    stats: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    refused = stats("--picture", tmp_path / "picture.png")
    assert refused.exit_code == 2
    assert "kafka-tiering[pictures]" in refused.stderr


def test_a_picture_is_a_png(stats: Callable[..., Result], tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures are an extra")
    assert stats("--picture", tmp_path / "picture.png").exit_code == 0
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
