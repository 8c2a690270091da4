"""What a person at a terminal sees that a log file does not: progress, red, tables as wide as it is, Ctrl-C."""

import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from pathlib import Path

import mixed_topic
import pytest
from golden_logs import broker_logs
from logs_to_archive import drop_segments_below, set_checkpoint
from offloaded import Run

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def seen(*args: object, code: int = 0, all_of_it: bool = False, columns: int = 80, environment: Mapping[str, str] = {}) -> str:
    """What stands on the terminal that is the standard error, or `all_of_it`, of `tiering ARGS…`, which ends with `code`."""
    process, ours = started(*args, all_of_it=all_of_it, columns=columns, environment=environment)
    shown = "".join(said(ours))
    assert process.wait() == code, shown
    return shown


def started(
    *args: object, all_of_it: bool = True, columns: int = 80, environment: Mapping[str, str] = {}
) -> tuple["subprocess.Popen[bytes]", int]:
    """The command, and our end of its terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    env = {**os.environ, "TERM": "xterm-256color", **environment}
    command, nothing = [sys.executable, "-m", "tiering", *map(str, args)], subprocess.DEVNULL
    out = theirs if all_of_it else nothing
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background ignore it
    try:
        process = subprocess.Popen(command, stdin=nothing, stdout=out, stderr=theirs, env=env)
    finally:
        signal.signal(signal.SIGINT, before)
    os.close(theirs)
    return process, ours


def said(ours: int) -> Iterator[str]:
    """What comes to a terminal, until its last process has ended."""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # Linux says so when the last process that had it open has ended
            break
        if not part:
            break
        yield part.decode(errors="replace")
    os.close(ours)


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
    shown = seen(*commands[command], all_of_it=True)
    assert re.search(rf"{command} \[#+\] (\d+)/\1 [KM]iB in \d+ s", shown)
    assert not COLOUR.search(shown)
    assert not [line for line in drawn(shown) if "] " in line and "topic" in line], "what else is printed takes its place"


def drawn(shown: str) -> list[str]:
    """The lines that a terminal shows in the end."""
    return [line.rpartition("\r\x1b[K")[2] for line in shown.split("\r\n")]


@pytest.mark.slow
def test_a_terminal_that_cannot_go_back_in_a_line_is_spared(commands: dict[str, tuple[object, ...]]) -> None:
    shown = seen(*commands["scrub"], environment={"TERM": "dumb"})
    assert "\x1b" not in shown
    assert "iB in" not in shown


@pytest.mark.slow
def test_an_offload_that_has_nothing_to_do_shows_no_bar(broker: Path, archive: str) -> None:
    assert "iB" not in seen("offload", "--log-dir", broker, "--archive", archive)


def test_errors_have_no_colour_though_the_environment_asks_for_it(archive: str) -> None:
    environment = {"CLICOLOR_FORCE": "1", "FORCE_COLOR": "1"}
    told = seen(
        "fetch", "--archive", archive, "--topic", "g-txn", "--partition", 0, "--offset", 10**9, code=4, environment=environment
    )
    assert told.endswith("ask for one inside\r\n")
    refused = seen("fetch", "--archive", archive, "--tpic", "g-txn", code=2, environment=environment)
    assert "--topic" in refused
    assert "\x1b" not in told + refused


@pytest.mark.slow
@pytest.mark.parametrize("columns", [80, 200])
def test_tables_are_no_wider_than_the_terminal(broker: Path, archive: str, tmp_path: Path, columns: int) -> None:
    logs = mixed_topic.log_dir(tmp_path / "mixed")
    described = seen("describe", "--archive", archive, "--log-dir", broker, all_of_it=True, columns=columns).splitlines()
    fetched = seen("fetch", "--log-dir", logs, "--topic", mixed_topic.TOPIC, all_of_it=True, columns=columns)
    lines = [*described, *fetched.splitlines()]
    assert max(map(len, lines)) <= columns
    assert sum(line.startswith("g-txn ") for line in described) == (2 if columns == 80 else 1)
    assert "customer-17" in fetched
    assert "base64:AA" in fetched
    assert {c for c in fetched if not c.isprintable()} == {"\r", "\n"}


@pytest.mark.slow
def test_status_tells_a_loss_in_red_unless_colour_is_unwanted_and_cuts_no_word_in_two(run: Run, tmp_path: Path) -> None:
    logs, archive = broker_logs(tmp_path / "logs", "g-txn-0"), tmp_path / "archive"
    set_checkpoint(logs / HIGH_WATERMARK_CHECKPOINT, "g-txn-0", 110)
    assert run("offload", "--log-dir", logs, "--archive", archive).exit_code == 0
    drop_segments_below(logs, "g-txn-0", 2_683)
    settings = (f"log.dirs={logs}", f"archive.url={archive}", f"agent.state.dir={tmp_path / 'state'}")
    command = ("status", *(part for setting in settings for part in ("--override", setting)))
    for columns, no_color in ((80, ""), (200, "1")):
        shown = seen(*command, code=3, all_of_it=True, columns=columns, environment={"NO_COLOR": no_color})
        plain = COLOUR.sub("", shown)
        assert max(map(len, plain.splitlines())) <= columns
        assert "offsets [102, 2683) are lost: they had left the local log before they were archived" in " ".join(plain.split())
        red = [part.split()[0] for part in re.findall(r"\x1b\[1;31m([^\x1b]*)", shown) if part.strip()]
        assert {"lost", "g-txn"} <= set(red) if not no_color else red == []


@pytest.mark.slow
def test_ctrl_c_is_told_and_the_same_command_goes_on(broker: Path, tmp_path: Path) -> None:
    offload = ("offload", "--log-dir", broker, "--archive", tmp_path / "archive", "--threads", 2, "--bytes-per-second", "1MB")
    process, ours = started(*offload)
    shown = ""
    for part in said(ours):
        shown += part
        if "interrupted" not in shown and len(list(tmp_path.glob("archive/*/*/0/segments/*.log"))) > 2:
            process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert "tiering: interrupted; finishing what is under way (Ctrl-C again ends at once)\r\n" in shown
    assert "tiering: the same command goes on from here\r\n" in shown
    assert "Traceback" not in shown
    assert re.search(r"segments: ([1-9]) copied(, \d+ keep)?; \d+ bytes copied", shown), "also what was under way"
    assert len(re.findall(" copied  ", shown)) > 2
    done = seen(*offload[:-2])
    assert re.search(r"segments: [1-9] archived, [1-9] copied, 15 keep", done)


@pytest.mark.slow
def test_ctrl_c_ends_what_only_reads(tmp_path: Path) -> None:
    logs = mixed_topic.log_dir(tmp_path / "mixed")
    process, ours = started("fetch", "--log-dir", logs, "--topic", mixed_topic.TOPIC, "--follow", "--format", "%o ")
    shown = ""
    for part in said(ours):
        shown += part
        if shown.endswith("0 1 2 3 0 1 2 "):
            process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    assert shown.endswith("tiering: interrupted\r\n")
