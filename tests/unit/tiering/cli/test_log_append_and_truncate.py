"""`tiering log append` and `tiering log truncate`: what they answer, and what they refuse."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest
from click.testing import Result
from golden_logs import expected_batches

from tiering.log_tools import dump

Run = Callable[..., Result]

FIELDS = ["log_start_offset", "log_end_offset", "last_stable_offset", "high_watermark", "latest_epoch", "segments", "producers"]


def test_a_follower_s_copy_has_the_same_batches(run: Run, broker: Path, tmp_path: Path) -> None:
    result = run("log", "append", broker / "g-txn-0", tmp_path / "copy-0", "--follower", "-c", "segment.bytes=1048576")
    state = json.loads(result.stdout)
    assert list(state) == FIELDS
    expected = expected_batches("g-txn-0")
    assert [b["crc"] for b in dump.batches(str(tmp_path / "copy-0"))] == [b["crc"] for b in expected]
    assert state["log_end_offset"] == expected[-1]["last_offset"] + 1
    assert state["last_stable_offset"] < state["high_watermark"] == state["log_end_offset"]


def test_a_leader_s_copy_has_new_offsets_and_its_epoch(run: Run, broker: Path, tmp_path: Path) -> None:
    result = run("log", "append", broker / "g-epochs-0", tmp_path / "copy-0", "--leader-epoch", 7)
    assert json.loads(result.stdout)["latest_epoch"] == 7
    assert {b["leader_epoch"] for b in dump.batches(str(tmp_path / "copy-0"))} == {7}


def test_one_of_both_roles_has_to_be_said(run: Run, broker: Path, tmp_path: Path) -> None:
    for words in ([], ["--follower", "--leader-epoch", 1]):
        result = run("log", "append", broker / "g-tiny-0", tmp_path / "copy-0", *words)
        assert (result.exit_code, "--follower or --leader-epoch" in result.stderr) == (2, True)
    assert not (tmp_path / "copy-0").exists()


def test_a_damaged_batch_is_named_with_its_file_and_position_and_is_corruption(run: Run, broker: Path, tmp_path: Path) -> None:
    source = copytree(broker / "g-codec-none-0", tmp_path / "source-0")
    bad = expected_batches("g-codec-none-0")[5]
    file = source / bad["segment"]
    body = bytearray(file.read_bytes())
    body[bad["position"] + bad["size"] - 1] ^= 1
    file.write_bytes(body)
    result = run("log", "append", source, tmp_path / "copy-0", "--follower")
    assert result.exit_code == 6
    assert f"{file} at byte {bad['position']}: " in result.stderr


def test_an_append_below_the_log_s_end_is_refused_with_the_batch_s_place(run: Run, broker: Path, tmp_path: Path) -> None:
    run("log", "append", broker / "g-tiny-0", tmp_path / "copy-0", "--follower")
    result = run("log", "append", broker / "g-tiny-0", tmp_path / "copy-0", "--follower")
    assert result.exit_code == 1
    assert f"{broker / 'g-tiny-0'}/{0:020d}.log at byte 0: " in result.stderr


def test_the_source_may_be_read_only(run: Run, broker: Path, tmp_path: Path) -> None:
    source = copytree(broker / "g-tiny-0", tmp_path / "source-0")
    for file in source.iterdir():
        file.chmod(0o444)
    assert run("log", "append", source, tmp_path / "copy-0", "--follower").exit_code == 0


def test_truncation_keeps_what_is_below_the_offset(run: Run, broker: Path, tmp_path: Path) -> None:
    folder = copytree(broker / "g-codec-lz4-0", tmp_path / "g-codec-lz4-0")
    batches = expected_batches("g-codec-lz4-0")
    at = batches[len(batches) // 2]["base_offset"]
    result = run("log", "truncate", folder, at, "-c", "segment.bytes=1048576")
    assert json.loads(result.stdout)["log_end_offset"] == at
    assert [b["crc"] for b in dump.batches(str(folder))] == [b["crc"] for b in batches if b["base_offset"] < at]


@pytest.mark.parametrize("words", [["truncate", 5], ["recover"]])
def test_a_folder_that_is_not_there_is_not_made(run: Run, tmp_path: Path, words: list[object]) -> None:
    result = run("log", words[0], tmp_path / "typo-0", *words[1:])
    assert result.exit_code == 4
    assert not (tmp_path / "typo-0").exists()


def test_an_offset_below_0_and_a_setting_that_is_none_are_refused(run: Run, broker: Path, tmp_path: Path) -> None:
    folder = copytree(broker / "g-tiny-0", tmp_path / "g-tiny-0")
    assert run("log", "truncate", folder, "--", -1).exit_code == 2
    result = run("log", "truncate", folder, 0, "-c", "segment.byte=1")
    assert (result.exit_code, "segment.bytes" in result.stderr) == (2, True)


def test_a_folder_of_a_log_directory_that_somebody_has_is_left_alone(run: Run, broker: Path, tmp_path: Path) -> None:
    folder = copytree(broker / "g-tiny-0", tmp_path / "g-tiny-0")
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / ".lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        refused = run("log", "truncate", folder, 0)
        holder.communicate("\n")
    assert (refused.exit_code, "stop it first" in refused.stderr) == (1, True)
    assert run("log", "truncate", folder, 0).exit_code == 0
