"""Run for a program of `forked_python`, by a Python that loads nothing more: has a fork run it as if this process were it."""

import json
import os
import socket
import sys

STREAMS = (0, 1, 2)
LENGTH_BYTES = 4
"""Of the size of what is told, which comes with the streams."""


def ask(address: str, words: list[str]) -> int:
    """Gives the exit code of the program."""
    told = json.dumps([words, os.getcwd(), dict(os.environ)]).encode()
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(address)
        socket.send_fds(asked, [len(told).to_bytes(LENGTH_BYTES, "big")], STREAMS)
        asked.sendall(told)
        return asked.recv(1)[0]


if __name__ == "__main__":
    sys.exit(ask(sys.argv[1], sys.argv[2:]))
