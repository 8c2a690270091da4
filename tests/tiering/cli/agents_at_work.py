"""`tiering agent` as a process of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remote.errors import Unavailable
from tiering.agent import http_client

LONG_S = 60


@dataclass
class Process:
    """A running agent."""

    process: "subprocess.Popen[str]"
    state: Path
    address: str = ""

    def ask(self, path: str = "/status") -> dict[str, Any]:
        return http_client.ask(self.address, "GET", path)

    def until(self, what: str, is_so: "Any") -> dict[str, Any]:
        """The first status of which something is so."""
        deadline = time.monotonic() + LONG_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.process.communicate()
            try:
                status = self.ask()
            except Unavailable:
                status = {}
            if status and is_so(status):
                return status
            time.sleep(0.05)
        raise AssertionError(f"{what} has not come to pass: {status}")

    def ended(self) -> tuple[int, str]:
        """Its exit code and what it said."""
        _, err = self.process.communicate(timeout=LONG_S)
        return self.process.returncode, err


def command(logs: Path, archive: object, state: Path, *more: str) -> list[str]:
    """The command line of an agent that looks every half second."""
    overrides = {
        "log.dirs": logs, "archive.url": archive, "agent.state.dir": state, "agent.http.address": "127.0.0.1:0",
        "remote.log.manager.task.interval.ms": 500, "agent.tasks": "copy",
    }  # fmt: skip
    given = [word for name, value in overrides.items() for word in ("--override", f"{name}={value}")]
    return [sys.executable, "-m", "tiering", "agent", *given, *(word for one in more for word in ("--override", one))]


@contextmanager
def running(logs: Path, archive: object, state: Path, *more: str, env: dict[str, str] | None = None) -> Iterator[Process]:
    """An agent that answers; it is killed in the end if it is still there. Of a setting given twice the later counts."""
    replaced = {one.partition("=")[0] for one in more}
    line = command(logs, archive, state)
    kept = [w for i, w in enumerate(line) if not _is_replaced(line, i, replaced)]
    args = [*kept, *(word for one in more for word in ("--override", one))]
    with subprocess.Popen(args, stderr=subprocess.PIPE, text=True, env={**os.environ, **(env or {})}) as process:
        assert process.stderr is not None
        said = ""
        while "/status" not in said:
            line_ = process.stderr.readline()
            if not line_:
                raise AssertionError(f"the agent has ended with {process.wait()}: {said}")
            said += line_
        address = said.rpartition("http://")[2].partition("/")[0]
        try:
            yield Process(process, state, address)
        finally:
            process.kill()


def _is_replaced(line: list[str], at: int, names: set[str]) -> bool:
    word = line[at + 1] if line[at] == "--override" else line[at]
    return (line[at] == "--override" or (at > 0 and line[at - 1] == "--override")) and word.partition("=")[0] in names
