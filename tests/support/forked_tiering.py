"""The command `tiering` without its second of loading: a process that has loaded all of it runs each command in a fork.

A command has its own words, folder, environment and streams, and ends with its own exit code; nothing that it leaves in memory
is seen by the next one. `agent` and `serve`, which signals end, are started as always.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SCRIPT = """#!/bin/sh
case "$1 $2" in 'agent ' | 'agent -'* | 'serve '*) exec {python} -m tiering "$@" ;; esac
exec {python} -I -S {program} ask {address} "$@"
"""
_STREAMS = (0, 1, 2)
_LENGTH_BYTES = 4


@contextmanager
def forking(folder: Path) -> Iterator[str]:
    """Has a process run commands, which listens in `folder`; gives the text of a script that is `tiering`."""
    address = folder / "tiering.socket"
    words = [sys.executable, __file__, "serve", str(address)]
    with subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        while not address.exists():
            assert process.poll() is None
            time.sleep(0.05)
        yield _SCRIPT.format(python=sys.executable, program=__file__, address=address)
        process.terminate()


def _serve(address: str) -> None:
    from importlib import import_module

    from tiering.cli import _VERBS, main

    for verb in _VERBS:
        import_module(f"tiering.cli.{verb.replace('-', '_')}")
    _wait_for_a_command(address)
    main()


def _wait_for_a_command(address: str) -> None:
    """Comes back once for each command, in a process that is that command's."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks that wait for a command each
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{address}.new")
        listening.listen()
        os.rename(f"{address}.new", address)
        while True:
            asking, _ = listening.accept()
            if os.fork() == 0:
                break
            asking.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, streams, _, _ = socket.recv_fds(asking, _LENGTH_BYTES, len(_STREAMS))
    told = asking.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL)
    if command := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
        asking.sendall(bytes([code % 256 if code >= 0 else 128 - code]))
        os._exit(0)
    asking.close()
    _become(*json.loads(told), streams)


def _become(words: list[str], folder: str, environment: dict[str, str], streams: list[int]) -> None:
    for given, own in zip(streams, _STREAMS, strict=True):
        os.dup2(given, own)
        os.close(given)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv[1:] = words


def _ask(address: str, words: list[str]) -> int:
    """Has a command run as if this process were it; gives its exit code."""
    told = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(address)
        socket.send_fds(asked, [len(told).to_bytes(_LENGTH_BYTES, "big")], _STREAMS)
        asked.sendall(told)
        return asked.recv(1)[0]


if __name__ == "__main__":
    _, verb, address, *words = sys.argv
    if verb == "ask":
        sys.exit(_ask(address, words))
    _serve(address)
