"""The job backfill: archive to Parquet, each offset once however often a task or the job is run."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from golden_logs import broker_logs, live
from pyspark.sql import SparkSession

from spark_jobs.jobs.backfill import file_name, main, write_split
from spark_jobs.jobs.target import Target
from spark_jobs.source.options import parse
from spark_jobs.source.partitions import Split, plan_splits

pytestmark = pytest.mark.spark

Row = dict[str, Any]
Expected = Callable[..., list[Row]]
Backfill = Callable[..., Result]

TXN_FILES = [f"topic=g-txn/0-{start:020d}-{end:020d}.parquet" for start, end in [(0, 102), (102, 2683), (2683, 2744)]]


class StopsAfterFilling(Target):
    """A target whose task dies when the file is written and not yet in its place."""

    def write(self, name: str, attempt: str, fill: Callable[[str], None]) -> int:
        """See Target."""

        def fill_and_stop(file: str) -> None:
            fill(file)
            raise RuntimeError("the executor is lost")

        return super().write(name, attempt, fill_and_stop)


@pytest.fixture
def backfill(spark: SparkSession, archive: str) -> Backfill:
    """`backfill(to, topic, …, *options)`: the job on the session of the tests."""

    def run(to: object, *args: str) -> Result:
        return CliRunner().invoke(main, ["--archive", archive, "--to", str(to), *args], catch_exceptions=False)

    return run


@pytest.fixture(params=["folder", "s3"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    """An empty place for files."""
    if request.param == "s3":
        yield Target(f"s3://{request.getfixturevalue('s3_bucket')}/parquet")
    else:
        yield Target(str(tmp_path / "parquet"))


def files(target: Target) -> dict[str, bytes]:
    """Everything below a target's folder, hidden files too."""
    system, root = target._open()
    return {file.removeprefix(root).lstrip("/"): system.cat_file(file) for file in system.find(root)}


def rows(folder: Path) -> list[Row]:
    found = []
    for file in sorted(folder.rglob("*.parquet")):
        topic = file.parent.name.removeprefix("topic=")
        found += [{**row, "topic": topic} for row in pq.ParquetFile(file).read().to_pylist()]
    return found


def split_and_options(archive: str) -> tuple[Split, Any]:
    from remote.stores import open_store

    options = parse({"archive": archive, "subscribe": "g-codec-lz4", "includeHeaders": "true"})
    return plan_splits(open_store(archive), options)[1], options


def test_the_files_hold_every_row(backfill: Backfill, expected: Expected, tmp_path: Path) -> None:
    topics = ["g-big", "g-codec-gzip", "g-codec-none", "g-compacted", "g-trimmed", "g-txn"]
    result = backfill(tmp_path / "out", *(option for topic in topics for option in ("--topic", topic)))
    assert result.exit_code == 0, result.stderr
    assert rows(tmp_path / "out") == [row for topic in topics for row in expected(topic)]


def test_the_report_names_every_file_with_its_rows_and_bytes(backfill: Backfill, target: Target) -> None:
    result = backfill(target.url, "--topic", "g-txn")
    assert result.exit_code == 0, result.stderr
    report, found = json.loads(result.stdout), files(target)
    assert report["target"] == target.url
    assert [file["name"] for file in report["files"]] == TXN_FILES == sorted(found)
    assert {file["name"]: file["bytes"] for file in report["files"]} == {name: len(body) for name, body in found.items()}
    assert report["bytes"] == sum(map(len, found.values()))
    assert report["rows"] == sum(file["rows"] for file in report["files"])


def test_a_second_run_leaves_the_same_files(backfill: Backfill, target: Target) -> None:
    assert backfill(target.url, "--topic", "g-txn").exit_code == 0
    before = files(target)
    assert backfill(target.url, "--topic", "g-txn").exit_code == 0
    assert files(target) == before


def test_spark_reads_each_offset_once(backfill: Backfill, spark: SparkSession, expected: Expected, tmp_path: Path) -> None:
    for _ in range(2):
        backfill(tmp_path / "out", "--topic", "g-codec-none", "--topic", "g-txn", "--option", "minPartitions=9")
    frame = spark.read.parquet(str(tmp_path / "out"))
    wanted = {(topic, row["offset"]) for topic in ("g-codec-none", "g-txn") for row in expected(topic)}
    found = [(row["topic"], row["offset"]) for row in frame.select("topic", "offset").collect()]
    assert len(found) == len(wanted)
    assert set(found) == wanted
    assert len(list((tmp_path / "out").rglob("*.parquet"))) >= 9


def test_options_of_the_data_source_apply(backfill: Backfill, expected: Expected, tmp_path: Path) -> None:
    bounds = ["--option", 'startingOffsets={"g-txn": {"0": 90}}', "--option", 'endingOffsets={"g-txn": {"0": 300}}']
    committed = ["--option", "kafka.isolation.level=read_committed", "--option", "includeHeaders=false"]
    result = backfill(tmp_path / "out", "--topic", "g-txn", *bounds, *committed, "--compression", "zstd")
    assert result.exit_code == 0, result.stderr
    wanted = expected("g-txn", 90, 300, set(live("g-txn-0")["read_committed_offsets"]))
    assert rows(tmp_path / "out") == [{k: v for k, v in row.items() if k != "headers"} for row in wanted]


def test_a_task_that_runs_twice_leaves_one_file(archive: str, target: Target, expected: Expected) -> None:
    split, options = split_and_options(archive)
    first = write_split(split, options, target, "snappy")
    before = files(target)
    assert write_split(split, options, target, "snappy") == first
    assert files(target) == before
    assert list(before) == [first.name] == [file_name(split)]
    assert first.rows == len(expected("g-codec-lz4", 3040))


