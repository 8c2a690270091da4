"""`tiering restore`: the plan, what it prints, and what it refuses."""

from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from click.testing import Result
from golden_logs import live

from tiering.restore.target import UNFINISHED

Run = Callable[..., Result]
Rows = Callable[..., list[dict[str, Any]]]


def test_a_dry_run_prints_the_segments_that_a_run_then_brings(rows: Rows, archive: str, tmp_path: Path) -> None:
    told = rows("restore", "--archive", archive, "--to", tmp_path / "to", "--dry-run")
    assert not (tmp_path / "to").exists()
    done = rows("restore", "--archive", archive, "--to", tmp_path / "to")
    shown = ("topic", "partition", "segment", "end_offset", "action")
    assert [[row[n] for n in shown] for row in told] == [[row[n] for n in shown] for row in done if row["action"] != "complete"]
    assert {row["action"] for row in told} == {"whole"}
    complete = {row["topic"]: (row["segment"], row["end_offset"]) for row in done if row["action"] == "complete"}
    assert complete["g-trimmed"][0] == live("g-trimmed-0")["earliest"][0]
    assert complete.keys() == {row["topic"] for row in told}


def test_what_was_downloaded_is_told_and_a_second_run_downloads_nothing(rows: Rows, archive: str, tmp_path: Path) -> None:
    first, second = (rows("restore", "--archive", archive, "--to", tmp_path / "to") for _ in range(2))
    assert all(row["downloaded"] >= row["bytes"] for row in first if row["action"] == "whole")
    assert {row["downloaded"] for row in second} == {0, None}


def test_only_the_topics_that_are_asked_for_are_restored(rows: Rows, run: Run, archive: str, tmp_path: Path) -> None:
    found = rows("restore", "--archive", archive, "--to", tmp_path / "to", "--topic", "g-codec-*")
    assert {row["topic"] for row in found} == {"g-codec-lz4", "g-codec-none", "g-codec-snappy"}
    result = run("restore", "--archive", archive, "--to", tmp_path / "to", "--topic", "orders")
    assert result.exit_code == 4
    assert "matches orders; there are: g-appendtime" in result.stderr


def test_a_topic_that_was_deleted_in_the_archive_is_not_found_where_it_is_asked_for(
    rows: Rows, run: Run, archive: str, tmp_path: Path
) -> None:
    url = str(copytree(archive, tmp_path / "own"))
    rows("delete-topic", "--archive", url, "--topic", "g-txn", "--yes")
    to = ("restore", "--archive", url, "--to", tmp_path / "to")
    for dry in ((), ("--dry-run",)):
        result = run(*to, "--topic", "g-txn", *dry)
        assert (result.exit_code, result.stdout) == (4, "")
        assert "nothing of g-txn is in the archive" in result.stderr
    assert not (tmp_path / "to").exists()
    both = run(*to, "--topic", "g-txn", "--topic", "g-big")
    assert both.exit_code == 3
    assert (tmp_path / "to" / "g-big-0").is_dir()
    for others in (run(*to), run(*to, "--topic", "g-t*")):
        assert others.exit_code == 0
        assert others.stderr.count("nothing of g-txn is in the archive") == 1


def test_an_archive_of_deleted_topics_alone_has_nothing_to_restore(rows: Rows, run: Run, broker: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "archive")
    rows("offload", "--log-dir", broker, "--archive", url, "--topic", "g-txn")
    rows("delete-topic", "--archive", url, "--topic", "g-txn", "--yes")
    result = run("restore", "--archive", url, "--to", tmp_path / "to")
    assert result.exit_code == 4
    assert "nothing of g-txn is in the archive" in result.stderr
    assert not (tmp_path / "to").exists()


def test_a_restored_directory_is_read_as_any_other(rows: Rows, archive: str, tmp_path: Path) -> None:
    rows("restore", "--archive", archive, "--to", tmp_path / "to")
    told = rows("fetch", "--log-dir", tmp_path / "to", "--topic", "g-codec-none", "--partition", "0", "--offset", "100")
    assert told == rows("fetch", "--archive", archive, "--topic", "g-codec-none", "--partition", "0", "--offset", "100")
    recovered = rows_of_recover(tmp_path / "to")
    assert {row["topic"]: row["log_end_offset"] for row in recovered}["g-codec-none"] == 1657


