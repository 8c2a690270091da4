"""`tiering offsets`: the answers that the running broker gave, from both tiers and from each alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from golden_logs import live

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]

NUMBERS = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
OF_TIMES = 13
"""Of the times whose offsets are known one of so many is asked here, and every one of the tiered log that answers."""
LOG_DIRS_AND_ARCHIVES = [("broker", None), ("broker", "archive"), ("shed", "archive"), ("rolled", "whole_archive")]


@pytest.fixture(params=LOG_DIRS_AND_ARCHIVES, ids=lambda names: "+".join(filter(None, names)))
def tiers(request: pytest.FixtureRequest) -> tuple[object, ...]:
    """The options for a log directory, alone or with an archive."""
    logs, url = request.param
    archive = ("--archive", request.getfixturevalue(url)) if url else ()
    return "--log-dir", request.getfixturevalue(logs), *archive


@pytest.fixture
def ask(run: Run) -> Callable[..., list[int]]:
    """Offset, timestamp and leader epoch of partition 0 as JSON has them, -1 for all three where there is no answer."""

    def asked(*args: object) -> list[int]:
        result = run("offsets", *args, "--output", "json")
        assert result.exit_code == 0, result.stderr
        (row,) = json.loads(result.stdout)
        assert list(row) == ["topic", "partition", "offset", "timestamp", "leader_epoch"]
        answer = [row["offset"], row["timestamp"], row["leader_epoch"]]
        return [-1, -1, -1] if answer == [None, None, None] else answer

    return asked


def test_the_logs_own_offsets_are_those_that_the_broker_named(
    ask: Callable[..., list[int]], tiers: tuple[object, ...], partition: str, topic: str
) -> None:
    for word in ("latest", "earliest", "max-timestamp"):
        assert ask(*tiers, "--topic", topic, "--time", word) == live(partition)[word.replace("-", "_")], word


@pytest.mark.slow
def test_a_timestamp_leads_where_it_led_the_broker(
    ask: Callable[..., list[int]], tiers: tuple[object, ...], partition: str, topic: str
) -> None:
    for asked, *expected in live(partition)["offset_for_timestamp"][::OF_TIMES]:
        assert ask(*tiers, "--topic", topic, "--time", asked) == expected, asked


def test_a_timestamp_leads_the_archive_alone_to_the_same_record_if_it_has_it(
    ask: Callable[..., list[int]], rows: Rows, whole_archive: str, partition: str, topic: str
) -> None:
    described = {row["topic"]: row for row in rows("describe", "--archive", whole_archive)}
    if topic not in described:
        assert partition == "g-empty-0"
        return
    end = described[topic]["archived_up_to"]
    for asked, *expected in live(partition)["offset_for_timestamp"][::OF_TIMES]:
        answer = ask("--archive", whole_archive, "--topic", topic, "--time", asked)
        assert answer == (expected if expected[0] < end else [-1, -1, -1]), asked


def test_the_archive_alone_ends_where_it_ends(ask: Callable[..., list[int]], archive: str) -> None:
    options = ("--archive", archive, "--topic", "g-trimmed", "--time")
    assert ask(*options, "earliest") == [1234, -1, 0]
    assert ask(*options, "latest") == [2222, -1, 0]
    assert ask(*options, "latest-tiered") == [2221, -1, 0]
    assert ask(*options, "earliest-local") == [-1, -1, -1]


def test_earliest_local_is_where_the_log_directory_starts(
    ask: Callable[..., list[int]], broker: Path, shed: Path, archive: str, partition: str, topic: str
) -> None:
    options = ("--archive", archive, "--topic", topic, "--time", "earliest-local")
    assert ask("--log-dir", broker, *options) == live(partition)["earliest_local"]
    left = min(int(file.stem) for file in (shed / partition).glob("*.log"))
    assert ask("--log-dir", shed, *options)[0] == max(left, live(partition)["earliest"][0])


def test_latest_tiered_is_nothing_before_an_offload_and_the_last_archived_offset_after_it(
    ask: Callable[..., list[int]], rows: Rows, broker: Path, archive: str, partition: str, topic: str
) -> None:
    options = ("--topic", topic, "--time", "latest-tiered")
    assert ask("--log-dir", broker, *options) == live(partition)["latest_tiered"]
    ends = {row["topic"]: row["archived_up_to"] for row in rows("describe", "--archive", archive)}
    expected = [ends[topic] - 1, -1, 0] if topic in ends else [-1, -1, -1]
    assert ask("--log-dir", broker, "--archive", archive, *options) == expected


def test_kafkas_numbers_mean_the_same_as_the_words(run: Run, broker: Path, archive: str, topic: str) -> None:
    options = ("offsets", "--log-dir", broker, "--archive", archive, "--topic", topic, "--output", "jsonl", "--time")
    for word, number in NUMBERS.items():
        assert run(*options, number).stdout == run(*options, word).stdout != ""


def test_latest_is_what_is_asked_when_nothing_is(run: Run, broker: Path) -> None:
    assert run("offsets", "--log-dir", broker, "--topic", "g-txn").stdout == "g-txn:0:3706\n"


@pytest.mark.parametrize(
    ("topic", "time", "line"),
    [
        ("g-txn", "latest", "g-txn:0:3706\n"),
        ("g-trimmed", "earliest", "g-trimmed:0:1234\n"),
        ("g-txn", "latest-tiered", "g-txn:0:2743\n"),
        ("g-tiny", "latest-tiered", "g-tiny:0:\n"),
        ("g-txn", "earliest-pending-upload", "g-txn:0:2744\n"),
        ("g-tiny", "earliest-pending-upload", "g-tiny:0:\n"),
        ("g-empty", "max-timestamp", "g-empty:0:\n"),
        ("g-empty", 0, "g-empty:0:\n"),
        ("g-tiny", 1700000000124, "g-tiny:0:\n"),
    ],
)
def test_the_text_is_that_of_kafkas_tool(run: Run, broker: Path, archive: str, topic: str, time: object, line: str) -> None:
    answer = run("offsets", "--log-dir", broker, "--archive", archive, "--topic", topic, "--time", time)
    assert (answer.exit_code, answer.stdout) == (0, line)


@pytest.mark.parametrize("time", ["2020", str((1 << 63) - 1), str(1 << 63), str(1 << 70)])
def test_a_time_before_or_after_everything_is_an_answer_too(run: Run, broker: Path, archive: str, time: str) -> None:
    for tiers in (("--log-dir", broker), ("--archive", archive)):
        answer = run("offsets", *tiers, "--topic", "g-codec-none", "--time", time)
        assert (answer.exit_code, answer.stdout) == (0, f"g-codec-none:0:{'0' if time == '2020' else ''}\n")


@pytest.mark.parametrize("time", ["yesterday", "-7", "1.5", "", "²", "LATEST "])
def test_a_word_that_means_nothing_is_a_usage_error_that_names_the_others(run: Run, broker: Path, time: str) -> None:
    refused = run("offsets", "--log-dir", broker, "--topic", "g-txn", "--time", time)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--time" in refused.stderr
    assert "max-timestamp" in refused.stderr


def test_without_any_tier_it_is_a_usage_error(run: Run) -> None:
    refused = run("offsets", "--topic", "g-txn")
    assert refused.exit_code == 2
    assert "--archive" in refused.stderr


def test_a_topic_that_is_not_there_is_not_found_and_the_others_are_named(run: Run, broker: Path, archive: str) -> None:
    missing = run("offsets", "--log-dir", broker, "--archive", archive, "--topic", "g-nowhere")
    assert (missing.exit_code, missing.stdout) == (4, "")
    assert "g-nowhere" in missing.stderr
    assert "g-codec-none" in missing.stderr


def test_the_segments_before_a_time_are_listed_with_commas_between_them(run: Run, broker: Path, archive: str) -> None:
    bases = sorted((int(file.stem) for file in (broker / "g-txn-0").glob("*.log")), reverse=True)
    options = ("offsets", "--log-dir", broker, "--archive", archive, "--topic", "g-txn")
    text = run(*options, "--segments-before", "latest").stdout
    assert text == run(*options, "--segments-before", -1).stdout == f"g-txn:0:{','.join(map(str, [3706, *bases]))}\n"
    assert run(*options, "--segments-before", "earliest").stdout == f"g-txn:0:{bases[-1]}\n"
    answer = run(*options, "--segments-before", 1 << 62, "--output", "json")
    assert json.loads(answer.stdout) == [{"topic": "g-txn", "partition": 0, "offsets": [3706, *bases]}]


@pytest.mark.parametrize("options", [("--segments-before", "max-timestamp"), ("--segments-before", 5, "--time", "latest")])
def test_segments_are_asked_for_by_a_time_alone(run: Run, broker: Path, options: tuple[object, ...]) -> None:
    refused = run("offsets", "--log-dir", broker, "--topic", "g-txn", *options)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--segments-before" in refused.stderr
