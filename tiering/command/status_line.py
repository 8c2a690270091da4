"""The last line of a terminal, where progress is shown: whatever else is printed takes its place, and it comes again below."""

import threading
from typing import Final

import click

_CLEAR: Final = "\r\x1b[K"


class StatusLine:
    """The line, of standard error; several threads print."""

    def __init__(self) -> None:
        self._turn = threading.RLock()  # a message may come from a signal handler
        self._is_shown = False

    def show(self, text: str, *, stays: bool = False) -> None:
        """Shows a text in place of the last one; `stays` leaves it above what comes then."""
        with self._turn:
            click.echo(f"{_CLEAR}{text}", err=True, nl=stays)
            self._is_shown = not stays

    def echo(self, line: str, *, err: bool = False) -> None:
        """Prints a line in its place."""
        with self._turn:
            if self._is_shown:
                click.echo(_CLEAR, err=True, nl=False)
                self._is_shown = False
            click.echo(line, err=err)


STATUS_LINE: Final = StatusLine()
"""That of the process's terminal."""
