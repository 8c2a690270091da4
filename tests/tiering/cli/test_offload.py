"""`tiering offload`: what is archived, what is not, and what a refusal says and leaves untouched."""

import json
import os
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from click.testing import Result
from golden_logs import broker_logs, live, partitions

from local_log.errors import Unreadable
from local_log.storage import OsDisk
from remote import archive as archives
from remote.manifest.model import OFFSET_INDEX, PRODUCER_SNAPSHOT, TIME_INDEX, TRANSACTION_INDEX, Manifest
from remote.object_store import ObjectStore
from remote.stores import open_store

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]

FILES = {OFFSET_INDEX: ".index", TIME_INDEX: ".timeindex", TRANSACTION_INDEX: ".txnindex"}
STORES = ["folder", "file", "s3"]


def due(logs: Path, partition: str) -> list[tuple[int, int]]:
    """The segments that an offload takes: inactive, and wholly below the last stable offset."""
    bases = sorted(int(file.stem) for file in (logs / partition).glob("*.log"))
    return [(base, end) for base, end in pairwise(bases) if end <= live(partition)["last_stable_offset"]]


def manifests(store: ObjectStore) -> dict[str, Manifest]:
    return {f"{m.topic}-{m.partition}": m for topic in archives.topics(store) for m in archives.manifests(store, topic)}


def keys(store: ObjectStore) -> list[str]:
    return [meta.key for meta in store.list("")]


def contents(store: ObjectStore) -> dict[str, bytes]:
    return {key: store.get(key) for key in keys(store)}


def assert_holds_exactly(store: ObjectStore, logs: Path, names: tuple[str, ...]) -> None:
    """The manifests name the segments that are due, each object is its file byte for byte, and there is no other object."""
    found = manifests(store)
    expected = {name: due(logs, name) for name in names if due(logs, name)}
    assert {name: [(e.base_offset, e.end_offset) for e in m.entries] for name, m in found.items()} == expected
    named = set()
    for name, manifest in found.items():
        path = manifest.path
        for entry in manifest.entries:
            body = store.get(path.segment(entry.log_name))
            assert body == (logs / name / f"{entry.base_offset:020d}.log").read_bytes()
            assert len(body) == entry.log_size
            aux = store.get(path.segment(entry.aux_name))
            for part, suffix in FILES.items():
                file = logs / name / f"{entry.base_offset:020d}{suffix}"
                where = entry.aux_ranges.get(part)
                assert (aux[where.start : where.end] if where else b"") == (file.read_bytes() if file.exists() else b"")
            where = entry.aux_ranges[PRODUCER_SNAPSHOT]
            assert aux[where.start : where.end] == (logs / name / f"{entry.end_offset:020d}.snapshot").read_bytes()
            named |= {path.segment(entry.log_name), path.segment(entry.aux_name)}
    assert {key for key in keys(store) if "/segments/" in key} == named


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two partitions of its own for a test that damages them."""
    return broker_logs(tmp_path / "logs", "g-codec-none-0", "g-txn-0")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A folder that is not there yet."""
    return str(tmp_path / "archive")


