"""`tiering offload`: what is archived, and what becomes of the rest."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copytree
from time import monotonic
from typing import Any

import pytest
from golden_logs import broker_logs, legacy_partitions, partitions
from logs_to_archive import due
from offloaded import Rows, Run, assert_holds_exactly, contents

from remote import archive as archives
from remote.store.open import open_store

STORES = ["folder", "file", "s3", pytest.param("strict s3", marks=pytest.mark.strict_s3)]


@pytest.fixture(params=STORES)
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty place for an archive on each kind of store."""
    if request.param.endswith("s3"):
        bucket = request.getfixturevalue("s3_bucket" if request.param == "s3" else "strict_bucket")
        yield f"s3://{bucket}/some/prefix"
    else:
        yield {"folder": str(tmp_path / "archive"), "file": f"file://{tmp_path}/archive"}[request.param]


def test_every_segment_has_a_row_that_says_what_became_of_it(rows: Rows, broker: Path, url: str) -> None:
    expected = []
    for partition in partitions():
        taken = [base for base, _ in due(broker, partition)]
        for file in sorted((broker / partition).glob("*.log")):
            copied = int(file.stem) in taken
            expected.append(
                {
                    "topic": partition.removesuffix("-0"),
                    "partition": 0,
                    "segment": int(file.stem),
                    "action": "copied" if copied else "keep",
                    "bytes": file.stat().st_size if copied else None,
                    "reason": "" if copied else "active",
                }
            )
    assert rows("offload", "--log-dir", broker, "--archive", url) == expected


def test_only_the_partitions_that_are_named_are_taken(rows: Rows, run: Run, broker: Path, url: str) -> None:
    named = ["--topic-partition", "g-txn-0", "--topic-partition", "g-big-0"]
    given = rows("offload", "--log-dir", broker, "--archive", url, *named)
    assert {row["topic"] for row in given} == {"g-txn", "g-big"}
    assert_holds_exactly(open_store(url), broker, ("g-txn-0", "g-big-0"))
    refused = run("offload", "--log-dir", broker, "--archive", url, "--topic-partition", "g-txn-7", *named)
    assert refused.exit_code == 4
    assert "no partition g-txn-7 there" in refused.stderr
    both = run("offload", "--log-dir", broker, "--archive", url, "--topic", "g-txn", "--topic", "g-big", *named[:2])
    assert both.exit_code == 0
    assert "matches" not in both.stderr  # g-big is there, though its partition is not asked for
    assert run("offload", "--log-dir", broker, "--archive", url, "--topic-partition", "g-txn").exit_code == 2


@pytest.mark.parametrize(("logs", "url"), [("broker", "archive"), ("rolled", "whole_archive")])
def test_what_is_archived_is_what_is_due_byte_for_byte(request: pytest.FixtureRequest, logs: str, url: str) -> None:
    assert_holds_exactly(open_store(request.getfixturevalue(url)), request.getfixturevalue(logs), partitions())


def test_segments_of_older_messages_are_archived_byte_for_byte(rows: Rows, legacy: Path, url: str) -> None:
    given = rows("offload", "--log-dir", legacy, "--archive", url)
    assert {row["action"] for row in given} == {"copied", "keep"}
    assert_holds_exactly(open_store(url), legacy, legacy_partitions())
    assert rows("describe", "--log-dir", legacy, "--archive", url) != []


def test_a_segment_with_an_undecided_transaction_stays(rows: Rows, rolled: Path, url: str) -> None:
    given = rows("offload", "--log-dir", rolled, "--archive", url, "--topic", "g-txn")
    assert [(row["segment"], row["action"], row["reason"]) for row in given] == [
        (0, "copied", ""),
        (102, "copied", ""),
        (2683, "copied", ""),
        (2744, "keep", "reaches past the last stable offset 3671"),
        (3706, "keep", "active"),
    ]


def test_every_store_holds_the_same_and_a_second_offload_adds_nothing(rows: Rows, broker: Path, logs: Path, any_url: str) -> None:
    offload = ("offload", "--log-dir", broker, "--archive", any_url, "--topic", "g-codec-none", "--topic", "g-txn")
    first = rows(*offload)
    store = open_store(any_url)
    assert_holds_exactly(store, logs, ("g-codec-none-0", "g-txn-0"))
    before = contents(store)

    second = rows(*offload)
    assert contents(store) == before
    assert [row["action"] for row in first] == ["copied", "keep", "copied", "copied", "copied", "keep"]
    assert [row["action"] for row in second] == ["archived", "keep", "archived", "archived", "archived", "keep"]


