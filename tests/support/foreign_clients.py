"""Clients of Kafka in other languages, whose programs are in `kafka/clients`. Go builds its one once, into a cache."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import quick
from file_lock import alone
from real_kafka import cache

_PROGRAMS = Path(__file__).parents[1] / "kafka" / "clients"
GO, PYTHON = _PROGRAMS / "go", _PROGRAMS / "python" / "consume.py"


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
        assert self._process.stdin
        assert self._process.stdout
        print(*words, file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline().strip()
        assert answer, f"the client has ended with {self._process.wait(10)}"
        return answer


def go_clients() -> Path:
    """The program of `kafka/clients/go`."""
    version = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(GO.iterdir()))).hexdigest()[:16]
    made = cache() / f"go-clients-{version}"
    with alone(cache() / "go-clients.lock"):
        if not made.exists():
            arriving = made.with_name(f"{made.name}.{os.getpid()}")
            try:
                _build_go(GO, arriving)
                arriving.rename(made)
            finally:
                shutil.rmtree(arriving, ignore_errors=True)
    return made / "clients"


def _build_go(folder: Path, to: Path) -> None:
    places = {"GOPATH": to.with_suffix(".path"), "GOCACHE": to.with_suffix(".cache")}
    environment = {**os.environ, **{name: str(path) for name, path in places.items()}, "GOFLAGS": "-modcacherw"}
    command = ["go", "build", "-trimpath", "-ldflags=-s -w", "-o", to / "clients", "."]
    try:
        subprocess.run(command, cwd=folder, check=True, env=environment)
    finally:
        for path in places.values():
            shutil.rmtree(path, ignore_errors=True)
