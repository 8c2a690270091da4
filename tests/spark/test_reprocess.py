"""The job reprocess, to Parquet and to archived topics: each run's rows once, whatever is killed or run again."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner, Result
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from local_log.errors import Corrupt
from spark_jobs.common.target import Target
from spark_jobs.jobs.reprocess import Destination, main, run_id_of, source_of
from spark_jobs.reprocess import parquet as reprocess_parquet

Row = dict[str, Any]
Job = Callable[..., Result]
Expected = Callable[..., list[Row]]

TOPIC = "g-codec-zstd"


@pytest.fixture
def job(spark: SparkSession, archive: str) -> Job:
    """`job(ARGS…)`: the job on the session of the tests."""
    return lambda *args: CliRunner().invoke(main, ["--archive", archive, *map(str, args)], catch_exceptions=False)


def report_of(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    report: dict[str, Any] = json.loads(result.stdout)
    return report


def rows_in(folder: Path) -> list[Row]:
    """The rows that a reader of the folder finds, in the order of offsets."""
    table = ds.dataset(folder, partitioning="hive").to_table()
    rows: list[Row] = table.drop_columns([c for c in ("run",) if c in table.column_names]).to_pylist()
    return sorted(rows, key=lambda r: (r["topic"], r["offset"]))


def visible(folder: Path) -> set[str]:
    return {
        str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file() and not str(f.relative_to(folder)).startswith("_")
    }


def values_longer_than_40(records: DataFrame) -> DataFrame:
    """A user's function."""
    return records.where("length(value) > 40")


# what a run is of


def test_the_offsets_of_a_vector_are_all_that_is_read() -> None:
    source = source_of({"archive": "a", "startingTimestamp": "7", "minPartitions": "3"}, {"t": {0: (5, 9)}, "u": {1: (0, 0)}})
    assert source == {
        "includeHeaders": "true",
        "archive": "a",
        "minPartitions": "3",
        "assign": '{"t": [0], "u": [1]}',
        "startingOffsets": '{"t": {"0": 5}, "u": {"1": 0}}',
        "endingOffsets": '{"t": {"0": 9}, "u": {"1": 0}}',
    }


def test_a_run_id_is_that_of_what_is_read_made_and_written() -> None:
    source, to = {"archive": "a", "subscribe": "t"}, Destination(parquet="p", options={})
    ids = {
        run_id_of(source, "", to),
        run_id_of({**source, "subscribe": "u"}, "", to),
        run_id_of(source, "SELECT 1", to),
        run_id_of(source, "", Destination(parquet="q", options={})),
    }
    assert len(ids) == 4
    assert run_id_of(dict(reversed(source.items())), "", Destination(parquet="p", options={})) in ids


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--to-parquet", "a", "--to-kafka", "b"),
        ("--to-parquet", "a", "--to-topic", "t"),
        ("--to-parquet", "a", "--sql", "SELECT 1", "--function", "a:b"),
        ("--to-kafka", "a", "--to-option", "topic=t"),
        ("--to-parquet", "a", "--offsets", '{"t": 1}'),
        ("--to-parquet", "memory://a"),
    ],
)
def test_options_that_make_no_sense_are_refused(archive: str, options: tuple[str, ...]) -> None:
    refused = CliRunner().invoke(main, ["--archive", archive, "--topic", TOPIC, *options])
    assert refused.exit_code == 2, refused.output


# rows


