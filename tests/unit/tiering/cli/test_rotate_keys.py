"""`tiering rotate-keys`: what was encrypted under a former key is read with the current one alone, and no object has changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from key_files import write_keys

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]

FORMER, CURRENT = bytes(32), bytes([7] * 32)
QUESTION = ("--topic", "g-txn", "--partition", 0, "--offset", 0)


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """The key that everything was encrypted with."""
    return write_keys(tmp_path / "former", "2025", **{"2025": FORMER})


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """That key, and the current one."""
    return write_keys(tmp_path / "both", "2026", **{"2025": FORMER, "2026": CURRENT})


@pytest.fixture
def current(tmp_path: Path) -> Path:
    """The current key alone."""
    return write_keys(tmp_path / "current", "2026", **{"2026": CURRENT})


@pytest.fixture
def hidden(rows: Rows, logs: Path, url: str, former: Path) -> str:
    """An archive of two topics that is encrypted with the former key."""
    rows("offload", "--log-dir", logs, "--archive", url, "--compress", "zstd", "--encrypt", "--keys", former)
    return url


def objects(url: str) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in Path(url).rglob("*") if file.is_file() and file.parent.name == "segments"}


def test_after_a_rotation_the_current_key_alone_reads_everything(
    run: Run, rows: Rows, hidden: str, former: Path, both: Path, current: Path
) -> None:
    before = rows("fetch", "--archive", hidden, "--keys", former, *QUESTION)
    stored = objects(hidden)
    assert run("fetch", "--archive", hidden, "--keys", current, *QUESTION).exit_code == 1
    found = rows("rotate-keys", "--archive", hidden, "--keys", both)
    assert [(row["topic"], row["partition"], row["error"]) for row in found] == [("g-codec-none", 0, None), ("g-txn", 0, None)]
    assert all(row["encrypted"] == row["due"] == row["rewrapped"] > 0 for row in found)
    assert rows("fetch", "--archive", hidden, "--keys", current, *QUESTION) == before
    assert objects(hidden) == stored
    again = rows("rotate-keys", "--archive", hidden, "--keys", current)
    assert [(row["due"], row["rewrapped"]) for row in again] == [(0, 0), (0, 0)]
    assert run("fetch", "--archive", hidden, "--keys", former, *QUESTION).exit_code == 1


def test_a_dry_run_prints_what_is_due_and_changes_nothing(
    rows: Rows, hidden: str, both: Path, fingerprint: Callable[[Path], object]
) -> None:
    before = fingerprint(Path(hidden))
    found = rows("rotate-keys", "--archive", hidden, "--keys", both, "--dry-run")
    assert all(row["due"] > 0 == row["rewrapped"] for row in found)
    assert fingerprint(Path(hidden)) == before


def test_only_the_topics_that_match_are_rotated(rows: Rows, hidden: str, both: Path, current: Path) -> None:
    (found,) = rows("rotate-keys", "--archive", hidden, "--keys", both, "--topic", "*txn")
    assert (found["topic"], found["rewrapped"]) == ("g-txn", found["due"])
    left = rows("rotate-keys", "--archive", hidden, "--keys", current, "--dry-run")
    assert [(row["topic"], row["due"] > 0) for row in left] == [("g-codec-none", True), ("g-txn", False)]


def test_without_the_former_key_nothing_is_rotated_and_it_is_named(
    run: Run, hidden: str, current: Path, fingerprint: Callable[[Path], object]
) -> None:
    before = fingerprint(Path(hidden))
    result = run("rotate-keys", "--archive", hidden, "--keys", current)
    assert result.exit_code == 1
    assert "key '2025' is needed: " in result.stderr
    assert fingerprint(Path(hidden)) == before


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        ((), 2, "Missing option '--keys'"),
        (("--keys", "{both}", "--topic", "none"), 4, "matches none; there are: g-codec-none, g-txn"),
        (("--keys", "/nowhere"), 1, "cannot be read"),
    ],
)
def test_what_cannot_be_rotated_is_refused(
    run: Run, hidden: str, both: Path, args: tuple[str, ...], code: int, message: str
) -> None:
    result = run("rotate-keys", "--archive", hidden, *(arg.format(both=both) for arg in args))
    assert (result.exit_code, result.stdout) == (code, "")
    assert message in result.stderr


def test_an_archive_that_is_not_there_is_not_made(run: Run, tmp_path: Path, both: Path) -> None:
    assert run("rotate-keys", "--archive", tmp_path / "none", "--keys", both).exit_code == 4
    assert not (tmp_path / "none").exists()