@pytest.fixture(params=STORES)
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty place for an archive on each kind of store."""
    if request.param == "s3":
        yield f"s3://{request.getfixturevalue('s3_bucket')}/some/prefix"
    else:
        yield {"folder": str(tmp_path / "archive"), "file": f"file://{tmp_path}/archive"}[request.param]


def flip(file: Path, position: int) -> Callable[[], None]:
    """Flips a bit, and gives what flips it back."""
    body = bytearray(file.read_bytes())
    body[position] ^= 1
    file.write_bytes(body)

    def back() -> None:
        body[position] ^= 1
        file.write_bytes(body)

    return back


# What is taken


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


@pytest.mark.parametrize(("logs", "url"), [("broker", "archive"), ("rolled", "whole_archive")])
def test_what_is_archived_is_what_is_due_byte_for_byte(request: pytest.FixtureRequest, logs: str, url: str) -> None:
    assert_holds_exactly(open_store(request.getfixturevalue(url)), request.getfixturevalue(logs), partitions())


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
    assert set(archives.topics(open_store(url))) == {name for name in taken if due(broker, f"{name}-0")}


def test_a_glob_that_matches_nothing_beside_one_that_does_is_said(run: Run, broker: Path, url: str) -> None:
    globs = ["--topic", "g-tiny", "--topic", "zzz*"]
    result = run("offload", "--log-dir", broker, "--archive", url, *globs)
    assert result.exit_code == 0
    assert "g-tiny" in result.stdout
    assert result.stderr == f"tiering: --topic zzz*: no topic in {broker} matches it\n"


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
    assert run("offload", *tiers).exit_code == 6
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


# What is refused


def test_a_flipped_bit_has_its_segment_refused_and_named_and_the_others_taken(run: Run, rows: Rows, logs: Path, url: str) -> None:
    damaged = logs / "g-txn-0" / f"{102:020d}.log"
    repair = flip(damaged, 500_000)
    result = run("offload", "--log-dir", logs, "--archive", url, "--output", "jsonl")
    given = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 6
    assert [row["action"] for row in given] == ["copied", "keep", "copied", "refused", "copied", "keep"]
    assert f"{damaged} at byte " in given[3]["reason"]
    assert given[3]["bytes"] is None
    assert given[3]["reason"] in result.stderr

    store = open_store(url)
    assert [(e.base_offset, e.end_offset) for e in manifests(store)["g-txn-0"].entries] == [(0, 102), (2683, 2744)]
    assert not [key for key in keys(store) if f"/segments/{102:020d}-" in key]
    (gap,) = manifests(store)["g-txn-0"].gaps
    assert (gap.start, gap.end) == (102, 2683)
    assert str(damaged) in gap.reason

    repair()
    again = rows("offload", "--log-dir", logs, "--archive", url)
    assert [row["action"] for row in again] == ["archived", "keep", "archived", "copied", "archived", "keep"]
    assert_holds_exactly(store, logs, ("g-codec-none-0", "g-txn-0"))
    assert manifests(store)["g-txn-0"].gaps == ()


def test_every_byte_of_a_batch_is_guarded(run: Run, tmp_path: Path, roll: Callable[[Path, str], None], url: str) -> None:
    logs = broker_logs(tmp_path / "logs", "g-tiny-0")
    roll(logs, "g-tiny-0")
    file = logs / "g-tiny-0" / f"{0:020d}.log"
    leader_epoch = range(12, 16)  # the leader's to fill in, and so outside the checksum
    for position in set(range(file.stat().st_size)).difference(leader_epoch):
        repair = flip(file, position)
        result = run("offload", "--log-dir", logs, "--archive", url, "--output", "jsonl")
        assert result.exit_code == 6, position
        assert str(file) in result.stderr
        assert keys(open_store(url)) == ["archive.json"]
        repair()


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
@pytest.mark.parametrize("cut", [1, 5])
def test_a_file_that_is_cut_has_its_segment_refused_and_named(run: Run, logs: Path, url: str, suffix: str, cut: int) -> None:
    damaged = logs / "g-txn-0" / f"{102:020d}{suffix}"
    os.truncate(damaged, damaged.stat().st_size - cut)
    result = run("offload", "--log-dir", logs, "--archive", url, "--output", "jsonl")
    actions = [json.loads(line)["action"] for line in result.stdout.splitlines()]
    assert (result.exit_code, actions) == (6, ["copied", "keep", "copied", "refused", "copied", "keep"])
    assert f"{damaged} at byte " in result.stderr
    assert not [key for key in keys(open_store(url)) if f"/segments/{102:020d}-" in key]


@pytest.mark.parametrize("offset_and_suffix", ["2744.txnindex", "102.txnindex", "102.snapshot", "2683.snapshot"])
def test_no_broken_file_beside_a_segment_reaches_the_archive(
    run: Run, roll: Callable[[Path, str], None], logs: Path, url: str, offset_and_suffix: str
) -> None:
    offset, suffix = offset_and_suffix.split(".")
    damaged = logs / "g-txn-0" / f"{int(offset):020d}.{suffix}"
    os.truncate(damaged, damaged.stat().st_size - 1)
    result = run("offload", "--log-dir", logs, "--archive", url)
    assert result.exit_code == 6
    assert f"{damaged} at byte " in result.stderr


def test_a_folder_that_the_system_does_not_give_is_refused_and_the_others_are_taken(
    run: Run, monkeypatch: pytest.MonkeyPatch, logs: Path, url: str
) -> None:
    closed, names = str(logs / "g-codec-none-0"), OsDisk.names

    def names_of(disk: OsDisk, folder: str) -> list[str]:
        if folder == closed:
            raise Unreadable(f"{folder}: Permission denied; mend it, then try again")
        return names(disk, folder)

    monkeypatch.setattr(OsDisk, "names", names_of)
    result = run("offload", "--log-dir", logs, "--archive", url, "--output", "jsonl")
    given = [json.loads(line) for line in result.stdout.splitlines()]
    assert (result.exit_code, [row["action"] for row in given]) == (3, ["refused", "copied", "copied", "copied", "keep"])
    assert (given[0]["topic"], given[0]["partition"], given[0]["segment"]) == ("g-codec-none", 0, None)
    assert closed in given[0]["reason"]
    assert closed in result.stderr


def old_message(offset: int) -> bytes:
    """A message of magic 1 as brokers before 0.11 wrote them."""
    tail = struct.pack(">bbqii", 1, 0, 1_000, -1, 60) + b"v" * 60
    return struct.pack(">qiI", offset, 4 + len(tail), zlib.crc32(tail)) + tail


def test_a_single_segment_of_older_messages_is_nothing_to_do(rows: Rows, tmp_path: Path, url: str) -> None:
    logs = broker_logs(tmp_path / "logs", "g-tiny-0")
    (logs / "g-tiny-0" / f"{0:020d}.log").write_bytes(old_message(0))
    (given,) = rows("offload", "--log-dir", logs, "--archive", url)
    assert (given["segment"], given["action"], given["reason"]) == (0, "keep", "active")


def test_inactive_segments_of_older_messages_are_refused_and_are_no_corruption(
    run: Run, roll: Callable[[Path, str], None], logs: Path, url: str
) -> None:
    file = logs / "g-codec-none-0" / f"{0:020d}.log"
    file.write_bytes(b"".join(old_message(offset) for offset in range(1657)))
    roll(logs, "g-codec-none-0")
    result = run("offload", "--log-dir", logs, "--archive", url, "--output", "jsonl")
    given = [json.loads(line) for line in result.stdout.splitlines() if "g-codec-none" in line]
    assert result.exit_code == 3
    assert [row["action"] for row in given] == ["refused", "copied", "keep"]
    assert f"{file} at byte 0: message format v1 is not read yet" in result.stderr
    alone = run("offload", "--log-dir", logs, "--archive", url, "--topic", "g-codec-none")
    assert alone.exit_code == 1


def test_an_index_that_is_missing_has_its_segment_refused_and_named(run: Run, logs: Path, url: str) -> None:
    missing = logs / "g-txn-0" / f"{102:020d}.index"
    missing.unlink()
    result = run("offload", "--log-dir", logs, "--archive", url)
    assert result.exit_code == 6
    assert str(missing) in result.stderr


def test_a_refusal_ends_the_process_with_its_code_and_keeps_data_and_messages_apart(logs: Path, url: str) -> None:
    flip(logs / "g-codec-none-0" / f"{0:020d}.log", 1000)
    command = [sys.executable, "-m", "tiering", "offload", "--log-dir", str(logs), "--archive", url, "--output", "jsonl"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 6
    assert [json.loads(line)["action"] for line in ran.stdout.splitlines()].count("refused") == 1
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("output", ["table", "json", "jsonl"])
@pytest.mark.parametrize("reader", ["gone", "full"])
def test_what_is_due_is_archived_though_nobody_reads_the_answer(logs: Path, url: str, output: str, reader: str) -> None:
    flip(logs / "g-codec-none-0" / f"{0:020d}.log", 1000)
    command = [sys.executable, "-m", "tiering", "offload", "--log-dir", str(logs), "--archive", url, "--output", output]
    if reader == "gone":
        reading, writing = os.pipe()
        os.close(reading)
    else:
        writing = os.open("/dev/full", os.O_WRONLY)
    ran = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert ran.returncode not in (0, 6)
    assert f"{0:020d}.log at byte" in ran.stderr
    assert [(e.base_offset, e.end_offset) for e in manifests(open_store(url))["g-txn-0"].entries] == due(logs, "g-txn-0")


def test_what_is_due_is_archived_though_nobody_reads_the_messages(logs: Path, url: str) -> None:
    flip(logs / "g-codec-none-0" / f"{0:020d}.log", 1000)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "tiering", "offload", "--log-dir", str(logs), "--archive", url]
    subprocess.run(command, stdout=writing, stderr=writing)
    os.close(writing)
    assert [(e.base_offset, e.end_offset) for e in manifests(open_store(url))["g-txn-0"].entries] == due(logs, "g-txn-0")


def test_topics_that_match_nothing_are_not_found_and_nothing_is_written(run: Run, broker: Path, url: str) -> None:
    for extra in ([], ["--dry-run"]):
        missing = run("offload", "--log-dir", broker, "--archive", url, "--topic", "g-nowhere*", *extra)
        assert (missing.exit_code, missing.stdout) == (4, "")
        assert "g-nowhere*" in missing.stderr
        assert not Path(url).exists()


def test_a_log_directory_that_is_not_there_is_not_found_and_nothing_is_written(run: Run, tmp_path: Path, url: str) -> None:
    missing = run("offload", "--log-dir", tmp_path / "nowhere", "--archive", url)
    assert missing.exit_code == 4
    assert str(tmp_path / "nowhere") in missing.stderr
    assert not Path(url).exists()


@pytest.mark.parametrize("extra", [["--topics", "a"], ["--dryrun"], ["--output", "yaml"], ["more"]])
def test_an_option_that_does_not_exist_is_a_usage_error_and_nothing_is_written(
    run: Run, broker: Path, url: str, extra: list[str]
) -> None:
    refused = run("offload", "--log-dir", broker, "--archive", url, *extra)
    assert refused.exit_code == 2
    assert extra[-1] in refused.stderr or extra[0] in refused.stderr
    assert not Path(url).exists()


@pytest.mark.parametrize(
    ("address", "remedy"),
    [
        ("s3://", "s3://bucket/prefix"),
        ("gopher://hole/prefix", "s3://"),
        ("s3://bucket/a//b", "relative names"),
        ("file://host/folder", "file:///"),
        ("s3://user:secret@bucket/prefix", "environment"),
    ],
)
def test_an_address_that_names_no_store_is_refused_with_what_would_do(run: Run, broker: Path, address: str, remedy: str) -> None:
    refused = run("offload", "--log-dir", broker, "--archive", address)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert remedy in refused.stderr
    assert "secret" not in refused.stderr


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize("option", ["--archive", "--log-dir"])
@pytest.mark.parametrize("command", ["offload", "describe", "offsets", "fetch"])
def test_an_option_that_names_nothing_is_a_usage_error_that_names_the_option(
    run: Run, archive: str, broker: Path, command: str, option: str, empty: str
) -> None:
    more = {"offsets": ["--topic", "a"], "fetch": ["--topic", "a", "--partition", 0, "--offset", 0]}.get(command, [])
    refused = run(command, "--archive", archive, "--log-dir", broker, *more, option, empty)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert option in refused.stderr


@pytest.mark.parametrize("command", ["offsets", "fetch"])
def test_a_topic_without_a_name_is_a_usage_error(run: Run, broker: Path, command: str) -> None:
    more = ["--partition", 0, "--offset", 0] if command == "fetch" else []
    refused = run(command, "--log-dir", broker, "--topic", "", *more)
    assert refused.exit_code == 2
    assert "--topic" in refused.stderr


@pytest.mark.parametrize("address", ["memory://", "memory://archive", "MEMORY://archive", "simplecache::memory://archive"])
@pytest.mark.parametrize("command", ["offload", "describe"])
def test_an_archive_that_ends_with_the_process_is_a_usage_error(run: Run, broker: Path, command: str, address: str) -> None:
    refused = run(command, "--log-dir", broker, "--archive", address)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--archive" in refused.stderr
    assert "s3://bucket/prefix" in refused.stderr


@pytest.mark.parametrize("extra", [[], ["--dry-run"]], ids=["offload", "dry run"])
@pytest.mark.parametrize(
    "place",
    ["{logs}", "{logs}/", "{logs}/archive", "{logs}/g-txn-0", "{logs}/..", "file://{logs}/archive", "/", "{link}", "{link}/a/b"],
)
def test_an_archive_that_shares_a_folder_with_the_log_directory_is_a_usage_error_and_nothing_is_written(
    run: Run, fingerprint: Callable[[Path], Any], logs: Path, tmp_path: Path, place: str, extra: list[str]
) -> None:
    (tmp_path / "link").symlink_to(logs)
    before = fingerprint(tmp_path)
    refused = run("offload", "--log-dir", logs, "--archive", place.format(logs=logs, link=tmp_path / "link"), *extra)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--archive" in refused.stderr
    assert fingerprint(tmp_path) == before


def test_a_log_directory_behind_a_link_into_the_archive_is_a_usage_error(run: Run, logs: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(logs)
    assert run("offload", "--log-dir", tmp_path / "link", "--archive", logs / "archive").exit_code == 2


def test_an_archive_beside_the_log_directory_may_have_the_same_beginning(rows: Rows, logs: Path) -> None:
    assert rows("offload", "--log-dir", logs, "--archive", f"{logs}-archive")


def test_a_bucket_that_is_not_there_is_refused_with_its_name(run: Run, broker: Path, s3_server: str) -> None:
    refused = run("offload", "--log-dir", broker, "--archive", "s3://no-such-bucket/prefix")
    assert refused.exit_code == 1
    assert "no-such-bucket" in refused.stderr


# What a newer version wrote


@pytest.mark.parametrize("extra", [[], ["--dry-run"]], ids=["offload", "dry run"])
def test_an_archive_of_a_newer_format_asks_for_an_upgrade_and_stays_as_it_is(
    run: Run, broker: Path, url: str, extra: list[str]
) -> None:
    store = open_store(url)
    store.put_if_absent("archive.json", b'{"format": {"major": 2, "minor": 0}, "created_at_ms": 0}\n')
    before = contents(store)
    refused = run("offload", "--log-dir", broker, "--archive", url, *extra)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "archive.json" in refused.stderr
    assert "upgrade" in refused.stderr
    assert contents(store) == before


def newer_manifest(store: ObjectStore, name: str) -> str:
    """Commits a version of the next format behind a partition's newest, and gives its key."""
    manifest = manifests(store)[name]
    path = manifest.path
    value = json.loads(store.get(path.manifest(manifest.version)))
    value |= {"format": {"major": 2, "minor": 0}, "version": manifest.version + 1}
    key = path.manifest(manifest.version + 1)
    store.put_if_absent(key, json.dumps(value).encode())
    return key


