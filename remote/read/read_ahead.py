"""Reads ranges in windows, ahead of their consumer and across segments, by a pool of threads where one is given.

    first    doubling    up to `window_bytes`         the next segment
    |---|------|------------|------------------------|------------------------|--------
     taken ^     requested: at most twice what was taken, and `ahead_bytes_max`

A window costs one request and lies in one segment. Without a pool each window is read when it is asked for: the same requests,
in the same order.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from local_log.errors import LogError
from remote.store.api import Body

WINDOW_BYTES: Final = 8 << 20
AHEAD_BYTES_MAX: Final = 32 << 20

P = TypeVar("P")


class PendingRead(Protocol):
    """The result of a read that a pool runs; `concurrent.futures.Future` is one."""

    def result(self) -> Body:
        """Waits for the bytes. Raises what the read raised."""

    def cancel(self) -> bool:
        """Cancels the read if it has not started."""


class Pool(Protocol):
    """Runs reads concurrently; `concurrent.futures.Executor` is one."""

    def submit(self, call: Callable[..., Any], /, *args: Any) -> Any:
        """Schedules `call(*args)`; returns its PendingRead."""


@dataclass(frozen=True, slots=True)
class ReadRange(Generic[P]):
    """The bytes `[start, end)` of a `target` that are to be read. Windows in it end at multiples of `align`; 1 is anywhere."""

    target: P
    start: int
    end: int
    align: int = 1


@dataclass(frozen=True, slots=True)
class Window(Generic[P]):
    """The bytes `[start, end)` of a range that one request reads."""

    range: ReadRange[P]
    start: int
    end: int


class AheadBytes:
    """One bound on the bytes that many readers, on many threads, have requested ahead."""

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Whether so many more may be requested; `give_back` says when they are no longer ahead."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        """So many are with their reader, or are not wanted."""
        with self._lock:
            self._left += size


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """How far ahead of the reader bytes are requested, and by which pool. `align` is for ranges that state none.

    `of_all` bounds what all readers have requested ahead together: one that finds no room reads a window when it is asked for it.
    """

    pool: Pool | None = None
    window_bytes: int = WINDOW_BYTES
    ahead_bytes_max: int = AHEAD_BYTES_MAX
    align: int = 1
    of_all: AheadBytes | None = None

    def windows(self, ranges: Iterable[ReadRange[P]], first_bytes: int) -> Iterator[Window[P]]:
        """The ranges cut into windows: the first of about `first_bytes`, each next one twice as large, up to `window_bytes`."""
        size = min(first_bytes, self.window_bytes)
        for one in ranges:
            start, align = one.start, one.align if one.align > 1 else self.align
            while start < one.end:
                end = min(one.end, -(-(start + size) // align) * align)
                yield Window(one, start, end)
                start, size = end, min(size * 2, self.window_bytes)

    def read(
        self, ranges: Iterable[ReadRange[P]], read: Callable[[P, int, int], Body], first_bytes: int
    ) -> Iterator[tuple[ReadRange[P], Body]]:
        """The bytes of the ranges, a window at a time, read by `read(target, start, end)`.

        An error of a read, or of `ranges`, is raised when its window's turn comes.
        """
        upcoming = _Upcoming(self.windows(ranges, first_bytes))
        if self.pool is None:
            while (window := upcoming.take()) is not None:
                yield window.range, read(window.range.target, window.start, window.end)
        else:
            yield from self._ahead(upcoming, read, self.pool)

    def _ahead(
        self, upcoming: "_Upcoming[P]", read: Callable[[P, int, int], Body], pool: Pool
    ) -> Iterator[tuple[ReadRange[P], Body]]:
        pending: deque[tuple[Window[P], PendingRead]] = deque()
        in_flight = taken = 0

        def request(room: int) -> None:
            nonlocal in_flight
            while (size := upcoming.size()) is not None and in_flight + size <= room:
                if self.of_all is not None and not self.of_all.take(size):
                    return
                window = upcoming.take()
                if window is None:
                    raise AssertionError("a window that has a size is there")
                pending.append((window, pool.submit(read, window.range.target, window.start, window.end)))
                in_flight += size

        try:
            while True:
                request(min(2 * taken, self.ahead_bytes_max))
                if not pending:
                    window = upcoming.take()
                    if window is None:
                        return
                    data = read(window.range.target, window.start, window.end)
                else:
                    window, read_result = pending[0]
                    data = read_result.result()
                    pending.popleft()
                    in_flight -= window.end - window.start
                    if self.of_all is not None:
                        self.of_all.give_back(window.end - window.start)
                taken += window.end - window.start
                request(min(2 * taken, self.ahead_bytes_max))
                yield window.range, data
        finally:
            for window, pending_read in pending:
                pending_read.cancel()
                if self.of_all is not None:
                    self.of_all.give_back(window.end - window.start)


class _Upcoming(Generic[P]):
    """An iterator of windows with a look at the next one; an error that it raises is kept until `take`."""

    def __init__(self, windows: Iterator[Window[P]]) -> None:
        self._windows = windows
        self._next: Window[P] | LogError | None = None
        self._is_known = False

    def size(self) -> int | None:
        """Bytes of the next window, None where there is none or an error comes first."""
        window = self._peek()
        return window.end - window.start if isinstance(window, Window) else None

    def take(self) -> Window[P] | None:
        """The next window, None at the end. Raises the error that comes first."""
        window = self._peek()
        if isinstance(window, LogError):
            raise window
        self._is_known = window is None
        return window

    def _peek(self) -> Window[P] | LogError | None:
        if not self._is_known:
            try:
                self._next = next(self._windows, None)
            except LogError as e:
                self._next = e
            self._is_known = True
        return self._next
