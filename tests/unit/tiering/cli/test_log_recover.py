"""`tiering log recover`: a partition's folder, or a whole log directory, brought in order."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from golden_logs import broker_logs, live

from local_log.os_disk import OsWritableDisk

Run = Callable[..., Result]
SMALL_INDEXES = ("-c", "segment.index.bytes=65536")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Golden logs that anything may be done to."""
    return broker_logs(tmp_path, "g-txn-0", "g-trimmed-0", "g-tiny-0")


def recovered(result: Result) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    return {f"{row['topic']}-{row['partition']}": row for row in rows}


def test_a_whole_log_directory_is_a_line_a_partition_and_cleanly_stopped_in_the_end(run: Run, logs: Path) -> None:
    (logs / ".kafka_cleanshutdown").unlink()
    result = run("log", "recover", logs, *SMALL_INDEXES)
    assert (result.exit_code, result.stderr) == (0, "")
    rows = recovered(result)
    assert list(rows) == ["g-tiny-0", "g-trimmed-0", "g-txn-0"]
    assert (rows["g-trimmed-0"]["log_start_offset"], rows["g-trimmed-0"]["log_end_offset"]) == (1234, 3000)
    assert (rows["g-txn-0"]["high_watermark"], rows["g-txn-0"]["last_stable_offset"]) == (3706, 3671)
    assert (logs / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":-1}'
    assert not (logs / ".lock").exists()


def test_of_a_clean_stop_the_broker_s_epoch_is_kept(run: Run, logs: Path) -> None:
    run("log", "recover", logs, *SMALL_INDEXES)
    assert (logs / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":58}'


def test_a_torn_end_is_cut_off(run: Run, logs: Path) -> None:
    (logs / ".kafka_cleanshutdown").unlink()
    with (logs / "g-tiny-0" / "00000000000000000000.log").open("ab") as file:
        file.write(b"torn")
    assert recovered(run("log", "recover", logs, *SMALL_INDEXES))["g-tiny-0"]["segments"] == [[0, 75]]


def test_the_high_watermarks_stay_what_the_broker_has_written_down(run: Run, logs: Path) -> None:
    (logs / "replication-offset-checkpoint").write_text("0\n1\ng-txn 0 100\n")
    assert recovered(run("log", "recover", logs, *SMALL_INDEXES))["g-txn-0"]["high_watermark"] == 100
    assert "g-txn 0 100\n" in (logs / "replication-offset-checkpoint").read_text()


def test_a_damaged_partition_is_named_and_stops_no_other(run: Run, logs: Path) -> None:
    (logs / "g-tiny-0" / "partition.metadata").write_text("")
    result = run("log", "recover", logs, *SMALL_INDEXES)
    assert result.exit_code == 6
    assert list(recovered(result)) == ["g-trimmed-0", "g-txn-0"]
    assert f"{logs}/g-tiny-0 could not be opened, the others were: {logs}/g-tiny-0/partition.metadata at byte 0" in result.stderr
    assert not (logs / ".kafka_cleanshutdown").exists()


def test_what_was_left_alone_and_what_was_taken_for_empty_is_said(run: Run, logs: Path) -> None:
    (logs / "gone-0.0123456789abcdef-stray").mkdir()
    (logs / "recovery-point-offset-checkpoint").write_text("damaged")
    result = run("log", "recover", logs, *SMALL_INDEXES)
    assert result.exit_code == 0
    assert "recovery-point-offset-checkpoint at byte 0" in result.stderr
    assert "gone-0.0123456789abcdef-stray: a stray log; left alone" in result.stderr


def test_a_directory_that_is_in_use_is_refused(run: Run, logs: Path) -> None:
    disk = OsWritableDisk()
    assert disk.lock(f"{logs}/.lock")
    result = run("log", "recover", logs)
    disk.unlock(f"{logs}/.lock")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "is using this log directory" in result.stderr


@pytest.mark.parametrize("option", [["--clean-shutdown"], ["--log-start-offset", "0"], ["--recovery-point", "0"]])
def test_what_the_checkpoint_files_say_cannot_be_said_of_a_whole_directory(run: Run, logs: Path, option: list[str]) -> None:
    result = run("log", "recover", logs, *option)
    assert result.exit_code == 2
    assert "is a whole log directory" in result.stderr


def test_a_tiered_log_keeps_its_start_below_its_first_segment(run: Run, logs: Path) -> None:
    first = sorted((logs / "g-txn-0").glob("*.log"))[:2]
    for file in first:
        file.unlink()
    (logs / "log-start-offset-checkpoint").write_text("0\n1\ng-txn 0 5\n")
    assert recovered(run("log", "recover", logs, *SMALL_INDEXES))["g-txn-0"]["log_start_offset"] == 5
    assert (logs / "log-start-offset-checkpoint").read_text() == "0\n1\ng-txn 0 5\n"


def test_a_directory_of_partitions_without_any_other_file_is_a_log_directory_too(run: Run, tmp_path: Path) -> None:
    logs = broker_logs(tmp_path, "g-tiny-0")
    for file in logs.iterdir():
        if file.is_file():
            file.unlink()
    assert list(recovered(run("log", "recover", logs, *SMALL_INDEXES))) == ["g-tiny-0"]


@pytest.mark.parametrize("partition", ["g-txn-0", "g-tiny-0"])
def test_a_single_partition_is_one_object_as_its_broker_saw_it(run: Run, logs: Path, partition: str) -> None:
    result = run("log", "recover", logs / partition, *SMALL_INDEXES)
    assert result.exit_code == 0
    state = json.loads(result.stdout)
    assert "topic" not in state
    assert state["log_end_offset"] == live(partition)["latest"][0]
    assert not (logs / ".lock").exists()


@pytest.mark.slow
def test_a_terminal_is_shown_how_far_it_is(logs: Path) -> None:
    (logs / ".kafka_cleanshutdown").unlink()
    terminal, end = pty.openpty()
    command = [sys.executable, "-m", "tiering", "log", "recover", logs, *SMALL_INDEXES]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=end, text=True)
    os.close(end)
    shown = os.read(terminal, 1 << 20).decode()
    os.close(terminal)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 3
    assert "Opening logs [################        ] 2/3" in shown
    assert "] 3/3 " in shown
    assert "1 of 1 segments left" in shown
