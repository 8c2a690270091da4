"""`tiering offload` of what is damaged or cannot be read: what is refused, what is still archived, and what is said."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from golden_logs import broker_logs, expected_batches, legacy_logs
from logs_to_archive import due
from offloaded import Rows, Run, assert_holds_exactly, flip, keys, manifests

from local_log.errors import Unreadable
from local_log.os_disk import OsDisk
from remote.store.open import open_store


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
        assert not [key for key in keys(open_store(url)) if "/segments/" in key]
        repair()


@pytest.mark.parametrize("cut", [1, 5])
def test_a_log_that_is_cut_has_its_segment_refused_and_named(run: Run, logs: Path, url: str, cut: int) -> None:
    damaged = logs / "g-txn-0" / f"{102:020d}.log"
    os.truncate(damaged, damaged.stat().st_size - cut)
    result = run("offload", "--log-dir", logs, "--archive", url, "--output", "jsonl")
    actions = [json.loads(line)["action"] for line in result.stdout.splitlines()]
    assert (result.exit_code, actions) == (6, ["copied", "keep", "copied", "refused", "copied", "keep"])
    assert f"{damaged} at byte " in result.stderr
    assert not [key for key in keys(open_store(url)) if f"/segments/{102:020d}-" in key]


@pytest.mark.parametrize("how", ["cut", "missing"])
@pytest.mark.parametrize("offset_and_suffix", ["102.index", "102.timeindex", "102.txnindex", "102.snapshot", "2683.snapshot"])
@pytest.mark.slow
def test_a_broken_file_beside_a_segment_is_made_anew_and_its_row_says_so(
    rows: Rows, roll: Callable[[Path, str], None], logs: Path, url: str, offset_and_suffix: str, how: str
) -> None:
    offset, suffix = offset_and_suffix.split(".")
    damaged = logs / "g-txn-0" / f"{int(offset):020d}.{suffix}"
    if how == "cut":
        os.truncate(damaged, damaged.stat().st_size - 1)
    else:
        damaged.unlink()
    given = rows("offload", "--log-dir", logs, "--archive", url, "--topic", "g-txn")
    assert [row["action"] for row in given] == ["copied", "copied", "copied", "keep"]
    (mended,) = [row["reason"] for row in given if row["action"] == "copied" and row["reason"]]
    assert f"{damaged}" in mended
    assert "rebuilt" in mended


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


def test_a_flipped_bit_in_an_older_message_has_its_segment_refused_and_named(run: Run, tmp_path: Path, url: str) -> None:
    logs = legacy_logs(tmp_path / "logs", "g-v1-none-create-0")
    bad = next(line for line in expected_batches("g-v1-none-create-0") if line["base_offset"] == 40)
    flip(logs / "g-v1-none-create-0" / bad["segment"], bad["position"] + bad["size"] - 1)
    result = run("offload", "--log-dir", logs, "--archive", url, "--output", "jsonl")
    given = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 6
    assert [row["action"] for row in given].count("refused") == 1
    assert f"{bad['segment']} at byte {bad['position']}: batch of offsets 40 to 40 has CRC-32 " in result.stderr


@pytest.mark.slow
def test_a_refusal_ends_the_process_with_its_code_and_keeps_data_and_messages_apart(logs: Path, url: str) -> None:
    flip(logs / "g-codec-none-0" / f"{0:020d}.log", 1000)
    command = [sys.executable, "-m", "tiering", "offload", "--log-dir", str(logs), "--archive", url, "--output", "jsonl"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 6
    assert [json.loads(line)["action"] for line in ran.stdout.splitlines()].count("refused") == 1
    made, refused = ran.stderr.splitlines()
    assert "created a new archive" in made
    assert f"{0:020d}.log at byte" in refused


@pytest.mark.parametrize(("reader", "output"), [("gone", "jsonl"), ("full", "table"), ("full", "json")])
@pytest.mark.slow
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


@pytest.mark.slow
def test_what_is_due_is_archived_though_nobody_reads_the_messages(logs: Path, url: str) -> None:
    flip(logs / "g-codec-none-0" / f"{0:020d}.log", 1000)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "tiering", "offload", "--log-dir", str(logs), "--archive", url]
    subprocess.run(command, stdout=writing, stderr=writing)
    os.close(writing)
    assert [(e.base_offset, e.end_offset) for e in manifests(open_store(url))["g-txn-0"].entries] == due(logs, "g-txn-0")
