"""How far the tasks of a job are, shown on a terminal while Spark runs them: bytes, rate, time left.

Spark's own call waits until all tasks have ended, so it takes a thread to look meanwhile.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from remote.clock import Stopwatch, stopwatch
from tiering.console import progress_bar

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


@contextmanager
def shown(
    label: str, of_bytes: int, done_bytes: Callable[[], int], *, show: Show | None = None, clock: Stopwatch = stopwatch
) -> Iterator[None]:
    """Shows `done_bytes()` of `of_bytes` while the block runs; nothing where standard error is no terminal."""
    if show is None and not sys.stderr.isatty():
        yield
        return
    showing, started_s, is_over = show or progress_bar(label), clock(), threading.Event()
    whole = -(-of_bytes // _MIB)

    def look() -> None:
        while not is_over.wait(_EVERY_S):
            done = min(done_bytes(), of_bytes)  # a task that ran twice counts twice
            showing(min(done // _MIB, max(whole - 1, 0)), whole, about(done, of_bytes, clock() - started_s))

    looking = threading.Thread(target=look, name="progress", daemon=True)
    looking.start()
    is_done = False
    try:
        yield
        is_done = True
    finally:
        is_over.set()
        looking.join()
        if is_done:
            showing(whole, whole, f"MiB in {clock() - started_s:.0f} s")
