"""Runs a command in a subprocess and yields its output line by line. The only module that starts processes for Airflow.

The process stays in the process group of its task, so that Airflow, which kills the group, kills it too. If only the task is
killed, the process continues to its end; the task's next try is correct beside it.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from selectors import EVENT_READ, DefaultSelector
from subprocess import DEVNULL, PIPE, Popen
from typing import IO, Final

_PIECE_BYTES: Final = 1 << 16
LINE_BYTES_MAX: Final = 1 << 20

Told = Callable[[str], None]


class CommandLine:
    """One run of a command: `words`, and what its environment has beside that of this process."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self.words, self.environment = tuple(words), dict(environment)
        self._process: Popen[bytes] | None = None

    def run(self, out: Told, said: Told) -> int:
        """Hands out the lines of standard output and of standard error, and gives the exit code; below 0 it is a signal's.

        Raises OSError where the command cannot be started, and what `out` and `said` raise, when the command has ended.
        """
        environment = {**os.environ, **self.environment}
        with Popen(self.words, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=PIPE) as process:  # noqa: S603  # ours
            self._process = process
            try:
                for tell, line in _lines({process.stdout: out, process.stderr: said}):
                    tell(line)
            except BaseException:
                process.terminate()
                raise
        return process.returncode

    def end(self) -> None:
        """Terminates the command, and does not wait for it."""
        if self._process is not None:
            self._process.terminate()


def _lines(streams: Mapping[IO[bytes] | None, Told]) -> Iterator[tuple[Told, str]]:
    """Lines as they come, each with whom to tell; those that are longer than `LINE_BYTES_MAX` come in pieces."""
    begun = dict.fromkeys(streams, b"")
    with DefaultSelector() as waiting:
        for stream in streams:
            assert stream is not None
            waiting.register(stream, EVENT_READ, stream)
        while waiting.get_map():
            for key, _ in waiting.select():
                stream = key.data
                piece = os.read(key.fd, _PIECE_BYTES)
                *lines, rest = (begun[stream] + piece).split(b"\n")
                if not piece or len(rest) > LINE_BYTES_MAX:
                    lines, rest = [*lines, rest], b""
                begun[stream] = rest
                yield from ((streams[stream], line.decode(errors="replace")) for line in lines if line)
                if not piece:
                    waiting.unregister(stream)
