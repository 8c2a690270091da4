"""Clients of Kafka in other languages, whose programs are in `kafka/clients`. Go and npm build theirs once."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import quick
from kept import TIMEOUT_SECONDS, cache, made_once

_PROGRAMS = Path(__file__).parents[1] / "kafka" / "clients"
GO, JS, PYTHON = _PROGRAMS / "go", _PROGRAMS / "js", _PROGRAMS / "python" / "consume.py"


@contextmanager
def running(command: list[str]) -> Iterator["Client"]:
    """A program that answers lines; it ends with the block."""
    quick.starts_a_server()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Client(process)
        finally:
            process.kill()


class Client:
    """A program that writes a line for each line that it is given."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, *words: object) -> str:
        """Its answer."""
        self.send(*words)
        return self.answer()

    def send(self, *words: object) -> None:
        """What it answers later."""
        assert self._process.stdin
        print(*words, file=self._process.stdin, flush=True)

    def answer(self) -> str:
        """To what was sent."""
        assert self._process.stdout
        answer = self._process.stdout.readline().strip()
        assert answer, f"the client has ended with {self._process.wait(10)}"
        return answer


def go_clients() -> Path:
    """The program of `kafka/clients/go`."""
    return _built(GO, _build_go, "go.lock") / "clients"


def js_clients() -> Path:
    """The program of `kafka/clients/js`, beside its modules."""
    return _built(JS, _install_js, "npm.lock") / "consume.js"


def _built(folder: Path, build: Callable[[Path, Path], None], lock: str) -> Path:
    version = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(folder.iterdir()))).hexdigest()[:16]
    return made_once(cache() / f"{folder.name}-clients-{version}", partial(build, folder), cache() / lock)


def _build_go(folder: Path, to: Path) -> None:
    with TemporaryDirectory(dir=cache(), prefix="go-", ignore_cleanup_errors=True) as places:
        environment = {**os.environ, "GOPATH": f"{places}/path", "GOCACHE": f"{places}/cache", "GOFLAGS": "-modcacherw"}
        command = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", to / "clients", "."]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment, timeout=TIMEOUT_SECONDS)


def _install_js(folder: Path, to: Path) -> None:
    shutil.copytree(folder, to)
    command = ["npm", "ci", "--no-audit", "--no-fund", "--silent"]
    subprocess.run(command, cwd=to, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
