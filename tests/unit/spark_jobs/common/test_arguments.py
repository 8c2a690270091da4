"""The options that the jobs share: what they ask for, and how they are refused."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from archive_fakes import FixedClock
from click.testing import CliRunner
from made_archive import made

from remote.store.api import ObjectStore
from remote.store.folder.store import FolderStore
from remote.store.instrumented import Meter
from spark_jobs.common.arguments import ReadArguments, given_options, interval_options, resolve_ranges, topics_of
from spark_jobs.errors import OptionError
from spark_jobs.source.ranges import TimestampAhead


@click.command()
@interval_options
def show(**given: Any) -> None:
    click.echo(json.dumps(given))


def asked(*args: str) -> dict[str, Any]:
    result = CliRunner().invoke(show, args)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("1700000000123", 1700000000123),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T01:00:00Z", 3_600_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01 00:00:00.001", 1),
    ],
)
def test_a_time_is_milliseconds_or_a_date_in_utc_unless_it_says_otherwise(text: str, ms: int) -> None:
    assert asked("--from-timestamp", text, "--to-timestamp", text) == {**asked(), "from_ms": ms, "to_ms": ms}


@pytest.mark.parametrize("text", ["", "soon", "-1", "1969-12-31", "2026-13-01", "²"])
def test_what_is_no_time_is_refused(text: str) -> None:
    refused = CliRunner().invoke(show, ["--to-timestamp", text])
    assert refused.exit_code == 2
    assert "--to-timestamp" in refused.stderr


def test_offsets_come_as_json_or_in_a_file(tmp_path: Path) -> None:
    vector = {"orders": {"0": [0, 12], "11": [5, 5]}}
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps(vector))
    assert asked("--offsets", json.dumps(vector))["offset_ranges"] == asked("--offsets", str(file))["offset_ranges"] == vector


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}x",
        '{"t": 1}',
        '{"t": {"x": [0, 1]}}',
        '{"t": {"0": 1}}',
        '{"t": {"0": [1]}}',
        '{"t": {"0": [2, 1]}}',
        '{"t": {"0": [-1, 1]}}',
        '{"t": {"0": [0, true]}}',
        "no-such-file.json",
    ],
)
def test_what_are_no_offsets_is_refused(text: str) -> None:
    refused = CliRunner().invoke(show, ["--offsets", text])
    assert refused.exit_code == 2
    assert "--offsets" in refused.stderr


def test_options_of_the_format_are_taken_but_for_those_that_the_job_has_itself() -> None:
    fixed = {"archive": "a", "keys": None}
    assert given_options(["minPartitions=4", "x=1=2"], fixed) == {"minPartitions": "4", "x": "1=2", "archive": "a"}
    with pytest.raises(OptionError, match="Archive"):
        given_options(["Archive=b"], fixed)
    with pytest.raises(OptionError, match="keys"):
        given_options(["keys=b"], fixed)
    with pytest.raises(OptionError, match="no value"):
        given_options(["minPartitions"], fixed)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """An archive with a topic `made`, and with `made-later`, whose first segment is being copied."""
    found = FolderStore(str(tmp_path))
    made(found, [[(1, 2, 3)]])
    found.put_if_absent(f"made-later/{'L' * 22}/0/first.log", b"a segment")
    return found


def test_a_topic_without_anything_archived_stops_no_job_that_a_glob_leads_to_it(store: ObjectStore) -> None:
    assert topics_of(store, ["made*"]) == ("made",)


@pytest.mark.parametrize("globs", [["made-later"], ["made*", "made-later"], ["made-l*"]])
def test_a_topic_that_is_named_or_the_only_one_is_read_whatever_is_archived(store: ObjectStore, globs: list[str]) -> None:
    assert "made-later" in topics_of(store, globs)


HOUR, DAY = 3_600_000, 86_400_000


def intervals(url: str, count: int, now_ms: int, *pairs: str, meter: Meter | None = None) -> list[tuple[int, int]]:
    """The offsets of so many days from day 1 on."""
    found = []
    for day in range(1, count + 1):
        arguments = ReadArguments(
            archive_url=url, keys_address=None, topics=("made",), dry_run=False, prices_file=None, storage_class=None,
            master=None, pairs=pairs, from_ms=day * DAY, to_ms=(day + 1) * DAY, offset_ranges=None, resolve_only=False,
        )  # fmt: skip
        _, ranges = resolve_ranges(arguments, meter=meter, clock=FixedClock(now_ms))
        found += [(r.start, r.end) for r in ranges]
    return found


def days(url: str, *segments: list[int]) -> None:
    """Archives a topic: the timestamps of the records of each segment."""
    made(FolderStore(url), [[times] for times in segments])


def test_a_record_of_the_far_future_is_told_before_the_intervals_leave_out_what_is_behind_it(tmp_path: Path) -> None:
    days(str(tmp_path), [DAY + 5, 30_000 * DAY, DAY + 10], [2 * DAY + 5, 2 * DAY + 6], [3 * DAY + 1])
    with pytest.raises(TimestampAhead, match=r"made-0: the record at offset 1 has the timestamp 2592000000000, .* ahead") as told:
        intervals(str(tmp_path), 1, now_ms=4 * DAY)
    assert (told.value.partition, told.value.offset, told.value.timestamp_ms) == ("made-0", 1, 30_000 * DAY)
    assert intervals(str(tmp_path), 3, 4 * DAY, "failOnDataLoss=false") == [(0, 1), (1, 1), (1, 1)]


@pytest.mark.parametrize(
    ("segments", "offsets"),
    [
        # Records that come late by days, and whole segments of them.
        ([[DAY, DAY + 1], [2 * DAY, DAY + 2, DAY + 3], [DAY + 4, DAY + 5], [3 * DAY, 5], [4 * DAY]], [(0, 2), (2, 7), (7, 9)]),
        # A day ahead at most: the interval of that time has what is behind it.
        ([[DAY, 3 * DAY + 1, DAY + 1], [2 * DAY, 3 * DAY + 2], [4 * DAY]], [(0, 1), (1, 1), (1, 5)]),
        # Nothing came on some days.
        ([[DAY], [4 * DAY, 4 * DAY + 1]], [(0, 1), (1, 1), (1, 1)]),
    ],
)
def test_intervals_of_records_out_of_order_have_each_offset_once(
    tmp_path: Path, segments: list[list[int]], offsets: list[tuple[int, int]]
) -> None:
    days(str(tmp_path), *segments)
    assert intervals(str(tmp_path), 3, now_ms=4 * DAY + HOUR) == offsets


def test_a_record_of_the_far_future_behind_an_interval_is_none_of_its_concern_and_costs_nothing(tmp_path: Path) -> None:
    ordinary, odd = [[DAY, DAY + 1], [2 * DAY], [3 * DAY, 3 * DAY + 1]], [[DAY, DAY + 1], [2 * DAY], [3 * DAY, 30_000 * DAY]]
    calls = []
    for name, segments in (("ordinary", ordinary), ("odd", odd)):
        (tmp_path / name).mkdir()
        days(str(tmp_path / name), *segments)
        meter = Meter()
        assert intervals(str(tmp_path / name), 1, 4 * DAY, meter=meter) == [(0, 2)]
        calls.append({verb: counts.calls for verb, counts in meter.snapshot().items()})
    assert calls[0] == calls[1]