@pytest.mark.spark
def test_offsets_of_some_partitions_are_read_of_those_alone(job: Job, spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(30).selectExpr("cast(id AS string) AS value", "cast(id % 3 AS int) AS partition")
    rows.write.format("tiering").options(archive=str(tmp_path / "made"), topic="made", partitions="3").mode("append").save()
    asked = ["--archive", str(tmp_path / "made"), "--offsets", '{"made": {"1": [2, 7], "2": [0, 0]}}']
    report_of(CliRunner().invoke(main, [*asked, "--to-parquet", str(tmp_path / "to")], catch_exceptions=False))
    assert [(row["partition"], row["offset"]) for row in rows_in(tmp_path / "to")] == [(1, offset) for offset in range(2, 7)]


@pytest.mark.spark
def test_records_are_copied_as_they_are(job: Job, expected: Expected, tmp_path: Path) -> None:
    report = report_of(job("--topic", TOPIC, "--topic", "g-txn", "--to-parquet", tmp_path / "to"))
    assert rows_in(tmp_path / "to") == expected(TOPIC) + expected("g-txn")
    assert report["rows"] == len(expected(TOPIC)) + len(expected("g-txn"))
    assert {f["name"] for f in report["files"]} == visible(tmp_path / "to")
    assert (report["delivery"], report["committed_before"]) == ("exactly once per run", False)


@pytest.mark.spark
def test_a_query_and_a_function_make_the_same_of_the_same_records(job: Job, expected: Expected, tmp_path: Path) -> None:
    query = ("--sql", "SELECT * FROM records WHERE length(value) > 40")
    function = ("--function", f"{__name__}:values_longer_than_40")
    for name, made_by in (("sql", query), ("function", function)):
        report_of(job("--topic", TOPIC, *made_by, "--to-parquet", tmp_path / name))
    wanted = [r for r in expected(TOPIC) if r["value"] is not None and len(r["value"]) > 40]
    assert 0 < len(wanted) < len(expected(TOPIC))
    assert rows_in(tmp_path / "sql") == rows_in(tmp_path / "function") == wanted


@pytest.mark.spark
def test_offsets_of_a_report_read_the_same_again_and_a_time_interval_is_a_range_of_offsets(
    job: Job, expected: Expected, tmp_path: Path
) -> None:
    times = sorted(round(r["timestamp"].timestamp() * 1000) for r in expected(TOPIC))
    interval = ("--from-timestamp", times[len(times) // 3], "--to-timestamp", times[2 * len(times) // 3])
    first = report_of(job("--topic", TOPIC, *interval, "--to-parquet", tmp_path / "first"))
    start, end = first["offsets"][TOPIC]["0"]
    assert rows_in(tmp_path / "first") == expected(TOPIC, start, end)
    assert 0 < end - start < len(expected(TOPIC))
    vector = tmp_path / "offsets.json"
    vector.write_text(json.dumps(first["offsets"]))
    second = report_of(job("--offsets", vector, "--to-parquet", tmp_path / "second"))
    assert second["offsets"] == first["offsets"]
    assert rows_in(tmp_path / "second") == rows_in(tmp_path / "first")


@pytest.mark.spark
def test_a_dry_run_tells_offsets_bytes_and_cost_and_writes_nothing(job: Job, tmp_path: Path) -> None:
    plan = report_of(job("--topic", TOPIC, "--to-parquet", tmp_path / "to", "--dry-run", "--storage-class", "s3-glacier-ir"))
    assert (plan["job"], plan["dry_run"]) == ("reprocess", True)
    assert plan["bytes"] > 0
    assert plan["cost"]["total_usd"] > 0
    assert list(plan["offsets"]) == [TOPIC]
    assert not (tmp_path / "to").exists()


@pytest.mark.spark
def test_a_query_that_spark_cannot_read_is_a_usage_error(job: Job, tmp_path: Path) -> None:
    refused = job("--topic", TOPIC, "--sql", "SELEC nothing", "--to-parquet", tmp_path / "to")
    assert refused.exit_code == 2
    assert "SELEC" in refused.stderr


# once, whatever happens


@pytest.mark.spark
def test_a_run_that_is_run_again_changes_nothing_and_another_run_adds_its_rows(
    job: Job, expected: Expected, tmp_path: Path
) -> None:
    args = ("--topic", TOPIC, "--to-parquet", tmp_path / "to")
    first, files = report_of(job(*args)), visible(tmp_path / "to")
    again = report_of(job(*args))
    assert again["committed_before"]
    assert (again["run_id"], again["rows"], again["files"]) == (first["run_id"], first["rows"], first["files"])
    assert visible(tmp_path / "to") == files
    other = report_of(job(*args, "--run-id", "scheduled__2026-11-21T05:00:00+00:00"))
    assert not other["committed_before"]
    assert rows_in(tmp_path / "to") == sorted([*expected(TOPIC), *expected(TOPIC)], key=lambda r: r["offset"])


class Killed(BaseException):
    """The driver ends here."""


@pytest.mark.spark
@pytest.mark.parametrize("published_before", [0, 1])
def test_a_driver_that_dies_after_its_commit_has_its_files_published_by_the_next_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, published_before: int
) -> None:
    target, rows, published = Target(str(tmp_path / "to")), spark.range(1000).repartition(4), 0
    publish = Target.publish

    def dies(self: Target, staged: str, name: str) -> None:
        nonlocal published
        if published == published_before:
            raise Killed
        published += 1
        publish(self, staged, name)

    with monkeypatch.context() as patched:
        patched.setattr(Target, "publish", dies)
        with pytest.raises(Killed):
            reprocess_parquet.write(lambda: rows, target, "r", "zstd")
    assert len(visible(tmp_path / "to")) == published_before
    committed, before = reprocess_parquet.write(lambda: pytest.fail("it was run again"), target, "r", "zstd")
    assert before
    assert len(committed.files) == len(visible(tmp_path / "to")) == 4
    assert sorted(ds.dataset(tmp_path / "to").to_table().column("id").to_pylist()) == list(range(1000))
    assert [f.name for f in (tmp_path / "to" / "_tiering").rglob("*") if f.is_file()] == ["commit.json"]


@pytest.mark.spark
def test_of_two_at_once_one_commits_and_the_other_finds_it(spark: SparkSession, tmp_path: Path) -> None:
    target, outcomes = Target(str(tmp_path / "to")), []

    def after_another() -> DataFrame:
        outcomes.append(reprocess_parquet.write(lambda: spark.range(1000).repartition(3), target, "r", "zstd"))
        return spark.range(1000).repartition(5)

    outcomes.append(reprocess_parquet.write(after_another, target, "r", "zstd"))
    (first, is_late), (second, was_late) = outcomes
    assert (first, is_late, was_late) == (second, False, True)
    assert sorted(ds.dataset(tmp_path / "to").to_table().column("id").to_pylist()) == list(range(1000))


@pytest.mark.spark
def test_a_job_whose_task_fails_shows_nothing_and_can_be_run_again(spark: SparkSession, tmp_path: Path) -> None:
    target, mark = Target(str(tmp_path / "to")), str(tmp_path / "failed")

    @udf("long", useArrow=False)
    def fails_once(number: int) -> int:
        if number == 499:
            try:
                os.mkdir(mark)
            except FileExistsError:
                return number
            raise ValueError("the first time")
        return number

    rows = spark.range(500).coalesce(1).select(fails_once("id").alias("id"))
    with pytest.raises(PySparkException, match="the first time"):  # a local master tries no task again
        reprocess_parquet.write(lambda: rows, target, "r", "zstd")
    assert visible(tmp_path / "to") == set()
    reprocess_parquet.write(lambda: rows, target, "r", "zstd")
    assert sorted(ds.dataset(tmp_path / "to").to_table().column("id").to_pylist()) == list(range(500))


@pytest.mark.spark
def test_no_rows_are_a_run_without_files(job: Job, tmp_path: Path) -> None:
    report = report_of(job("--topic", TOPIC, "--sql", "SELECT * FROM records WHERE false", "--to-parquet", tmp_path / "to"))
    assert (report["rows"], report["files"]) == (0, [])


@pytest.mark.spark
def test_a_new_archived_topic_has_the_rows_once_however_often_the_job_is_run(
    job: Job, spark: SparkSession, expected: Expected, tmp_path: Path
) -> None:
    to = tmp_path / "archive"
    args = ("--topic", "g-txn", "--to-archive", to, "--to-topic", "again", "--to-option", "kafka.compression.type=lz4")
    reports = [report_of(job(*args, "--sql", "SELECT * FROM records WHERE value IS NOT NULL")) for _ in range(2)]
    wanted = [{**r, "topic": "again"} for r in expected("g-txn") if r["value"] is not None]
    read = spark.read.format("tiering").options(archive=str(to), subscribe="again", includeHeaders="true").load()
    rows = [row.asDict(recursive=True) for row in read.orderBy("offset").collect()]
    same = ("key", "value", "topic", "partition", "headers")
    assert [[r[c] for c in same] for r in rows] == [[r[c] for c in same] for r in wanted]
    assert [r["offset"] for r in rows] == list(range(len(wanted)))
    assert [(r["rows"], r["added"]) for r in reports] == 2 * [
        (len(wanted), [{"topic": "again", "partition": 0, "start": 0, "end": len(wanted)}])
    ]


def test_a_commit_that_is_damaged_is_corrupt_and_not_taken_for_none(tmp_path: Path) -> None:
    commit = tmp_path / "to" / "_tiering" / "reprocess" / "r" / "commit.json"
    commit.parent.mkdir(parents=True)
    commit.write_text("{}")
    with pytest.raises(Corrupt):
        reprocess_parquet.write(lambda: pytest.fail("it was run"), Target(str(tmp_path / "to")), "r", "zstd")
