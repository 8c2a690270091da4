"""Ctrl-C: what is said when it comes, and what a second one does."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

import click

from tiering.command.terminal import has_terminal

GO_ON: Final = ("offload", "restore", "expire", "sweep", "rotate-keys", "delete-topic")
"""The commands that leave out what an earlier run has done."""
_ENDS: Final = "tiering: interrupted"
_GOES_ON: Final = "; finishing what is under way (Ctrl-C again ends at once)\ntiering: the same command goes on from here"


@contextmanager
def interruptible() -> Iterator[None]:
    """In its block the first SIGINT is told at once, and raises KeyboardInterrupt; the second ends the process.

    Where somebody else listens to SIGINT already, such as a server, or in another thread than the main one, nothing changes.
    """
    is_main = threading.current_thread() is threading.main_thread()  # signals reach no other
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    context = click.get_current_context(silent=True)
    says = _ENDS + (_GOES_ON if context is not None and context.info_name in GO_ON else "")

    def interrupted(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        clear = "\r\x1b[K" if has_terminal() else ""
        os.write(sys.stderr.fileno(), f"{clear}{says}\n".encode())  # a handler may come while the stream itself is written
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGINT) is interrupted:
            signal.signal(signal.SIGINT, signal.default_int_handler)