@pytest.mark.parametrize("extra", [[], ["--dry-run"]], ids=["offload", "dry run"])
def test_a_manifest_of_a_newer_format_asks_for_an_upgrade_and_stays_as_it_is(
    run: Run, rows: Rows, roll: Callable[[Path, str], None], logs: Path, url: str, extra: list[str]
) -> None:
    rows("offload", "--log-dir", logs, "--archive", url)
    store = open_store(url)
    key = newer_manifest(store, "g-codec-none-0")
    before = contents(store)
    roll(logs, "g-codec-none-0")
    refused = run("offload", "--log-dir", logs, "--archive", url, "--topic", "g-codec-none", *extra)
    assert refused.exit_code == 1
    assert key in refused.stderr
    assert "upgrade" in refused.stderr
    assert contents(store) == before


def test_what_was_copied_before_a_manifest_of_a_newer_format_was_met_has_its_rows(
    run: Run, rows: Rows, roll: Callable[[Path, str], None], logs: Path, url: str
) -> None:
    rows("offload", "--log-dir", logs, "--archive", url)
    newer_manifest(open_store(url), "g-txn-0")
    roll(logs, "g-codec-none-0")
    for output in ("jsonl", "json", "table"):
        result = run("offload", "--log-dir", logs, "--archive", url, "--output", output)
        assert result.exit_code in (1, 3)
        assert "upgrade" in result.stderr
        assert "g-codec-none" in result.stdout, output