def rows_of_recover(folder: Path) -> list[dict[str, Any]]:
    import json

    from click.testing import CliRunner

    from tiering.cli import main

    result = CliRunner().invoke(main, ["log", "recover", str(folder)], catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("option", ["--until-offset", "--until-timestamp"])
def test_a_limit_cuts_the_log_before_it(rows: Rows, archive: str, tmp_path: Path, option: str) -> None:
    topic = ("--topic", "g-codec-none")
    timestamp = rows("fetch", "--archive", archive, *topic, "--partition", "0", "--offset", "1000", "--max-records", "1")[0]
    [offset] = rows("offsets", "--archive", archive, *topic, "--time", timestamp["timestamp"])
    limit = 1000 if option == "--until-offset" else timestamp["timestamp"]
    found = rows("restore", "--archive", archive, "--to", tmp_path / "to", *topic, option, limit)
    assert [row["action"] for row in found] == ["cut", "complete"]
    end = found[-1]["end_offset"]
    assert 900 < end <= (1000 if option == "--until-offset" else offset["offset"])
    got = rows("fetch", "--log-dir", tmp_path / "to", *topic, "--partition", "0", "--offset", end - 1, "--max-records", "9")
    assert [row["offset"] for row in got] == [end - 1]


def test_transactions_that_a_limit_leaves_undecided_are_told(run: Run, whole_archive: str, tmp_path: Path) -> None:
    result = run("restore", "--archive", whole_archive, "--to", tmp_path, "--topic", "g-txn", "--until-offset", 2600)
    assert result.exit_code == 0
    assert "transactions are undecided at the end of the log; abort them (kafka-transactions abort)" in result.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--until-offset", "5", "--until-timestamp", "5"], "not both"),
        (["--cluster-id", "abc"], "give both --cluster-id and --node-id"),
        (["--node-id", "1"], "give both --cluster-id and --node-id"),
        (["--topic-id", "orders"], "is not TOPIC=ID"),
        (["--topic-id", "orders=short"], "is not TOPIC=ID"),
        (["--until-offset", "-1"], "-1"),
    ],
)
def test_options_that_make_no_sense_are_refused(run: Run, archive: str, tmp_path: Path, options: list[str], message: str) -> None:
    result = run("restore", "--archive", archive, "--to", tmp_path / "to", *options)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "to").exists()


def test_properties_are_written_when_they_are_asked_for_and_those_of_another_broker_are_left_alone(
    run: Run, archive: str, tmp_path: Path
) -> None:
    def restore(to: str, *options: object) -> Result:
        return run("restore", "--archive", archive, "--to", tmp_path / to, "--topic", "g-big", *options)

    assert restore("without").exit_code == 0
    assert not (tmp_path / "without" / "meta.properties").exists()
    assert restore("with", "--cluster-id", "abc", "--node-id", 3).exit_code == 0
    assert (tmp_path / "with" / "meta.properties").read_text() == "version=1\ncluster.id=abc\nnode.id=3\n"
    assert restore("with", "--cluster-id", "abc", "--node-id", 3).exit_code == 0
    refused = restore("with", "--cluster-id", "abc", "--node-id", 4)
    assert refused.exit_code == 1
    assert "{'node.id': '3'}, not {'node.id': '4'}" in refused.stderr


def test_a_directory_that_shares_a_folder_with_the_archive_is_refused(run: Run, archive: str) -> None:
    result = run("restore", "--archive", archive, "--to", Path(archive) / "logs")
    assert result.exit_code == 2
    assert "are inside each other" in result.stderr


def test_a_damaged_object_is_told_the_others_are_restored_and_what_to_do_is_said(
    run: Run, rows: Rows, broker: Path, tmp_path: Path
) -> None:
    url = str(tmp_path / "archive")
    rows("offload", "--log-dir", broker, "--archive", url)
    [log] = (tmp_path / "archive").glob("g-big/*/0/segments/*.log")
    log.write_bytes(log.read_bytes()[:-1] + b"x")
    result = run("restore", "--archive", url, "--to", tmp_path / "to")
    assert result.exit_code == 6
    assert "has CRC-32C" in result.stderr
    assert f"{UNFINISHED} contains an incomplete restore; run the same command again" in result.stderr
    assert not (tmp_path / "to" / "g-big-0").exists()
    assert (tmp_path / "to" / "g-txn-0").is_dir()


def test_without_an_archive_nothing_is_made(run: Run, tmp_path: Path) -> None:
    result = run("restore", "--archive", tmp_path / "nothing", "--to", tmp_path / "to")
    assert result.exit_code == 4
    assert not (tmp_path / "to").exists()
