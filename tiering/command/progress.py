"""Shows the progress of a long operation on a terminal: bytes, rate, time left.

The operation itself reports progress rarely or never (Spark's call returns when all tasks have ended), so a thread polls it.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from remote.clock import Stopwatch, stopwatch
from tiering.command.output import progress_bar
from tiering.command.terminal import has_terminal

_EVERY_S = 0.25
_RATE_S = 10.0

Show = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Unit:
    """What progress is counted in: its name, and how many of what is counted make one."""

    name: str
    size: int


MIB: Final = Unit("MiB", 1 << 20)
KIB: Final = Unit("KiB", 1 << 10)
_FEW_BYTES: Final = 10 << 20
"""Fewer are shown in KiB: of two whole MiB half would stand there for most of the time."""
PARTITIONS: Final = Unit("partitions", 1)


class Rate:
    """How fast work goes, by what was done in the last seconds: its start, and a burst there, tell little of the rest."""

    def __init__(self) -> None:
        self._seen = deque[tuple[float, int]]()

    def at(self, seconds: float, done: int) -> float:
        """A second, when so much is done; 0 while it is not known. If nothing was done in the last seconds, by those before."""
        if len(self._seen) > 1 and self._seen[-1][1] == self._seen[-2][1] == done:
            self._seen.pop()
        self._seen.append((seconds, done))
        while len(self._seen) > 2 and self._seen[1][0] <= seconds - _RATE_S and self._seen[1][1] < done:
            self._seen.popleft()
        then, before = self._seen[0]
        return max(0, done - before) / (seconds - then) if seconds > then else 0.0


def about(done: int, of: int, rate: float, unit: Unit = MIB) -> str:
    """The rate, and the time that is left by it."""
    if not rate:
        return unit.name
    left = round(max(of - done, 0) / rate)
    return f"{unit.name}, {_a_second(rate, unit)}, {left // 3600}:{left // 60 % 60:02}:{left % 60:02} left"


def _a_second(rate: float, unit: Unit) -> str:
    """A rate, of which something is shown however low it is."""
    amount = rate / unit.size
    return f"{amount:.{1 if amount >= 0.1 else 3}f} {unit.name}/s"


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
def shown(  # six parameters: the last two for tests
    label: str,
    of_all: Callable[[], int],
    of_done: Callable[[], int],
    *,
    unit: Unit = MIB,
    show: Show | None = None,
    clock: Stopwatch = stopwatch,
) -> Iterator[None]:
    """Shows `of_done()` of `of_all()` while the block runs; nothing where standard error is no terminal, or of nothing."""
    if show is None and not has_terminal():
        yield
        return
    showing, started_s, rate, is_over = show or progress_bar(label), clock(), Rate(), threading.Event()

    def fitting(of: int) -> Unit:
        return KIB if unit is MIB and of < _FEW_BYTES else unit

    def look() -> None:
        while not is_over.wait(_EVERY_S):
            of = of_all()
            one, done = fitting(of), min(of_done(), of)  # a task that ran twice counts twice
            if of > 0:
                total = -(-of // one.size)
                showing(min(done // one.size, total - 1), total, about(done, of, rate.at(clock(), done), one))

    looking = threading.Thread(target=look, name="progress", daemon=True)
    looking.start()
    is_done = False
    try:
        yield
        is_done = True
    finally:
        is_over.set()
        looking.join()
        of = of_all()
        if is_done and of > 0:
            one, seconds = fitting(of), clock() - started_s
            total, mean = -(-of // one.size), f", {_a_second(of / seconds, one)}" if seconds >= 1 else ""
            showing(total, total, f"{one.name} in {seconds:.0f} s{mean}")
