"""Shows the progress of a long operation on a terminal: bytes, rate, time left.

The operation itself reports progress rarely or never (Spark's call returns when all tasks have ended), so a thread polls it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from remote.clock import Stopwatch, stopwatch
from tiering.command.output import has_terminal, progress_bar

_MIB = 1 << 20
_EVERY_S = 0.25

Show = Callable[[int, int, str], None]


def about(done_bytes: int, of_bytes: int, seconds: float) -> str:
    """The rate up to now and the time that is left by it."""
    if not (done_bytes and seconds > 0):
        return "MiB"
    rate = done_bytes / seconds
    left = round(max(of_bytes - done_bytes, 0) / rate)
    return f"MiB, {rate / _MIB:.1f} MiB/s, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"


class Work:
    """Bytes that are to be moved, and those that have been; what turns out not to be needed is taken off."""

    def __init__(self, of_bytes: int) -> None:
        self.of_bytes, self.done_bytes = of_bytes, 0
        self._turn = threading.Lock()

    def did(self, size: int) -> None:
        """Counts bytes that have been moved."""
        with self._turn:
            self.done_bytes += size

    def needs_not(self, size: int) -> None:
        """Takes off bytes that turned out not to be needed."""
        with self._turn:
            self.of_bytes -= size


@contextmanager
def shown(
    label: str,
    of_bytes: Callable[[], int],
    done_bytes: Callable[[], int],
    *,
    show: Show | None = None,
    clock: Stopwatch = stopwatch,
) -> Iterator[None]:
    """Shows `done_bytes()` of `of_bytes()` while the block runs; nothing where standard error is no terminal, or of nothing."""
    if show is None and not has_terminal():
        yield
        return
    showing, started_s, is_over = show or progress_bar(label), clock(), threading.Event()

    def total_mib() -> int:
        return -(-of_bytes() // _MIB)

    def look() -> None:
        while not is_over.wait(_EVERY_S):
            of = of_bytes()
            done = min(done_bytes(), of)  # a task that ran twice counts twice
            if of > 0:
                showing(min(done // _MIB, total_mib() - 1), total_mib(), about(done, of, clock() - started_s))

    looking = threading.Thread(target=look, name="progress", daemon=True)
    looking.start()
    is_done = False
    try:
        yield
        is_done = True
    finally:
        is_over.set()
        looking.join()
        if is_done and of_bytes() > 0:
            showing(total_mib(), total_mib(), f"MiB in {clock() - started_s:.0f} s")
