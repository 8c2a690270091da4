"""What Ctrl-C does is set for the time of a command, and only where signals arrive."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tiering.cli import main
from tiering.command.interrupt import GO_ON, interruptible


def test_a_first_interrupt_is_told_and_raised_and_another_one_would_end_the_process(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background ignore it
    try:
        with pytest.raises(KeyboardInterrupt), interruptible():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)
    assert capfd.readouterr().err == "tiering: interrupted\n"


def test_a_command_in_another_thread_runs_as_ever() -> None:
    def run() -> str:
        with interruptible():
            return "done"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run).result() == "done"


@pytest.mark.parametrize("module", ["click", "tiering.cli.describe", "tiering.wiring"])
def test_ctrl_c_shows_no_traceback_while_something_is_loaded(module: str, tmp_path: Path) -> None:
    run = f"""
import signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            sys.meta_path.remove(self)
            signal.raise_signal(signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
signal.signal(signal.SIGINT, signal.default_int_handler)
from tiering.__main__ import main
main()
"""
    ran = subprocess.run([sys.executable, "-c", run, "describe", "--archive", tmp_path], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "tiering: interrupted\n")


def test_what_goes_on_are_commands() -> None:
    assert set(GO_ON) < set(main.list_commands(None))  # type: ignore[arg-type]
