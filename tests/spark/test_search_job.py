"""The job search: the answers of `tiering offsets`, for all partitions at once; and records by their keys and values."""

import json
import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result
from golden_logs import live
from pyspark.sql import SparkSession

from remote.store.open import open_store
from spark_jobs.jobs.search import main
from spark_jobs.search import records as search_records
from spark_jobs.search.predicate import Match, Predicate
from spark_jobs.search.task import SearchQuery
from spark_jobs.source.options import parse
from spark_jobs.source.partitions import Split, plan_splits

pytestmark = pytest.mark.spark

TIMES = [0, 1700000000123, 1700000500000, 1700001999999, 1795229935100, 4000000000000]


@pytest.fixture
def search(spark: SparkSession, archive: str) -> Callable[..., Result]:
    """`search(ARGS…)`: the job on the session of the tests."""

    def run(*args: object) -> Result:
        return CliRunner().invoke(main, ["--archive", archive, *map(str, args)], catch_exceptions=False)

    return run


@pytest.mark.parametrize(("time", "output"), [*((time, "jsonl") for time in TIMES), (TIMES[2], "table")])
def test_every_partition_has_the_answer_of_offsets(
    search: Callable[..., Result], tiering: Callable[..., str], archive: str, time: int, output: str
) -> None:
    topics = [json.loads(line)["topic"] for line in tiering("describe", "--archive", archive, "--output", "jsonl").splitlines()]
    assert len(topics) == 14
    offsets = [tiering("offsets", "--archive", archive, "--topic", t, "--time", time, "--output", output) for t in topics]
    found = search("--timestamp", time, "--output", output)
    assert (found.exit_code, found.stdout) == (0, "".join(offsets))


def test_topics_narrow_it_down_and_the_answer_is_kafkas(search: Callable[..., Result]) -> None:
    asked, offset, timestamp, epoch = live("g-codec-lz4-0")["offset_for_timestamp"][60]
    found = search("--topic", "g-codec-lz4", "--topic", "g-tiny", "--timestamp", asked, "--output", "json")
    first, second = json.loads(found.stdout)
    answer = {"offset": offset, "timestamp": timestamp, "leader_epoch": epoch}
    assert first == {"topic": "g-codec-lz4", "partition": 0, **answer}
    assert second == {"topic": "g-tiny", "partition": 0, "offset": None, "timestamp": None, "leader_epoch": None}


def test_a_topic_that_is_not_archived_is_not_found(search: Callable[..., Result]) -> None:
    missing = search("--topic", "g-nowhere", "--timestamp", 0)
    assert (missing.exit_code, missing.stdout) == (4, "")
    assert "g-nowhere" in missing.stderr


def test_one_missing_topic_among_others_is_not_passed_over(search: Callable[..., Result]) -> None:
    missing = search("--topic", "g-tiny", "--topic", "g-nowhere", "--timestamp", 0)
    assert missing.exit_code == 4
    assert "g-nowhere" in missing.stderr


@pytest.mark.parametrize("time", ["-1", "latest"])
def test_a_time_that_is_none_is_a_usage_error(search: Callable[..., Result], time: str) -> None:
    refused = search("--timestamp", time)
    assert refused.exit_code == 2
    assert "--timestamp" in refused.stderr


def test_an_archive_that_ends_with_the_process_is_a_usage_error(search: Callable[..., Result]) -> None:
    refused = search("--timestamp", 0, "--archive", "memory://archive")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--archive" in refused.stderr


ALL = ("g-codec-none", "g-txn", "g-compacted", "g-tiny")
Row = dict[str, Any]


def found_rows(result: Result) -> list[Row]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def wanted_rows(expected: Callable[..., list[Row]], topics: tuple[str, ...], is_wanted: Callable[[Row], bool]) -> list[Row]:
    """What a scan of all records would find, in base64."""
    return [
        {
            "topic": row["topic"],
            "partition": 0,
            "offset": row["offset"],
            "timestamp": round(row["timestamp"].timestamp() * 1000),
            "key": None if row["key"] is None else b64encode(row["key"]).decode(),
            "value": None if row["value"] is None else b64encode(row["value"]).decode(),
        }
        for topic in sorted(topics)
        for row in expected(topic)
        if is_wanted(row)
    ]


