"""The job backfill: archive to Parquet, each offset once, and each run going on where the one before ended."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result
from golden_logs import broker_logs, live
from pyspark.sql import SparkSession

from spark_jobs.common.target import HIDDEN, Target
from spark_jobs.jobs.backfill import main

pytestmark = pytest.mark.spark

Row = dict[str, Any]
Expected = Callable[..., list[Row]]
Backfill = Callable[..., Result]

ALONE = ("--option", "maxRecordsPerPartition=2600")
"""With this no two segments of g-txn share a file."""
TXN_FILES = [f"topic=g-txn/0-{start:020d}-{end:020d}.parquet" for start, end in [(0, 102), (102, 2683), (2683, 2744)]]


@pytest.fixture
def backfill(spark: SparkSession, archive: str) -> Backfill:
    """`backfill(to, topic, …, *options)`: the job on the session of the tests."""

    def run(to: object, *args: object) -> Result:
        return CliRunner().invoke(main, ["--archive", archive, "--to", str(to), *map(str, args)], catch_exceptions=False)

    return run


@pytest.fixture(params=["folder", "s3"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    """An empty place for files."""
    if request.param == "s3":
        yield Target(f"s3://{request.getfixturevalue('s3_bucket')}/parquet")
    else:
        yield Target(str(tmp_path / "parquet"))


def files(target: Target) -> dict[str, bytes]:
    """Everything below a target's folder but commits and marks; what is staged, too."""
    system, root = target._open()
    found = {file.removeprefix(root).lstrip("/"): system.cat_file(file) for file in system.find(root)}
    return {n: body for n, body in found.items() if not n.startswith((f"{HIDDEN}commits/", f"{HIDDEN}published/"))}


