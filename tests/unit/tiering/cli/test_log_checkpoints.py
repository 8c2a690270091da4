"""What `tiering log append`, `recover` and `truncate` leave in the log directory's checkpoint files and in partition.metadata."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from click.testing import Result
from golden_logs import broker_logs
from managed import checkpoint

Run = Callable[..., Result]
SMALL_INDEXES = ("-c", "segment.index.bytes=65536")
HIGH_WATERMARKS, POINTS = "replication-offset-checkpoint", "recovery-point-offset-checkpoint"
STARTS, CLEAN = "log-start-offset-checkpoint", ".kafka_cleanshutdown"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A log directory of a broker that was cleanly shut down; g-trimmed-0 has [1234, 3000)."""
    return broker_logs(tmp_path / "logs", "g-txn-0", "g-trimmed-0", "g-tiny-0")


def state(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def without_checkpoints(logs: Path) -> Path:
    """The directory as a process of ours has it that never wrote a checkpoint: partitions alone."""
    for file in logs.iterdir():
        if file.is_file():
            file.unlink()
    return logs


def snapshots(folder: Path) -> set[str]:
    return {file.name for file in folder.glob("*.snapshot")}


# truncate


def test_truncation_lowers_the_high_watermark_and_the_recovery_point_of_this_log_only(run: Run, logs: Path) -> None:
    before = checkpoint(logs, HIGH_WATERMARKS)
    cut = state(run("log", "truncate", logs / "g-trimmed-0", 2000, *SMALL_INDEXES))
    assert (cut["log_start_offset"], cut["high_watermark"], cut["log_end_offset"]) == (1234, 2000, 2000)
    assert checkpoint(logs, HIGH_WATERMARKS) == before | {"g-trimmed-0": 2000}
    assert checkpoint(logs, POINTS)["g-trimmed-0"] == 2000
    assert checkpoint(logs, STARTS)["g-trimmed-0"] == 1234


def test_truncation_does_not_raise_a_high_watermark(run: Run, logs: Path) -> None:
    (logs / HIGH_WATERMARKS).write_text("0\n1\ng-txn 0 100\n")
    assert state(run("log", "truncate", logs / "g-txn-0", 3000, *SMALL_INDEXES))["high_watermark"] == 100
    assert checkpoint(logs, HIGH_WATERMARKS) == {"g-txn-0": 100}


def test_a_clean_shutdown_stays_one_after_a_command_that_ended_and_only_then(run: Run, logs: Path) -> None:
    clean = (logs / CLEAN).read_bytes()
    state(run("log", "truncate", logs / "g-txn-0", 3000, *SMALL_INDEXES))
    assert (logs / CLEAN).read_bytes() == clean
    assert run("log", "append", logs / "g-txn-0", logs / "g-txn-0", "--follower", *SMALL_INDEXES).exit_code == 1
    assert not (logs / CLEAN).exists()


def test_after_an_unclean_shutdown_the_log_is_recovered_first(run: Run, logs: Path) -> None:
    (logs / CLEAN).unlink()
    with (logs / "g-tiny-0" / "00000000000000000000.log").open("ab") as file:
        file.write(b"torn")
    assert state(run("log", "truncate", logs / "g-tiny-0", 1, *SMALL_INDEXES))["segments"] == [[0, 75]]
    assert not (logs / CLEAN).exists()


def test_a_damaged_checkpoint_file_is_named_and_left_alone(run: Run, logs: Path) -> None:
    (logs / POINTS).write_text("damaged")
    result = run("log", "truncate", logs / "g-txn-0", 3000, *SMALL_INDEXES)
    assert (result.exit_code, f"{POINTS} at byte 0" in result.stderr) == (6, True)
    assert (logs / POINTS).read_text() == "damaged"
    assert (logs / CLEAN).exists()


def test_a_folder_whose_name_is_not_a_partition_s_gets_no_checkpoints(run: Run, logs: Path, tmp_path: Path) -> None:
    folder = copytree(logs / "g-tiny-0", tmp_path / "alone" / "copy")
    state(run("log", "truncate", folder, 0))
    assert [file.name for file in folder.parent.iterdir()] == ["copy"]


# recover


def test_recovery_of_logs_without_checkpoints_leaves_high_watermarks_at_their_ends(run: Run, logs: Path) -> None:
    result = run("log", "recover", without_checkpoints(logs), *SMALL_INDEXES)
    ends = {f"{row['topic']}-0": row["log_end_offset"] for row in map(json.loads, result.stdout.splitlines())}
    assert checkpoint(logs, HIGH_WATERMARKS) == ends == {"g-tiny-0": 1, "g-trimmed-0": 3000, "g-txn-0": 3706}


def test_of_a_broker_s_log_without_a_high_watermark_nothing_is_known_to_be_replicated(run: Run, logs: Path) -> None:
    (logs / HIGH_WATERMARKS).unlink()
    assert run("log", "recover", logs, *SMALL_INDEXES).exit_code == 0
    assert checkpoint(logs, HIGH_WATERMARKS)["g-trimmed-0"] == 1234


def test_recovery_of_one_partition_keeps_its_start_and_writes_its_checkpoints(run: Run, logs: Path) -> None:
    (logs / HIGH_WATERMARKS).write_text("0\n1\ng-trimmed 0 9000\n")
    found = state(run("log", "recover", logs / "g-trimmed-0", *SMALL_INDEXES))
    assert (found["log_start_offset"], found["high_watermark"]) == (1234, 3000)
    assert checkpoint(logs, HIGH_WATERMARKS) == {"g-trimmed-0": 3000}
    assert checkpoint(logs, STARTS)["g-trimmed-0"] == 1234


# append


def test_an_append_to_a_trimmed_log_keeps_its_start_and_its_snapshots(run: Run, logs: Path, broker: Path) -> None:
    trimmed = logs / "g-trimmed-0"
    before = snapshots(trimmed)
    grown = state(run("log", "append", broker / "g-tiny-0", trimmed, "--leader-epoch", 9, *SMALL_INDEXES))
    assert (grown["log_start_offset"], grown["high_watermark"], grown["log_end_offset"]) == (1234, 3001, 3001)
    assert before - snapshots(trimmed) == set()
    assert {name: checkpoint(logs, name)["g-trimmed-0"] for name in (HIGH_WATERMARKS, POINTS, STARTS)} == {
        HIGH_WATERMARKS: 3001,
        POINTS: 3001,
        STARTS: 1234,
    }


def test_a_follower_s_copy_of_a_trimmed_log_starts_where_its_source_does(run: Run, logs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copies" / "g-trimmed-0"
    copied = state(run("log", "append", logs / "g-trimmed-0", copy, "--follower", *SMALL_INDEXES))
    assert (copied["log_start_offset"], copied["high_watermark"], copied["log_end_offset"]) == (1234, 3000, 3000)
    assert checkpoint(copy.parent, STARTS) == {"g-trimmed-0": 1234}
    assert checkpoint(copy.parent, HIGH_WATERMARKS) == {"g-trimmed-0": 3000}


def test_partitions_that_are_made_have_the_id_of_their_topic(run: Run, logs: Path, tmp_path: Path) -> None:
    made = tmp_path / "made"
    for name in ("orders-0", "orders-1", "payments-0", "g-tiny-0"):
        state(run("log", "append", logs / "g-tiny-0", made / name, "--leader-epoch", 1))
    ids = {folder.name: (folder / "partition.metadata").read_bytes() for folder in made.iterdir() if folder.is_dir()}
    assert ids["orders-0"] == ids["orders-1"] != ids["payments-0"]
    assert ids["g-tiny-0"] == (logs / "g-tiny-0" / "partition.metadata").read_bytes()


def test_a_log_from_before_topic_ids_gets_none_from_an_append(run: Run, logs: Path, broker: Path) -> None:
    (logs / "g-tiny-0" / "partition.metadata").unlink()
    state(run("log", "append", broker / "g-txn-0", logs / "g-tiny-0", "--leader-epoch", 9))
    assert not (logs / "g-tiny-0" / "partition.metadata").exists()


def test_what_was_appended_may_be_archived(run: Run, broker: Path, tmp_path: Path) -> None:
    made = tmp_path / "made" / "orders-0"
    state(run("log", "append", broker / "g-codec-none-0", made, "--leader-epoch", 0, "-c", "segment.bytes=1048576"))
    end = checkpoint(made.parent, HIGH_WATERMARKS)["orders-0"]
    state(run("log", "append", broker / "g-tiny-0", made, "--leader-epoch", 1, "-c", "segment.bytes=1048576"))
    assert checkpoint(made.parent, HIGH_WATERMARKS) == {"orders-0": end + 1}
