"""`tiering fetch`: every record from whichever tier has it, with the bytes that Kafka's own classes read."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from click.testing import Result
from golden_logs import expected_records, live, record_digest

from remote.store.folder.store import FolderStore

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]
Records = Callable[[str], list[Row]]

BYTES = ("fetch", "--encoding", "base64")
"""Of bytes that are no text, too, all are in one form."""
FIELDS = ("offset", "timestamp", "key", "value", "headers")
BOTH_TIERS = {
    "all local": ("broker", "archive"),
    "archived ones gone": ("shed", "archive"),
    "all archived": ("rolled", "whole_archive"),
}


def visible(records: list[Row], start: int, end: int, only: set[int] | None = None) -> list[Row]:
    """What an application sees of the records, those at `only` these offsets if it is given."""
    return [
        {"partition": 0, **{name: record[name] for name in FIELDS}}
        for record in records
        if not record["control"] and start <= record["offset"] < end and (only is None or record["offset"] in only)
    ]


@pytest.fixture
def tiers(request: pytest.FixtureRequest) -> tuple[object, ...]:
    """The options for both tiers, by where the segments are."""
    logs, url = BOTH_TIERS[request.param]
    return "--log-dir", request.getfixturevalue(logs), "--archive", request.getfixturevalue(url)


@pytest.mark.parametrize("tiers", ["all local", "archived ones gone"], indirect=True)
@pytest.mark.slow
def test_both_tiers_together_give_every_record(
    rows: Rows, records: Records, tiers: tuple[object, ...], partition: str, topic: str
) -> None:
    start, end = live(partition)["earliest"][0], live(partition)["latest"][0]
    fetched = rows(*BYTES, *tiers, "--topic", topic, "--partition", 0, "--offset", start)
    assert fetched == visible(records(partition), start, end)
    assert len(fetched) == live(partition)["read_uncommitted_count"]


@pytest.mark.parametrize("tiers", ["archived ones gone", "all archived"], indirect=True)
@pytest.mark.slow
def test_both_tiers_together_give_a_committed_reader_what_kafka_gave_it(
    rows: Rows, records: Records, tiers: tuple[object, ...], partition: str, topic: str
) -> None:
    start, committed = live(partition)["earliest"][0], live(partition)["read_committed_offsets"]
    options = ("--topic", topic, "--partition", 0, "--offset", start, "--isolation", "read_committed")
    fetched = rows(*BYTES, *tiers, *options)
    assert [row["offset"] for row in fetched] == committed
    assert fetched == visible(records(partition), start, live(partition)["latest"][0], set(committed))


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.slow
def test_older_messages_are_the_same_from_either_tier(
    rows: Rows, legacy: Path, legacy_archive: str, legacy_partition: str, isolation: str
) -> None:
    dumped = rows("log", "dump", legacy / legacy_partition, "--records")
    assert tuple(map(record_digest, dumped)) == expected_records(legacy_partition)
    question = ("--topic", legacy_partition.removesuffix("-0"), "--partition", 0, "--offset", 0, "--isolation", isolation)
    expected = visible(dumped, 0, live(legacy_partition)["latest"][0])
    assert rows(*BYTES, "--log-dir", legacy, *question) == expected
    assert rows(*BYTES, "--archive", legacy_archive, *question) == expected
    assert rows(*BYTES, "--log-dir", legacy, "--archive", legacy_archive, *question) == expected


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.slow
def test_the_log_directory_alone_gives_the_same(
    rows: Rows, records: Records, broker: Path, partition: str, topic: str, isolation: str
) -> None:
    start, end = live(partition)["earliest"][0], live(partition)["latest"][0]
    only = set(live(partition)["read_committed_offsets"]) if isolation == "read_committed" else None
    options = ("--topic", topic, "--partition", 0, "--offset", start, "--isolation", isolation)
    assert rows(*BYTES, "--log-dir", broker, *options) == visible(records(partition), start, end, only)


@pytest.mark.parametrize("url", ["archive", "whole_archive"])
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.slow
def test_the_archive_alone_gives_every_archived_record(
    rows: Rows, records: Records, request: pytest.FixtureRequest, url: str, isolation: str
) -> None:
    archive = request.getfixturevalue(url)
    described = rows("describe", "--archive", archive)
    assert len(described) == {"archive": 8, "whole_archive": 14}[url]
    for row in described:
        topic, start, end = row["topic"], row["log_start_offset"], row["archived_up_to"]
        only = set(live(f"{topic}-0")["read_committed_offsets"]) if isolation == "read_committed" else None
        options = ("--topic", topic, "--partition", 0, "--offset", start, "--isolation", isolation)
        assert rows(*BYTES, "--archive", archive, *options) == visible(records(f"{topic}-0"), start, end, only)


@pytest.mark.parametrize(
    ("topic", "offset"), [("g-codec-lz4", 3039), ("g-codec-lz4", 3040), ("g-codec-none", 1000), ("g-txn", 99)]
)
@pytest.mark.parametrize("limit", [1, 7, 2000])
def test_a_read_starts_at_the_very_offset_and_stops_after_max_records(
    rows: Rows, records: Records, shed: Path, archive: str, topic: str, offset: int, limit: int
) -> None:
    options = ("--topic", topic, "--partition", 0, "--offset", offset, "--max-records", limit)
    fetched = rows(*BYTES, "--log-dir", shed, "--archive", archive, *options)
    assert fetched == visible(records(f"{topic}-0"), offset, 1 << 62)[:limit]


def test_a_read_that_starts_where_compaction_left_nothing_goes_on_with_the_next_record(
    rows: Rows, records: Records, archive: str
) -> None:
    first = min(record["offset"] for record in records("g-compacted-0"))
    assert first > 5
    fetched = rows(*BYTES, "--archive", archive, "--topic", "g-compacted", "--partition", 0, "--offset", 5)
    assert fetched == visible(records("g-compacted-0"), 5, 2000)


@pytest.mark.parametrize(("output", "nothing"), [("jsonl", ""), ("json", "[]\n"), ("table", "")])
def test_the_end_of_the_log_is_no_error_and_gives_nothing(run: Run, broker: Path, output: str, nothing: str) -> None:
    options = ("--topic", "g-codec-none", "--partition", 0, "--offset", 2500, "--output", output)
    ended = run("fetch", "--log-dir", broker, *options)
    assert (ended.exit_code, ended.stdout) == (0, nothing)


@pytest.mark.parametrize(
    ("topic", "offset", "both", "alone"),
    [
        ("g-codec-none", 2501, "[0, 2500)", "[0, 1657)"),
        ("g-codec-none", (1 << 63) - 1, "[0, 2500)", "[0, 1657)"),
        ("g-trimmed", 1233, "[1234, 3000)", "[1234, 2222)"),
    ],
)
def test_an_offset_out_of_range_is_not_found_and_the_range_is_named(
    run: Run, broker: Path, archive: str, topic: str, offset: int, both: str, alone: str
) -> None:
    options = ("--topic", topic, "--partition", 0, "--offset", offset, "--output", "jsonl")
    for tiers, there in ((("--log-dir", broker, "--archive", archive), both), (("--archive", archive), alone)):
        refused = run("fetch", *tiers, *options)
        assert (refused.exit_code, refused.stdout) == (4, "")
        assert f"{topic}-0" in refused.stderr
        assert str(offset) in refused.stderr
        assert there in refused.stderr


def test_a_topic_that_is_not_there_is_not_found_and_the_others_are_named(run: Run, broker: Path, archive: str) -> None:
    for tiers in (("--log-dir", broker), ("--archive", archive), ("--log-dir", broker, "--archive", archive)):
        missing = run("fetch", *tiers, "--topic", "g-nowhere", "--partition", 0, "--offset", 0)
        assert (missing.exit_code, missing.stdout) == (4, "")
        assert "g-nowhere" in missing.stderr
        assert "g-codec-none" in missing.stderr


def test_a_partition_that_is_not_there_is_not_found_and_the_others_are_named(run: Run, broker: Path, archive: str) -> None:
    missing = run("fetch", "--log-dir", broker, "--archive", archive, "--topic", "g-txn", "--partition", 7, "--offset", 0)
    assert missing.exit_code == 4
    assert "no partition 7; it has 0" in missing.stderr


def test_without_any_tier_it_is_a_usage_error(run: Run) -> None:
    refused = run("fetch", "--topic", "g-txn", "--partition", 0, "--offset", 0)
    assert refused.exit_code == 2
    assert "--archive" in refused.stderr
    assert "--log-dir" in refused.stderr


@pytest.mark.parametrize(
    "wrong", [("--offset", "first"), ("--max-records", 0), ("--isolation", "serializable"), ("--output", "xml")]
)
def test_a_value_that_makes_no_sense_is_a_usage_error_that_names_its_option(
    run: Run, broker: Path, wrong: tuple[object, ...]
) -> None:
    refused = run("fetch", "--log-dir", broker, "--topic", "g-txn", "--partition", 0, "--offset", 0, *wrong)
    assert refused.exit_code == 2
    assert str(wrong[0]) in refused.stderr


def test_json_is_one_array_of_what_jsonl_has_a_line_each(run: Run, rows: Rows, broker: Path) -> None:
    options = ("fetch", "--log-dir", broker, "--topic", "g-txn", "--partition", 0, "--offset", 0, "--max-records", 50)
    values = rows(*options)
    assert len(values) == 50
    assert json.loads(run(*options, "--output", "json").stdout) == values


def test_the_table_shows_times_and_text(run: Run, broker: Path) -> None:
    shown = run("fetch", "--log-dir", broker, "--topic", "g-tiny", "--partition", 0, "--offset", 0)
    head, record = shown.stdout.splitlines()
    assert head.split() == list(FIELDS)
    assert record.split()[:2] == ["0", "2023-11-14T22:13:20.123Z"]


def test_a_table_of_more_than_a_thousand_rows_has_them_all(run: Run, broker: Path) -> None:
    shown = run("fetch", "--log-dir", broker, "--topic", "g-codec-none", "--partition", 0, "--offset", 0).stdout.splitlines()
    assert [int(line.split()[0]) for line in shown if line.split()[0].isdigit()] == list(range(2500))


def test_a_flipped_bit_in_the_archive_is_named_with_its_key(run: Run, archive: str, tmp_path: Path) -> None:
    damaged = copytree(archive, tmp_path / "archive")
    (segment,) = damaged.glob("g-codec-none/*/0/segments/*.log")
    body = bytearray(segment.read_bytes())
    body[len(body) // 2] ^= 1
    segment.write_bytes(body)
    stopped = run("fetch", "--archive", damaged, "--topic", "g-codec-none", "--partition", 0, "--offset", 0, "--output", "jsonl")
    assert stopped.exit_code == 6
    assert str(segment.relative_to(damaged)) in stopped.stderr
    assert " at byte " in stopped.stderr


def test_what_was_fetched_is_kept_in_the_cache_folder_and_read_from_there(
    rows: Rows, archive: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    fetch = (*BYTES, "--archive", archive, "--topic", "g-txn", "--partition", 0, "--offset", 500, "--max-records", 3)
    plain = rows(*fetch)
    assert rows(*fetch, "--cache-dir", cache) == plain
    assert [file for file in (cache / "chunks").rglob("*") if file.is_file()]
    read: list[str] = []
    true = FolderStore.get_range
    monkeypatch.setattr(FolderStore, "get_range", lambda store, key, *ends: (read.append(key), true(store, key, *ends))[1])
    assert rows(*fetch, "--cache-dir", cache) == plain
    assert read == []


def test_what_a_search_by_time_read_is_kept_there_too(run: Run, archive: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    offsets = ("offsets", "--archive", archive, "--topic", "g-txn", "--time", "1700000500000")
    plain = run(*offsets).stdout
    for _ in range(2):
        assert run(*offsets, "--cache-dir", cache).stdout == plain
    assert [file for file in (cache / "indexes").rglob("*") if file.is_file()]
