"""When a command says that its store's address is wrong: seconds until its first line about it, and until it has ended.

A server that never answers is waited for longer than here, and the command is ended.
"""

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from processes import environment_of, tiering  # beside this file

SECONDS_MAX = 5.0
WAIT_S = 4.0
ARCHIVE = "s3://nobody-there/archive"


def seconds(modules: Path, log_dir: Path) -> Iterator[tuple[str, float, float | None]]:
    """Of each kind of address and command: until it says so, and until its end, None where it still tries."""
    commands = {
        "describe": ("describe", "--archive", ARCHIVE),
        "status": ("status", "--override", f"log.dirs={log_dir}", "--override", f"archive.url={ARCHIVE}"),
        "offload": ("offload", "--log-dir", log_dir, "--archive", ARCHIVE),
    }
    for what, where in (("refused", _refused), ("an unknown host", _unknown), ("no answer", _silent)):
        for name, words in commands.items():
            with where() as url:
                said, ended = _measured(tiering(*words), modules, url)
            yield f"{what}, {name}", said, ended


def _measured(command: Sequence[str], modules: Path, url: str) -> tuple[float, float | None]:
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-central-1"}
    environment = environment_of(modules, AWS_ENDPOINT_URL=url, **keys)
    began = time.perf_counter()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    said = time.perf_counter() - began
    if ARCHIVE not in line:
        raise AssertionError(f"{command} says {line!r}, and nothing of its store")
    try:
        process.communicate(timeout=WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return said, None
    return said, time.perf_counter() - began


@contextmanager
def _refused() -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def _unknown() -> Iterator[str]:
    yield "http://nobody.invalid:9000"


@contextmanager
def _silent() -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
