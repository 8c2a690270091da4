"""The options that the jobs share: what they ask for, and how they are refused."""

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from made_archive import made

from remote.store.api import ObjectStore
from remote.store.folder.store import FolderStore
from spark_jobs.common.arguments import given_options, interval_options, topics_of
from spark_jobs.errors import OptionError


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