def test_a_task_that_dies_before_its_file_is_in_place_leaves_nothing_and_its_retry_succeeds(
    archive: str, target: Target, expected: Expected
) -> None:
    split, options = split_and_options(archive)
    with pytest.raises(RuntimeError, match="the executor is lost"):
        write_split(split, options, StopsAfterFilling(target.url), "snappy")
    assert files(target) == {}
    written = write_split(split, options, target, "snappy")
    assert list(files(target)) == [written.name]
    assert written.rows == len(expected("g-codec-lz4", 3040))


def test_a_task_that_dies_leaves_the_file_of_the_attempt_before(archive: str, target: Target) -> None:
    split, options = split_and_options(archive)
    write_split(split, options, target, "snappy")
    before = files(target)
    with pytest.raises(RuntimeError, match="the executor is lost"):
        write_split(split, options, StopsAfterFilling(target.url), "snappy")
    assert files(target) == before


def test_a_folder_with_files_of_another_plan_is_refused_and_stays_as_it_is(backfill: Backfill, target: Target) -> None:
    assert backfill(target.url, "--topic", "g-txn").exit_code == 0
    before = files(target)
    refused = backfill(target.url, "--topic", "g-txn", "--option", "minPartitions=20")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert target.url in refused.stderr
    assert TXN_FILES[1] in refused.stderr
    assert files(target) == before


def test_files_of_other_topics_are_no_hindrance(backfill: Backfill, tmp_path: Path) -> None:
    assert backfill(tmp_path / "out", "--topic", "g-tiny").exit_code == 0
    assert backfill(tmp_path / "out", "--topic", "g-mixed").exit_code == 0
    assert {file.parent.name for file in (tmp_path / "out").rglob("*.parquet")} == {"topic=g-tiny", "topic=g-mixed"}


def test_what_is_archived_later_is_added(
    spark: SparkSession, tiering: Callable[..., str], roll: Callable[[Path, str], None], expected: Expected, tmp_path: Path
) -> None:
    logs, url, out = broker_logs(tmp_path / "logs", "g-codec-none-0"), str(tmp_path / "archive"), tmp_path / "out"
    args = ["--archive", url, "--to", str(out), "--topic", "g-codec-none"]
    for archived in (1657, 2500):
        tiering("offload", "--log-dir", logs, "--archive", url)
        assert CliRunner().invoke(main, args, catch_exceptions=False).exit_code == 0
        assert rows(out) == expected("g-codec-none", end=archived)
        roll(logs, "g-codec-none-0")


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--topic", "g-txn", "--option", "unknown=1"], 2, "option unknown is unknown"),
        (["--topic", "g-txn", "--option", "minPartitions=none"], 2, "option minPartitions is 'none'"),
        (["--topic", "g-txn", "--compression", "rar"], 2, "--compression"),
        ([], 2, "--topic"),
        (["--topic", "g-nowhere"], 4, "g-nowhere"),
        (["--topic", "g-txn", "--option", 'startingOffsets={"g-txn": {"0": 9999}}'], 4, "[0, 2744)"),
    ],
)
def test_what_cannot_be_done_is_refused_with_its_reason_and_nothing_is_written(
    backfill: Backfill, tmp_path: Path, args: list[str], code: int, message: str
) -> None:
    refused = backfill(tmp_path / "out", *args)
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert message in refused.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("to", "code", "message"),
    [
        ("", 2, "--to"),
        ("memory://out", 2, "--to"),
        ("nope://bucket/out", 2, "nope"),
        ("s3://", 2, "target"),
        ("{file}/out", 1, "taken"),
    ],
)
def test_a_target_that_cannot_be_written_is_named(backfill: Backfill, tmp_path: Path, to: str, code: int, message: str) -> None:
    (tmp_path / "taken").write_text("a file, no folder")
    refused = backfill(to.format(file=tmp_path / "taken"), "--topic", "g-tiny", "--topic", "g-txn")
    assert (refused.exit_code, refused.stdout) == (code, "")
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_segment_that_fails_its_checksum_stops_no_other_file_and_the_job_says_so(
    spark: SparkSession, archive: str, expected: Expected, tmp_path: Path
) -> None:
    damaged = tmp_path / "archive"
    copytree(archive, damaged)
    segment = sorted(path for path in damaged.rglob("*.log") if "/g-txn" in str(path))[0]
    with segment.open("r+b") as file:
        file.seek(100)
        byte = file.read(1)
        file.seek(100)
        file.write(bytes([byte[0] ^ 1]))
    args = ["--archive", str(damaged), "--to", str(tmp_path / "out"), "--topic", "g-txn", "--topic", "g-tiny"]
    result = CliRunner().invoke(main, args, catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (6, "")
    assert "CRC" in result.stderr
    assert segment.name in result.stderr
    assert {file.name for file in (tmp_path / "out").rglob("*.parquet")} >= {name.partition("/")[2] for name in TXN_FILES[1:]}
    assert [row for row in rows(tmp_path / "out") if row["topic"] == "g-tiny"] == expected("g-tiny")


def test_the_job_runs_as_a_command_of_its_own(archive: str, expected: Expected, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "spark_jobs.jobs.backfill", "--master", "local[2]", "--archive", archive]
    command += ["--to", (tmp_path / "out").as_uri(), "--topic", "g-epochs"]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    ran = subprocess.run(command, env=env, capture_output=True, text=True, timeout=200)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["rows"] == 2100
    assert rows(tmp_path / "out") == expected("g-epochs")