@pytest.mark.parametrize("column", ["key", "value"])
@pytest.mark.parametrize("match", ["exact", "prefix", "contains", "regex"])
def test_records_whose_key_or_value_matches_are_those_of_a_scan(
    search: Callable[..., Result], expected: Callable[..., list[Row]], column: str, match: str
) -> None:
    bodies = [row[column] for topic in ALL for row in expected(topic) if row[column]]
    body = bodies[len(bodies) // 3]
    part = body[: max(len(body) // 2, 1)]
    pattern, is_wanted = {
        "exact": (body, lambda found: found == body),
        "prefix": (part, lambda found: found.startswith(part)),
        "contains": (part, lambda found: part in found),
        "regex": (b"^" + re.escape(part), lambda found: re.match(re.escape(part), found) is not None),
    }[match]
    topics = [option for topic in ALL for option in ("--topic", topic)]
    options = [f"--{column}-hex", pattern.hex(), f"--{column}-match", match, "--limit", 10**6]
    found = found_rows(search(*topics, *options, "--encoding", "base64", "--output", "jsonl"))
    wanted = wanted_rows(expected, ALL, lambda row: row[column] is not None and is_wanted(row[column]))
    assert wanted
    assert found == wanted


def test_key_and_value_together_and_an_interval_narrow_it_down(
    search: Callable[..., Result], expected: Callable[..., list[Row]]
) -> None:
    times = sorted(round(row["timestamp"].timestamp() * 1000) for row in expected("g-codec-none"))
    start, end = times[len(times) // 4], times[len(times) // 2]
    options = [
        "--topic",
        "g-codec-none",
        "--from-timestamp",
        start,
        "--to-timestamp",
        end,
        "--key-match",
        "regex",
        "--key",
        "[02468]",
    ]
    found = found_rows(search(*options, "--value", "", "--limit", 10**6, "--encoding", "base64", "--output", "jsonl"))

    # As in Kafka, an interval ends at the first record that is as late as its end.
    last = next(r["offset"] for r in expected("g-codec-none") if r["timestamp"].timestamp() * 1000 >= end)

    def is_wanted(row: Row) -> bool:
        in_time = start <= round(row["timestamp"].timestamp() * 1000) < end and row["offset"] < last
        return in_time and row["value"] is not None and re.search(rb"[02468]", row["key"] or b"") is not None

    wanted = wanted_rows(expected, ("g-codec-none",), is_wanted)
    assert wanted
    assert found == wanted


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_a_limit_gives_the_first_that_match(
    search: Callable[..., Result], expected: Callable[..., list[Row]], limit: int
) -> None:
    found = found_rows(search("--topic", "g-t*", "--value", "", "--limit", limit, "--encoding", "base64", "--output", "jsonl"))
    topics = ("g-tiny", "g-trimmed", "g-txn")
    assert found == wanted_rows(expected, topics, lambda row: row["value"] is not None)[:limit]


def test_splits_behind_the_limit_are_not_read(archive: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Split] = []

    def run_tasks(job: str, items: Any, act: Any, size_of: Any, **_: Any) -> Any:
        read.extend(items)
        return [act(item) for item in items], None

    monkeypatch.setattr(search_records, "run_tasks", run_tasks)
    options = parse({"archive": archive, "subscribe": "g-txn", "minPartitions": "100"})
    found = plan_splits(open_store(archive), options)
    query = SearchQuery(options, (Predicate("value", Match.contains, b""),), None, None, 5)
    assert sum(table.num_rows for table in search_records.records(query, found)) == 5
    assert len(read) == search_records.FIRST_WAVE < len(found)


def test_keys_and_values_are_text_unless_base64_is_asked_for(
    search: Callable[..., Result], expected: Callable[..., list[Row]]
) -> None:
    (record,) = expected("g-tiny")
    (row,) = found_rows(search("--topic", "g-tiny", "--value-hex", record["value"].hex(), "--output", "jsonl"))
    assert row["value"] == record["value"].decode()
    table = search("--topic", "g-tiny", "--value-hex", record["value"].hex())
    assert table.stdout.splitlines()[0].split() == ["topic", "partition", "offset", "timestamp", "key", "value"]


def test_a_dry_run_of_a_search_says_what_it_would_read(search: Callable[..., Result]) -> None:
    plan = json.loads(search("--topic", "g-txn", "--key", "x", "--dry-run").stdout)
    assert (plan["job"], plan["splits"]) == ("search", 3)
    assert json.loads(search("--topic", "g-txn", "--resolve-only").stdout) == {"g-txn": {"0": [0, 2744]}}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ([], "choose what to search for"),
        (["--key", "a", "--key-hex", "61"], "give only one of them"),
        (["--value-hex", "6"], "not hexadecimal"),
        (["--key", "(", "--key-match", "regex"], "not a regular expression"),
        (["--timestamp", "0", "--key", "a"], "--timestamp asks for offsets"),
        (["--key", "a", "--limit", "0"], "--limit"),
    ],
)
def test_a_question_that_makes_no_sense_is_a_usage_error(search: Callable[..., Result], args: list[str], message: str) -> None:
    refused = search(*args)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert message in refused.stderr
