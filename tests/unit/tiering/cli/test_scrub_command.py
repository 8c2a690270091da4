"""`tiering scrub`: its lines, its exit codes and its options."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]
Rows = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def damaged(archive: str, tmp_path: Path) -> Path:
    """A copy of the archive to damage."""
    return Path(shutil.copytree(archive, tmp_path / "damaged"))


@pytest.mark.parametrize("options", [(), ("--deep",), ("--deep", "--sample", "0.5", "--seed", "3"), ("--topic", "g-*")])
def test_a_sound_archive_has_no_line_and_exit_code_0(run: Run, rows: Rows, archive: str, options: tuple[str, ...]) -> None:
    assert rows("scrub", "--archive", archive, *options) == []
    assert "0 anomalies" in run("scrub", "--archive", archive, *options).stderr


def test_an_anomaly_is_a_line_and_exit_code_6(run: Run, damaged: Path) -> None:
    [log] = damaged.glob("g-big/*/0/segments/*.log")
    log.unlink()
    result = run("scrub", "--archive", damaged, "--output", "json")
    assert result.exit_code == 6
    assert "missing_object" in result.stdout
    assert str(log.relative_to(damaged)) in result.stdout
    assert "1 anomaly;" in result.stderr


def test_only_a_deep_scrub_reads_segments(run: Run, damaged: Path) -> None:
    [log] = damaged.glob("g-big/*/0/segments/*.log")
    log.write_bytes(log.read_bytes()[:-1] + b"x")
    assert run("scrub", "--archive", damaged).exit_code == 0
    assert run("scrub", "--archive", damaged, "--deep", "--topic", "g-txn").exit_code == 0
    assert run("scrub", "--archive", damaged, "--deep", "--sample", "0").exit_code == 0
    result = run("scrub", "--archive", damaged, "--deep")
    assert result.exit_code == 6
    assert "bad_batch" in result.stdout


def test_what_is_left_out_is_a_line_and_no_anomaly(run: Run, archive: str) -> None:
    result = run("scrub", "--archive", archive, "--requests-max", 4)
    assert result.exit_code == 0
    assert "left_out" in result.stdout
    assert "4 requests" in result.stderr


def test_an_archive_that_is_not_there_is_not_found(run: Run, tmp_path: Path) -> None:
    assert run("scrub", "--archive", tmp_path / "nothing").exit_code == 4


def test_a_topic_that_is_not_there_is_not_found(run: Run, archive: str) -> None:
    result = run("scrub", "--archive", archive, "--topic", "orders")
    assert result.exit_code == 4
    assert "matches orders; there are: g-appendtime" in result.stderr


@pytest.mark.parametrize("options", [("--sample", "0.5"), ("--deep", "--seed", "1"), ("--deep", "--sample", "2")])
def test_options_that_make_no_sense_are_refused(run: Run, archive: str, options: tuple[str, ...]) -> None:
    assert run("scrub", "--archive", archive, *options).exit_code == 2


def test_a_damaged_mark_of_the_archive_is_corruption(run: Run, damaged: Path) -> None:
    (damaged / "archive.json").write_bytes(b"no JSON")
    assert run("scrub", "--archive", damaged).exit_code == 6
