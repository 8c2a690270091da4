"""The job search: the answers of `tiering offsets`, for all partitions at once."""

import json
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result
from golden_logs import live
from pyspark.sql import SparkSession

from spark_jobs.jobs.search import main

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