def test_a_limit_of_bytes_a_second_holds_for_what_goes_up(
    rows: Rows, run: Run, broker: Path, logs: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr("remote.clock.SystemClock.sleep", lambda _, seconds: waits.append(seconds))
    offload = ("offload", "--log-dir", broker, "--archive", url, "--topic", "g-txn", "--bytes-per-second")
    given = rows(*offload, 10_000)
    # Nobody really waits, so each wait is for all bytes before it, some 110 s, less what time the test itself takes.
    assert max(waits) > sum(row["bytes"] or 0 for row in given) / 10_000 - 60
    assert_holds_exactly(open_store(url), logs, ("g-txn-0",))
    assert run(*offload, 0).exit_code == 2


def test_a_later_offload_adds_what_has_become_due(rows: Rows, roll: Callable[[Path, str], None], logs: Path, url: str) -> None:
    rows("offload", "--log-dir", logs, "--archive", url)
    before = contents(open_store(url))
    roll(logs, "g-codec-none-0")
    given = rows("offload", "--log-dir", logs, "--archive", url, "--topic", "g-codec-none")
    assert [(row["segment"], row["action"]) for row in given] == [(0, "archived"), (1657, "copied"), (2500, "keep")]
    assert_holds_exactly(open_store(url), logs, ("g-codec-none-0", "g-txn-0"))
    assert before.items() <= contents(open_store(url)).items()


def test_a_partition_without_records_has_nothing_to_archive(
    rows: Rows, roll: Callable[[Path, str], None], tmp_path: Path, url: str
) -> None:
    logs = broker_logs(tmp_path / "logs", "g-empty-0", "g-tiny-0")
    for partition in ("g-empty-0", "g-tiny-0"):
        roll(logs, partition)
    given = rows("offload", "--log-dir", logs, "--archive", url)
    assert [(row["topic"], row["action"]) for row in given] == [("g-empty", "keep"), ("g-tiny", "copied"), ("g-tiny", "keep")]


@pytest.mark.parametrize(
    ("globs", "taken"),
    [
        (["g-codec-*"], {"g-codec-gzip", "g-codec-lz4", "g-codec-none", "g-codec-snappy", "g-codec-zstd"}),
        (["g-t?ny", "g-txn"], {"g-tiny", "g-txn"}),
        (["*compacted"], {"g-compacted"}),
    ],
)
def test_topics_are_picked_by_globs(rows: Rows, broker: Path, url: str, globs: list[str], taken: set[str]) -> None:
    options = [option for glob in globs for option in ("--topic", glob)]
    assert {row["topic"] for row in rows("offload", "--log-dir", broker, "--archive", url, "--dry-run", *options)} == taken
    rows("offload", "--log-dir", broker, "--archive", url, *options)
    store = open_store(url)
    assert set(archives.topics(store)) == taken  # of the others is remembered where they begin
    assert {name for name in taken if archives.newest_manifests(store, name)} == {n for n in taken if due(broker, f"{n}-0")}


def test_a_glob_that_matches_nothing_beside_one_that_does_is_said(run: Run, broker: Path, url: str) -> None:
    globs = ["--topic", "g-tiny", "--topic", "zzz*"]
    result = run("offload", "--log-dir", broker, "--archive", url, *globs)
    assert result.exit_code == 0
    assert "g-tiny" in result.stdout
    first, _made, *totals = result.stderr.splitlines()
    assert first == f"tiering: --topic zzz*: no topic in {broker} matches it"
    assert totals == ["tiering: segments: 1 keep"]


def test_a_table_ends_with_totals_on_standard_error(run: Run, rows: Rows, broker: Path, url: str) -> None:
    given = rows("offload", "--log-dir", broker, "--archive", url, "--dry-run")
    copied = sum(row["action"] == "copy" for row in given)
    taken = sum((broker / p / f"{base:020d}.log").stat().st_size for p in partitions() for base, _ in due(broker, p))
    kept = len(given) - copied
    result = run("offload", "--log-dir", broker, "--archive", url)
    made = f"tiering: created a new archive, {open_store(url).url}\n"
    assert result.stderr == f"{made}tiering: segments: {copied} copied, {kept} keep; {taken} bytes copied\n"
    assert run("offload", "--log-dir", broker, "--archive", url).stderr == f"tiering: segments: {copied} archived, {kept} keep\n"


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_rows_and_archive_are_the_same_whatever_the_number_of_threads(rows: Rows, broker: Path, url: str, threads: int) -> None:
    offload = ("offload", "--log-dir", broker, "--archive", url, "--threads", threads)
    planned = rows(*offload, "--dry-run")
    given = rows(*offload)
    assert [(row["topic"], row["segment"]) for row in given] == [(row["topic"], row["segment"]) for row in planned]
    assert_holds_exactly(open_store(url), broker, partitions())


@pytest.mark.slow
def test_no_more_bytes_a_second_are_sent_than_was_said(rows: Rows, broker: Path, url: str) -> None:
    """A burst of a second's bytes comes first; the rest takes its time, whatever the number of threads."""
    topics = ("--topic", "g-txn", "--topic", "g-big")
    taken = sum((broker / p / f"{base:020d}.log").stat().st_size for p in ("g-txn-0", "g-big-0") for base, _ in due(broker, p))
    rate = taken // 3
    began = monotonic()
    rows("offload", "--log-dir", broker, "--archive", url, *topics, "--threads", 2, "--bytes-per-second", rate)
    assert monotonic() - began >= 1.9


def test_a_dry_run_prints_what_an_offload_will_do_and_writes_nothing(rows: Rows, rolled: Path, url: str, tmp_path: Path) -> None:
    offload = ("offload", "--log-dir", rolled, "--archive", url)
    planned = rows(*offload, "--dry-run")
    assert not Path(url).exists()
    done = rows(*offload)
    assert [{**row, "action": "copied" if row["action"] == "copy" else row["action"]} for row in planned] == [
        {**row, "bytes": None} for row in done
    ]
    before = contents(open_store(url))
    assert rows(*offload, "--dry-run") == rows(*offload)
    assert contents(open_store(url)) == before


def test_a_dry_run_leaves_an_empty_bucket_empty(rows: Rows, broker: Path, s3_bucket: str, s3_client: Any) -> None:
    rows("offload", "--log-dir", broker, "--archive", f"s3://{s3_bucket}", "--dry-run")
    assert "Contents" not in s3_client.list_objects_v2(Bucket=s3_bucket)


def test_json_and_table_have_the_same_rows(run: Run, rows: Rows, broker: Path, url: str) -> None:
    offload = ("offload", "--log-dir", broker, "--archive", url)
    rows(*offload)
    values = rows(*offload)
    assert json.loads(run(*offload, "--output", "json").stdout) == values
    table = run(*offload).stdout.splitlines()
    assert table[0].split() == list(values[0])
    assert len(table) == 1 + len(values)


def test_no_command_touches_the_log_directory(run: Run, fingerprint: Callable[[Path], Any], logs: Path, url: str) -> None:
    (logs / "g-txn-0" / f"{2683:020d}.index").write_bytes(b"short")
    before = fingerprint(logs)
    tiers = ("--log-dir", logs, "--archive", url)
    assert run("offload", *tiers, "--dry-run").exit_code == 0
    assert run("offload", *tiers).exit_code == 0
    assert run("describe", *tiers).exit_code == 0
    for time in ("latest", "max-timestamp", "1700000000000"):
        assert run("offsets", *tiers, "--topic", "g-txn", "--time", time).exit_code == 0
    for isolation in ("read_uncommitted", "read_committed"):
        options = ("--topic", "g-txn", "--partition", 0, "--offset", 0, "--isolation", isolation)
        assert run("fetch", "--log-dir", logs, *options).exit_code == 0
    for what in ("--batches", "--records", "--snapshots"):
        run("log", "dump", logs / "g-txn-0", what)
    assert fingerprint(logs) == before


@pytest.mark.parametrize("lines", [None, "0\n1\nother 0 5\n"])
def test_without_a_high_watermark_nothing_is_archived_or_given_out_and_the_missing_line_is_named(
    run: Run, rows: Rows, logs: Path, url: str, lines: str | None
) -> None:
    checkpoint = logs / "replication-offset-checkpoint"
    checkpoint.unlink()
    if lines is not None:
        checkpoint.write_text(lines)
    given = rows("offload", "--log-dir", logs, "--archive", url, "--topic", "g-txn")
    assert {row["action"] for row in given} == {"keep"}
    assert all(f"{checkpoint} has no line for it" in row["reason"] for row in given[:-1])
    assert given[-1]["reason"] == "active"
    latest = run("offsets", "--log-dir", logs, "--topic", "g-txn")
    assert (latest.exit_code, latest.stdout) == (0, "g-txn:0:0\n")
    fetched = run("fetch", "--log-dir", logs, "--topic", "g-txn", "--partition", 0, "--offset", 100)
    assert (fetched.exit_code, fetched.stdout) == (4, "")
    for said in (latest.stderr, fetched.stderr):
        assert f"{checkpoint} has no line for it; let the broker write that file" in said


def test_a_copy_of_an_archive_reads_like_the_archive(rows: Rows, archive: str, tmp_path: Path) -> None:
    moved = copytree(archive, tmp_path / "moved")
    assert rows("describe", "--archive", moved) == rows("describe", "--archive", archive)


def test_a_schedule_is_told_of_an_archive_that_is_not_there_any_more_and_begins_no_new_one(
    run: Run, broker: Path, url: str, tmp_path: Path
) -> None:
    offload = ("offload", "--log-dir", broker, "--archive", url, "--topic", "g-tiny")
    for extra in ([], ["--dry-run"]):
        refused = run(*offload, "--must-exist", *extra)
        assert refused.exit_code == 4
        assert "no archive there" in refused.stderr
        assert [*open_store(url).list("")] == []
    assert "created a new archive" in run(*offload).stderr
    again = run(*offload, "--must-exist")
    assert again.exit_code == 0
    assert "created a new archive" not in again.stderr