def rows(folder: Path) -> list[Row]:
    """All rows of the published files, by topic and offset."""
    found = []
    for file in folder.rglob("*.parquet"):
        topic = next(part for part in file.parts if part.startswith("topic=")).removeprefix("topic=")
        found += [{**row, "topic": topic} for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted(found, key=lambda r: (r["topic"], r["offset"]))


def test_the_files_hold_every_row(backfill: Backfill, expected: Expected, tmp_path: Path) -> None:
    topics = ["g-big", "g-codec-gzip", "g-codec-none", "g-compacted", "g-trimmed", "g-txn"]
    result = backfill(tmp_path / "out", *(option for topic in topics for option in ("--topic", topic)))
    assert result.exit_code == 0, result.stderr
    assert rows(tmp_path / "out") == [row for topic in topics for row in expected(topic)]


def test_the_report_names_every_file_with_its_rows_and_bytes(backfill: Backfill, target: Target) -> None:
    result = backfill(target.url, "--topic", "g-txn", "--by", "none", "--list-files", *ALONE)
    assert result.exit_code == 0, result.stderr
    report, found = json.loads(result.stdout), files(target)
    assert report["target"] == target.url
    assert [file["name"] for file in report["files"]] == TXN_FILES == sorted(found)
    assert {file["name"]: file["bytes"] for file in report["files"]} == {name: len(body) for name, body in found.items()}
    assert report["bytes"] == sum(map(len, found.values()))
    assert report["rows"] == sum(file["rows"] for file in report["files"])
    assert (report["version"], report["splits"], report["offsets"]) == (1, 3, {"g-txn": {"0": [0, 2744]}})
    assert report["read_bytes"] > 0
    assert report["summary"].startswith(f"{report['rows']:,} rows, ")
    assert f" in 3 files are new in {target.url} (version 1, " in report["summary"]


def test_small_segments_share_a_file_and_the_report_lists_none_unless_asked(backfill: Backfill, tmp_path: Path) -> None:
    report = json.loads(backfill(tmp_path / "out", "--topic", "g-txn", "--topic", "g-tiny", "--by", "none").stdout)
    names = sorted(str(file.relative_to(tmp_path / "out")) for file in (tmp_path / "out").rglob("topic=*/*.parquet"))
    assert names == [f"topic={topic}/0-{0:020d}-{end:020d}.parquet" for topic, end in (("g-tiny", 1), ("g-txn", 2744))]
    assert (report["file_count"], report["splits"], "files" in report) == (2, 2, False)


def test_a_file_is_about_as_large_as_it_is_to_be(backfill: Backfill, expected: Expected, tmp_path: Path) -> None:
    backfill(tmp_path / "out", "--topic", "g-big", "--by", "none", "--compression", "none", "--target-file-mb", "1MB")
    *sizes, _ = [file.stat().st_size for file in sorted((tmp_path / "out").rglob("topic=*/*.parquet"))]
    assert sizes
    assert all(size < 2_500_000 for size in sizes), sizes
    assert rows(tmp_path / "out") == expected("g-big")


def test_keys_and_values_are_what_is_asked_for_and_nothing_is_lost(
    backfill: Backfill, spark: SparkSession, expected: Expected, tmp_path: Path
) -> None:
    forms = ["--key-as", "text", "--value-as", "json", "--value-schema", "n INT, s STRING"]
    result = backfill(tmp_path / "out", "--topic", "g-mixed", *forms)
    assert result.exit_code == 0, result.stderr
    report, wanted = json.loads(result.stdout), expected("g-mixed")
    frame = spark.read.parquet(str(tmp_path / "out")).orderBy("offset")
    assert frame.schema["value"].dataType.simpleString() == "struct<n:int,s:string>"
    found = frame.collect()
    assert [row.offset for row in found] == [row["offset"] for row in wanted]
    for row, was in zip(found, wanted, strict=True):
        assert (row.key.encode() if row.key is not None else row.key_raw) == was["key"]
        assert row.value_raw == was["value"]  # no value of this topic is such a document
        assert row.value is None
    unparsed = sum(row["value"] is not None for row in wanted)
    assert report["unparsed_values"] == unparsed > 0
    assert f"{unparsed} values are not JSON of --value-schema: the column value_raw has" in report["value_warning"]
    refused = backfill(tmp_path / "out", "--topic", "g-tiny")
    assert refused.exit_code == 2
    assert "value json struct<n:int,s:string>" in refused.stderr


def test_a_second_run_finds_nothing_to_do_and_leaves_the_same_files(backfill: Backfill, target: Target) -> None:
    assert backfill(target.url, "--topic", "g-txn").exit_code == 0
    before = files(target)
    again = json.loads(backfill(target.url, "--topic", "g-txn").stdout)
    assert (again["version"], again["splits"], again["file_count"], again["offsets"]) == (1, 0, 0, {})
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


@pytest.mark.parametrize("by", ["date", "hour"])
def test_files_are_parted_by_the_time_of_their_records_as_readers_of_hive_folders_know_it(
    backfill: Backfill, spark: SparkSession, expected: Expected, tmp_path: Path, by: str
) -> None:
    assert backfill(tmp_path / "out", "--topic", "g-txn", "--topic", "g-codec-none", "--by", by).exit_code == 0
    schema = ["topic", "offset", "timestamp", "date", *(["hour"] if by == "hour" else [])]
    found = ds.dataset(tmp_path / "out", format="parquet", partitioning="hive").to_table(columns=schema).to_pylist()
    assert len(found) == sum(len(expected(topic)) for topic in ("g-txn", "g-codec-none"))
    assert all(row["timestamp"].date().isoformat() == row["date"] for row in found)
    assert all(row["timestamp"].hour == row.get("hour", row["timestamp"].hour) for row in found)
    assert spark.read.parquet(str(tmp_path / "out")).count() == len(found)


def test_a_run_of_other_splits_goes_on_from_the_last_commit(backfill: Backfill, expected: Expected, tmp_path: Path) -> None:
    bounds = ["--option", 'endingOffsets={"g-txn": {"0": 500}}', "--option", "minPartitions=7"]
    assert backfill(tmp_path / "out", "--topic", "g-txn", *bounds).exit_code == 0
    second = json.loads(backfill(tmp_path / "out", "--topic", "g-txn").stdout)
    assert (second["version"], second["offsets"]) == (2, {"g-txn": {"0": [500, 2744]}})
    assert rows(tmp_path / "out") == expected("g-txn")


def test_intervals_in_any_order_and_overlapping_leave_each_offset_once(
    backfill: Backfill, expected: Expected, tmp_path: Path
) -> None:
    for start, end in [(1000, 1500), (0, 200), (1400, 2744), (100, 1100), (0, 2744)]:
        result = backfill(tmp_path / "out", "--offsets", json.dumps({"g-txn": {"0": [start, end]}}))
        assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["rows"] == 0
    assert rows(tmp_path / "out") == expected("g-txn")


def test_intervals_of_time_next_to_each_other_have_each_offset_once(
    backfill: Backfill, expected: Expected, tmp_path: Path
) -> None:
    times = [int(row["timestamp"].timestamp() * 1000) for row in expected("g-codec-none")]
    middle = sorted(times)[len(times) // 2]
    assert backfill(tmp_path / "out", "--topic", "g-codec-none", "--from-timestamp", str(middle)).exit_code == 0
    later = rows(tmp_path / "out")
    assert 0 < len(later) < len(times)
    assert backfill(tmp_path / "out", "--topic", "g-codec-none", "--to-timestamp", str(middle)).exit_code == 0
    assert rows(tmp_path / "out") == expected("g-codec-none")


def test_resolved_offsets_are_a_run_that_every_retry_can_be_of(backfill: Backfill, expected: Expected, tmp_path: Path) -> None:
    resolved = backfill(tmp_path / "out", "--topic", "g-t*", "--resolve-only")
    assert json.loads(resolved.stdout) == {"g-tiny": {"0": [0, 1]}, "g-trimmed": {"0": [1234, 3000]}, "g-txn": {"0": [0, 2744]}}
    assert not (tmp_path / "out").exists()
    vector = tmp_path / "vector.json"
    vector.write_text(resolved.stdout)
    assert backfill(tmp_path / "out", "--offsets", vector).exit_code == 0
    assert rows(tmp_path / "out") == [row for topic in ("g-tiny", "g-trimmed", "g-txn") for row in expected(topic)]


def test_a_dry_run_says_what_a_run_would_read_and_cost_and_writes_nothing(backfill: Backfill, tmp_path: Path) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(
        '[disk]\nschemes = [""]\nas_of = 2026-01-01\nregion = "here"\nreads_per_1000 = 1000\nwrites_per_1000 = 0\n'
        "retrieval_per_gb = 0\negress_per_gb = 0\n"
    )
    dry = backfill(tmp_path / "out", "--topic", "g-txn", "--dry-run", "--prices", prices)
    assert dry.exit_code == 0, dry.stderr
    plan = json.loads(dry.stdout)
    assert not (tmp_path / "out").exists()
    assert (plan["splits"], plan["offsets"]) == (3, {"g-txn": {"0": [0, 2744]}})
    assert plan["cost"]["total_usd"] == plan["requests"]
    ran = json.loads(backfill(tmp_path / "out", "--topic", "g-txn").stdout)
    assert (plan["requests"], plan["bytes"]) == (ran["read_requests"], ran["read_bytes"])
    assert json.loads(backfill(tmp_path / "out", "--topic", "g-txn", "--dry-run").stdout)["splits"] == 0


def test_a_folder_with_files_that_nobody_committed_is_refused_and_stays_as_it_is(backfill: Backfill, target: Target) -> None:
    system, root = target._open()
    system.makedirs(f"{root}/topic=g-txn", exist_ok=True)
    system.pipe_file(f"{root}/{TXN_FILES[1]}", b"a file of somebody else")
    refused = backfill(target.url, "--topic", "g-txn")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert target.url in refused.stderr
    assert TXN_FILES[1] in refused.stderr
    assert list(files(target)) == [TXN_FILES[1]]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (["--by", "hour"], "by date, not hour"),
        (["--option", "includeHeaders=false"], "columns key, value"),
        (["--option", "kafka.isolation.level=read_committed"], "read_committed False, not True"),
    ],
)
def test_a_run_whose_files_would_not_fit_to_those_before_is_refused(
    backfill: Backfill, tmp_path: Path, other: list[str], message: str
) -> None:
    assert backfill(tmp_path / "out", "--topic", "g-tiny").exit_code == 0
    refused = backfill(tmp_path / "out", "--topic", "g-txn", *other)
    assert refused.exit_code == 2
    assert message in refused.stderr.replace("\n", "")
    assert backfill(tmp_path / "out", "--topic", "g-txn", "--compression", "zstd").exit_code == 0


