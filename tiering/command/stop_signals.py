"""SIGTERM and SIGINT of a command that serves: the first one ends it, and a later one does not keep it from ending well."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final

NUMBERS: Final = (signal.SIGTERM, signal.SIGINT)
_ENDS: Final = "tiering: stopping already; kill -9 ends it at once, and the next start has to recover then\n"


@contextmanager
def stopped_by_signals(stop: Callable[[], object]) -> Iterator[None]:
    """In its block the first signal calls `stop`, and the second says that it was; in another thread than the main one none does.

    The block is to have all that the command does to end: the default of a signal would end the process in the midst of it.
    """
    if threading.current_thread() is not threading.main_thread():  # signals reach no other
        yield
        return
    seen = 0

    def come(_number: int, _frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            stop()
        elif seen == 2:  # not each time: whoever sends many may not read what is said
            with suppress(OSError, AttributeError):  # nobody reads it any more, or there is no standard error
                os.write(sys.stderr.fileno(), _ENDS.encode())  # a handler may come while the stream itself is written

    before = {number: signal.signal(number, come) for number in NUMBERS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
