"""Clients of Kafka in other languages, whose programs are in `kafka/clients`. Go and npm build theirs once."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import quick
from file_lock import alone
from kept import cache

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
    return _built(GO, _build_go) / "clients"


def js_clients() -> Path:
    """The program of `kafka/clients/js`, beside its modules."""
    return _built(JS, _install_js) / "consume.js"


def _built(folder: Path, build: Callable[[Path, Path], None]) -> Path:
    version = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(folder.iterdir()))).hexdigest()[:16]
    made = cache() / f"{folder.name}-clients-{version}"
    with alone(cache() / f"{folder.name}-clients.lock"):
        if not made.exists():
            arriving = made.with_name(f"{made.name}.{os.getpid()}")
            try:
                build(folder, arriving)
                arriving.rename(made)
            finally:
                shutil.rmtree(arriving, ignore_errors=True)
    return made


def _build_go(folder: Path, to: Path) -> None:
    places = {"GOPATH": to.with_suffix(".path"), "GOCACHE": to.with_suffix(".cache")}
    environment = {**os.environ, **{name: str(path) for name, path in places.items()}, "GOFLAGS": "-modcacherw"}
    command = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", to / "clients", "."]
    try:
        subprocess.run(command, cwd=folder, check=True, env=environment)
    finally:
        for path in places.values():
            shutil.rmtree(path, ignore_errors=True)


def _install_js(folder: Path, to: Path) -> None:
    shutil.copytree(folder, to)
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=to, check=True)
