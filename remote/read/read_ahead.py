"""Reading in windows, ahead of whoever takes the bytes: across segments, by a pool of threads where one is handed in.

    first    doubling    up to `window_bytes`         the next segment
    |---|------|------------|------------------------|------------------------|--------
     taken ^     asked for: at most twice what was taken, and `ahead_bytes_max`

A window costs one request and lies in one segment. Without a pool each is read when its turn comes: the same requests, in order.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from local_log.errors import LogError
from remote.errors import RemoteError
from remote.store.api import Body

WINDOW_BYTES: Final = 8 << 20
AHEAD_BYTES_MAX: Final = 32 << 20

P = TypeVar("P")


class Answer(Protocol):
    """What a pool will have read."""

    def result(self) -> Body:
        """The bytes, when they are there. Raises what reading raised."""

    def cancel(self) -> bool:
        """Nobody waits for it any more."""


class Pool(Protocol):
    """Where reads run at the same time; `concurrent.futures.Executor` is one."""

    def submit(self, call: Callable[..., Any], /, *args: Any) -> Any:
        """Runs `call(*args)` some time soon, and gives its Answer."""


@dataclass(frozen=True, slots=True)
class Part(Generic[P]):
    """Bytes `[start, end)` that somebody wants of `of`. `align` is what ends of windows in it are multiples of, 1 for any."""

    of: P
    start: int
    end: int
    align: int = 1


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """How far ahead is read, and by whom. `align` is for parts that want no other."""

    pool: Pool | None = None
    window_bytes: int = WINDOW_BYTES
    ahead_bytes_max: int = AHEAD_BYTES_MAX
    align: int = 1

    def windows(self, parts: Iterable[Part[P]], first_bytes: int) -> Iterator[Part[Part[P]]]:
        """The parts cut into windows, each of which is a part of its part: at first of about `first_bytes`, then doubling."""
        size = min(first_bytes, self.window_bytes)
        for part in parts:
            start, align = part.start, part.align if part.align > 1 else self.align
            while start < part.end:
                end = min(part.end, -(-(start + size) // align) * align)
                yield Part(part, start, end)
                start, size = end, min(size * 2, self.window_bytes)

    def read(
        self, parts: Iterable[Part[P]], read: Callable[[P, int, int], Body], first_bytes: int
    ) -> Iterator[tuple[Part[P], Body]]:
        """The bytes of the parts by `read(of, start, end)`, a window at a time.

        What goes wrong ahead, in `parts` too, is raised when its turn comes.
        """
        upcoming = _Upcoming(self.windows(parts, first_bytes))
        if self.pool is None:
            while (window := upcoming.take()) is not None:
                yield window.of, read(window.of.of, window.start, window.end)
        else:
            yield from self._ahead(upcoming, read, self.pool)

    def _ahead(self, upcoming: "_Upcoming[P]", read: Callable[[P, int, int], Body], pool: Pool) -> Iterator[tuple[Part[P], Body]]:
        asked: deque[tuple[Part[Part[P]], Answer]] = deque()
        in_flight = taken = 0

        def ask(room: int) -> None:
            nonlocal in_flight
            while (size := upcoming.size()) is not None and in_flight + size <= room:
                window = upcoming.take()
                if window is None:
                    raise AssertionError("a window that has a size is there")
                asked.append((window, pool.submit(read, window.of.of, window.start, window.end)))
                in_flight += size

        try:
            while True:
                ask(min(2 * taken, self.ahead_bytes_max))
                if not asked:
                    window = upcoming.take()
                    if window is None:
                        return
                    data = read(window.of.of, window.start, window.end)
                else:
                    window, answer = asked.popleft()
                    data = answer.result()
                    in_flight -= window.end - window.start
                taken += window.end - window.start
                ask(min(2 * taken, self.ahead_bytes_max))
                yield window.of, data
        finally:
            for _, answer in asked:
                answer.cancel()


class _Upcoming(Generic[P]):
    """Windows, of which the next can be looked at; an error among them waits for its turn."""

    def __init__(self, windows: Iterator[Part[Part[P]]]) -> None:
        self._windows = windows
        self._next: Part[Part[P]] | LogError | RemoteError | None = None
        self._is_known = False

    def size(self) -> int | None:
        """Bytes of the next window, None where there is none or an error comes first."""
        window = self._peek()
        return window.end - window.start if isinstance(window, Part) else None

    def take(self) -> Part[Part[P]] | None:
        """The next window, None at the end. Raises the error that comes first."""
        window = self._peek()
        if isinstance(window, LogError | RemoteError):
            raise window
        self._is_known = window is None
        return window

    def _peek(self) -> Part[Part[P]] | LogError | RemoteError | None:
        if not self._is_known:
            try:
                self._next = next(self._windows, None)
            except (LogError, RemoteError) as e:
                self._next = e
            self._is_known = True
        return self._next
