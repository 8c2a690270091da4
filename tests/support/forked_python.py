"""A Python without its second of loading: a process that has loaded all of ours runs each program in a fork.

`python -m` of `tiering`, of a job and of what Spark runs in Python is such a fork; whatever else is asked is run as always. A
program has its own words, folder, environment and streams, and ends with its own exit code; nothing that it leaves in memory is
seen by the next one. A signal reaches who has asked for the fork, and not the fork: what signals end is started as always.

Spark's daemons of Python workers are forks, too, where PYSPARK_PYTHON is this Python. Spark's own daemon loads nothing before it
forks, since a library may start threads; none of these has one that its forks would miss.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from select import select
from tempfile import TemporaryDirectory

from ask_for_a_fork import LENGTH_BYTES, STREAMS

ROOT = Path(__file__).parents[2]
_PYTHON = """#!/bin/sh
case "$1 $2" in '-m tiering' | '-m spark_jobs.'* | '-m pyspark.'*) exec {python} -I -S {asking} {address} "$@" ;; esac
exec {python} "$@"
"""
_TIERING = """#!/bin/sh
case "$1 $2" in 'agent ' | 'agent -'* | 'serve '*) exec {python} -m tiering "$@" ;; esac
exec {python} -I -S {asking} {address} -m tiering "$@"
"""
_OF_SPARK = (
    *("pyspark.worker", "pyspark.sql.worker.plan_data_source_read", "spark_jobs.session", "spark_jobs.backfill.run"),
    *("spark_jobs.source.data_source", "spark_jobs.source.batch_reader", "spark_jobs.sink.task", "spark_jobs.sink.writer"),
)
_ASKING = Path(__file__).with_name("ask_for_a_fork.py")


@dataclass(frozen=True)
class Forking:
    """Where a process that forks listens."""

    address: Path

    @property
    def path(self) -> str:
        """The path of that Python."""
        return f"{self.address.parent}/python"

    @property
    def tiering(self) -> str:
        """The text of a script that is `tiering`."""
        return _TIERING.format(python=sys.executable, asking=_ASKING, address=self.address)


@contextmanager
def forking(folder: Path) -> Iterator[Forking]:
    """Has a process run programs, which listens in `folder` and ends with the block, or with this process."""
    address = folder / "python.socket"
    words = [sys.executable, __file__, str(address)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE) as process:
        while not address.exists():
            assert process.poll() is None
            time.sleep(0.05)
        script = folder / "python"
        script.write_text(_PYTHON.format(python=sys.executable, asking=_ASKING, address=address))
        script.chmod(0o755)
        yield Forking(address)


@cache
def shared() -> Forking:
    """That of this process, which ends with it."""
    running = ExitStack()
    atexit.register(running.close)
    return running.enter_context(forking(Path(running.enter_context(TemporaryDirectory(prefix="forked-")))))


def _serve(address: str) -> None:
    from local_log.engine.append import validator
    from local_log.formats.record_batch import columns
    from tiering.cli import _VERBS

    columns.warm_up()
    validator.warm_up()
    for verb in _VERBS:
        import_module(f"tiering.cli.{verb.replace('-', '_')}")
    if find_spec("pyspark"):
        for name in _OF_SPARK:
            import_module(name)
    gc.collect()
    gc.freeze()  # a fork that ends would look for cycles in all of it, for half a second
    if _is_asked(address):
        _, module, *words = sys.argv[1:]
        sys.argv[1:] = words
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _is_asked(address: str) -> bool:
    """Comes back once for each program, in a process that is that program's, and with False when nobody will ask."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks that wait for a program each
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{address}.new")
        listening.listen()
        os.rename(f"{address}.new", address)
        while True:
            if sys.stdin in select([listening, sys.stdin], [], [])[0]:
                return False
            asking, _ = listening.accept()
            if os.fork() == 0:
                break
            asking.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(asking, LENGTH_BYTES, len(STREAMS))
    told = asking.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    if program := os.fork():
        for given in streams:
            os.close(given)
        os.close(0)  # the pipe whose end is the end of this process's parent
        code = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
        with suppress(BrokenPipeError):  # who asked was ended meanwhile
            asking.sendall(bytes([code % 256 if code >= 0 else 128 - code]))
        os._exit(0)
    asking.close()
    _become(*json.loads(told), streams)
    return True


def _become(words: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    for given, own in zip(streams, STREAMS, strict=True):
        os.dup2(given, own)
        os.close(given)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    told = environment.get("PYTHONPATH", "")
    sys.path[:1] = [folder, *(path for path in told.split(os.pathsep) if path)]
    sys.argv[1:] = words


if __name__ == "__main__":
    _serve(sys.argv[1])