def test_files_of_other_topics_are_no_hindrance(backfill: Backfill, tmp_path: Path) -> None:
    assert backfill(tmp_path / "out", "--topic", "g-tiny").exit_code == 0
    assert backfill(tmp_path / "out", "--topic", "g-mixed").exit_code == 0
    assert {file.parent.parent.name for file in (tmp_path / "out").rglob("*.parquet")} == {"topic=g-tiny", "topic=g-mixed"}


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
        (["--topic", "g-txn", "--target-file-mb", "some"], 2, "expected bytes, or a size such as 500kB"),
        (["--topic", "g-txn", "--value-as", "json"], 2, "give --value-schema"),
        (["--topic", "g-txn", "--key-schema", "id INT"], 2, "add --key-as json"),
        (["--topic", "g-txn", "--value-as", "json", "--value-schema", "id NUMBER"], 2, "--value-schema 'id NUMBER' is no schema"),
        (["--topic", "g-txn", "--value-as", "json", "--value-schema", "ARRAY<INT>"], 2, "no schema of an object"),
        (["--topic", "g-txn", "--value-as", "json", "--value-schema", "m MAP<STRING, INT>"], 2, "map<string,int> cannot be read"),
        ([], 2, "--topic"),
        (["--offsets", "[]"], 2, "--offsets"),
        (["--offsets", '{"g-txn": {"0": [5, 4]}}'], 2, "--offsets"),
        (["--offsets", '{"g-txn": {"0": [0, 5]}}', "--topic", "g-txn"], 2, "leave out --topic"),
        (["--offsets", '{"g-txn": {"1": [0, 5]}}'], 4, "g-txn-1"),
        (["--offsets", '{"g-txn": {"0": [0, 9999]}}'], 4, "[0, 2744)"),
        (["--topic", "g-txn", "--from-timestamp", "yesterday"], 2, "--from-timestamp"),
        (["--topic", "g-txn", "--option", "archive=elsewhere"], 2, "--option archive"),
        (["--topic", "g-txn", "--option", "subscribe"], 2, "NAME=VALUE"),
        (["--topic", "g-txn", "--topic", "g-nowhere-*"], 4, "g-nowhere-*"),
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
        ("s3://", 2, "names no bucket"),
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
    args = ["--archive", str(damaged), "--to", str(tmp_path / "out"), "--topic", "g-txn", "--topic", "g-tiny", "--by", "none"]
    result = CliRunner().invoke(main, args, catch_exceptions=False)
    assert (result.exit_code, result.stdout) == (6, "")
    assert "CRC" in result.stderr
    assert segment.name in result.stderr
    assert [row for row in rows(tmp_path / "out") if row["topic"] == "g-txn"] == expected("g-txn", 102)
    assert len(list((tmp_path / "out").rglob("topic=g-txn/*.parquet"))) == 1, "what is not damaged shares a file"
    assert [row for row in rows(tmp_path / "out") if row["topic"] == "g-tiny"] == expected("g-tiny")
