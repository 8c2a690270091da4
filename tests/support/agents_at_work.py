"""`tiering agent` as a process of its own."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from local_log.errors import Unavailable
from tiering.agent.http import client as http_client

LONG_S = 180
"""The first process after a change of the kernels compiles them, on a machine that may be busy."""


@dataclass
class Process:
    """A running agent."""

    process: "subprocess.Popen[str]"
    address: str

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


def command(logs: object, archive: object, state: object, *more: str) -> list[str]:
    """The command line of an agent that looks every half second; `more` are settings, NAME=VALUE."""
    settings = {
        "log.dirs": logs, "archive.url": archive, "agent.state.dir": state, "agent.http.address": "127.0.0.1:0",
        "remote.log.manager.task.interval.ms": 500, "agent.tasks": "copy",
    } | dict(one.split("=", 1) for one in more)  # fmt: skip
    given = [word for name, value in settings.items() for word in ("--override", f"{name}={value}")]
    return [sys.executable, "-m", "tiering", "agent", *given]


@contextmanager
def running(logs: object, archive: object, state: object, *more: str) -> Iterator[Process]:
    """An agent that answers; it is killed in the end if it is still there."""
    with subprocess.Popen(command(logs, archive, state, *more), stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while "/status" not in said:
            line_ = process.stderr.readline()
            if not line_:
                raise AssertionError(f"the agent has ended with {process.wait()}: {said}")
            said += line_
        address = said.rpartition("http://")[2].partition("/")[0]
        try:
            yield Process(process, address)
        finally:
            process.kill()
