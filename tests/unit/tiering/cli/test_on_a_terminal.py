"""What a person at a terminal sees that a log file does not: progress, and never a colour."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def seen(*args: object, code: int = 0, **environment: str) -> str:
    """What stands on the terminal that is the standard error of `tiering ARGS…`, which ends with `code`."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", **environment}
    command, nothing = [sys.executable, "-m", "tiering", *map(str, args)], subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=theirs, env=env)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux says so when the last process that had it open has ended
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait() == code, shown
    return shown.decode()


@pytest.fixture
def commands(broker: Path, archive: str, tmp_path: Path) -> dict[str, tuple[object, ...]]:
    return {
        "offload": ("offload", "--log-dir", broker, "--archive", tmp_path / "archive"),
        "restore": ("restore", "--archive", archive, "--to", tmp_path / "logs"),
        "scrub": ("scrub", "--archive", archive, "--deep"),
    }


@pytest.mark.parametrize("command", ["offload", "restore", "scrub"])
@pytest.mark.slow
def test_long_work_shows_how_many_of_its_bytes_are_done(commands: dict[str, tuple[object, ...]], command: str) -> None:
    shown = seen(*commands[command])
    assert re.search(rf"{command} \[#+\] (\d+)/\1 MiB in \d+ s", shown)
    assert not COLOUR.search(shown)


@pytest.mark.slow
def test_a_terminal_that_cannot_go_back_in_a_line_is_spared(commands: dict[str, tuple[object, ...]]) -> None:
    shown = seen(*commands["scrub"], TERM="dumb")
    assert "\x1b" not in shown
    assert "MiB in" not in shown


@pytest.mark.slow
def test_an_offload_that_has_nothing_to_do_shows_no_bar(broker: Path, archive: str) -> None:
    assert "MiB" not in seen("offload", "--log-dir", broker, "--archive", archive)


def test_errors_have_no_colour_though_the_environment_asks_for_it(archive: str) -> None:
    environment = {"CLICOLOR_FORCE": "1", "FORCE_COLOR": "1"}
    told = seen("fetch", "--archive", archive, "--topic", "g-txn", "--partition", 0, "--offset", 10**9, code=4, **environment)
    assert told.endswith("ask for one inside\r\n")
    refused = seen("fetch", "--archive", archive, "--tpic", "g-txn", code=2, **environment)
    assert "--topic" in refused
    assert "\x1b" not in told + refused
