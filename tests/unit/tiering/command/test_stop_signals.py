"""A command that serves: what the first signal does, and those that come after it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import quick

from tiering.command.stop_signals import NUMBERS, stopped_by_signals


@pytest.mark.parametrize("number", NUMBERS)
def test_the_first_signal_ends_it_and_a_later_one_says_that_it_ends(
    number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    stopped, before = list[bool](), [signal.getsignal(one) for one in NUMBERS]
    with stopped_by_signals(lambda: stopped.append(True)):
        for later in (number, *NUMBERS):
            os.kill(os.getpid(), later)
    assert stopped == [True]
    assert capfd.readouterr().err.count("stopping already; kill -9 ends it at once") == 1
    assert [signal.getsignal(one) for one in NUMBERS] == before


def test_a_later_signal_does_no_harm_where_nobody_reads_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as of `2>&1 | tee log`, which ends at the first Ctrl-C
    stopped = list[bool]()
    with os.fdopen(writing, "w") as broken:
        for stream in (broken, None):
            monkeypatch.setattr(sys, "stderr", stream)
            with stopped_by_signals(lambda: stopped.append(True)):
                for number in NUMBERS:
                    os.kill(os.getpid(), number)
    assert stopped == [True, True]


@pytest.mark.slow
def test_a_second_signal_does_not_keep_an_own_log_directory_from_being_closed_well(tmp_path: Path) -> None:
    quick.starts_a_server()
    command = [sys.executable, "-m", "tiering", "serve", "--own-log-dir", str(tmp_path), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        while "topics at" not in process.stderr.readline():
            assert process.poll() is None
        clean = tmp_path / ".kafka_cleanshutdown"
        while process.poll() is None and not clean.exists():
            process.send_signal(signal.SIGTERM)
            time.sleep(0.002)
        said = process.stderr.read()
    assert (clean.exists(), process.returncode, said[-17:]) == (True, 0, "tiering: stopped\n")
