"""Processes of the command `tiering` with a wheel's modules, and what a process costs."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_PROGRAM = "import sys; sys.argv[0] = 'tiering'; from tiering.__main__ import main; main()"
"""What pip writes as `tiering`."""


def environment_of(modules: Path, **more: str) -> dict[str, str]:
    """That of this process, with the modules of a folder."""
    # Python would take the modules of the working directory first, which are the checkout's.
    return {**os.environ, "PYTHONPATH": str(modules), "PYTHONSAFEPATH": "1", **more}


def tiering(*words: object) -> list[str]:
    """A command of ours."""
    return [sys.executable, "-c", _PROGRAM, *map(str, words)]


def cpu_seconds(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """Of a process, with those that it has waited for. It has to end well."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=dict(environment), **quiet)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise AssertionError(f"{command} has ended with {process.returncode}")
    return used.ru_utime + used.ru_stime