@pytest.mark.parametrize("command", ["describe", "offsets", "fetch"])
def test_readers_too_ask_for_an_upgrade(run: Run, url: str, command: str) -> None:
    open_store(url).put_if_absent("archive.json", b'{"format": {"major": 2, "minor": 0}}')
    options = {"describe": [], "offsets": ["--topic", "a"], "fetch": ["--topic", "a", "--partition", 0, "--offset", 0]}
    refused = run(command, "--archive", url, *options[command])
    assert refused.exit_code == 1
    assert "upgrade" in refused.stderr


# A store that does not keep its word


class IgnoresIfNoneMatch:
    """An S3 server that never learns of the condition, as some that only resemble S3 do not."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.turn = threading.Lock()

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        environ.pop("HTTP_IF_NONE_MATCH", None)
        with self.turn:
            return list(self.application(environ, start_response))


@pytest.fixture
def careless_server(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has boto3 talk to a server in front of the same buckets that ignores If-None-Match."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    application = IgnoresIfNoneMatch(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, name="careless-s3-server")
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.usefixtures("careless_server")
def test_a_store_that_ignores_the_condition_is_refused_before_anything_is_there(
    run: Run, broker: Path, s3_bucket: str, s3_client: Any
) -> None:
    refused = run("offload", "--log-dir", broker, "--archive", f"s3://{s3_bucket}/prefix")
    assert refused.exit_code == 1
    assert "If-None-Match" in refused.stderr
    assert f"s3://{s3_bucket}/prefix" in refused.stderr
    assert "Contents" not in s3_client.list_objects_v2(Bucket=s3_bucket)


def test_a_copy_of_an_archive_reads_like_the_archive(rows: Rows, archive: str, tmp_path: Path) -> None:
    moved = copytree(archive, tmp_path / "moved")
    assert rows("describe", "--archive", moved) == rows("describe", "--archive", archive)
