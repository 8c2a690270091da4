"""Of several `--topic` globs every command tells which match nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("scrub", []),
        ("sweep", ["--dry-run"]),
        ("expire", ["--dry-run", "-c", "retention.ms=-1"]),
        ("restore", ["--dry-run"]),
    ],
)
def test_a_glob_that_matches_nothing_is_told_by_every_command(
    run: Run, archive: str, tmp_path: Path, command: str, options: list[str]
) -> None:
    to: list[Any] = ["--to", tmp_path / "restored"] if command == "restore" else []
    result = run(command, "--archive", archive, "--topic", "g-txn", "--topic", "zzz*", *to, *options)
    assert result.exit_code == 0
    told = [line for line in result.stderr.splitlines() if "zzz" in line]
    assert len(told) == 1
    assert told[0].startswith("tiering: --topic zzz*: no topic in ")
    assert told[0].endswith(" matches it")
