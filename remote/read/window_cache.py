"""A chunk cache in memory: bytes of archived segments, decoded, for all readers of a process and with one bound on their memory.

    | chunk | chunk | chunk | chunk | chunk |  …      of a segment, all but the last of one size
    |    window     |        window         |         chunks that one request has brought

What is missing is requested in windows of whole chunks, once, whoever waits for it. A window is evicted as a whole: first those
that were read, the one that waits longest for another reader before the others. What was requested ahead and not yet read gives
way only to a reader that waits, not to what is requested ahead for others.

The bound counts what is requested, what is kept, and what was evicted while somebody still uses it. Where there is no room, a
reader has to do without the cache. A window whose request fails is forgotten: the next reader requests it again.
"""

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import numpy as np

from local_log.errors import Unavailable
from remote.read.read_ahead import WINDOW_BYTES, Pool
from remote.store.api import Body

CHUNK_BYTES: Final = 256 << 10
"""Small, for readers of one batch; large enough for what a batch's neighbours have to say."""
LARGE_WINDOW_BYTES: Final = 16 << 20
WINDOWS_MIN: Final = 16
"""A cache with room for fewer large windows has smaller ones."""


_NUMBERS: Final = count()


@dataclass(frozen=True, slots=True)
class CachedSegment:
    """A segment's log of `size` bytes, which `fetch(start, end)` reads; requests begin and end at multiples of `chunk_bytes`.

    `key` differs for every other content.
    """

    key: Hashable
    size: int
    fetch: Callable[[int, int], Body] = field(compare=False)
    chunk_bytes: int
    forget: Callable[[int, int], None] | None = field(default=None, compare=False)
    """Deletes damaged bytes from where `fetch` may have them."""


class Window:
    """The bytes `[start, end)` of a segment. `notes` is for what readers find out about them; `number` is no other window's."""

    __slots__ = ("_data", "_found", "end", "is_ahead", "is_begun", "lock", "notes", "number", "segment", "start")

    def __init__(self, segment: CachedSegment, start: int, end: int) -> None:
        self.segment, self.start, self.end = segment, start, end
        self.number = next(_NUMBERS)
        self.is_begun = False
        """Whether a thread requests the bytes; the cache's lock is for it."""
        self.is_ahead = False
        """Whether it was requested ahead and nobody has read it; the cache's lock is for it, too."""
        self.notes: object = None
        self.lock = threading.Lock()
        """For whoever changes the notes."""
        self._found: Future[memoryview] = Future()
        self._data: memoryview | None = None
        """Once they have come: to ask the future takes as long as all else that a read of a window does."""

    @property
    def is_there(self) -> bool:
        """Whether `data` returns or raises at once."""
        return self.has_come or self._found.done()

    @property
    def has_come(self) -> bool:
        """Whether `data` returns at once."""
        return self._data is not None

    @property
    def data(self) -> memoryview:
        """The bytes; waits for them. Raises what the request raised."""
        return self._found.result() if self._data is None else self._data

    def found(self, data: memoryview) -> None:
        """They have come."""
        self._data = data
        self._found.set_result(data)

    def failed(self, error: BaseException) -> None:
        """They do not come."""
        self._found.set_exception(error)


class WindowCache:
    """At most `bytes_max` bytes. `pool` requests ahead; without one nothing is. Thread-safe."""

    def __init__(
        self, bytes_max: int, pool: Pool | None = None, window_bytes: int = WINDOW_BYTES, chunk_bytes: int = CHUNK_BYTES
    ) -> None:
        self.bytes_max, self.window_bytes, self.chunk_bytes = bytes_max, window_bytes, chunk_bytes
        self._pool = pool
        self._lock = threading.Lock()
        self._windows: dict[tuple[Hashable, int], Window] = {}
        """By segment and number of the chunk."""
        self._was_read: OrderedDict[Window, None] = OrderedDict()
        self._was_not_read: OrderedDict[Window, None] = OrderedDict()
        self._used = self._ahead = 0
        self._freed: deque[int] = deque()
        """Sizes that are used no more. A window may be freed anywhere, also by the thread that has the lock."""
        self._is_closed = False

    @property
    def used(self) -> int:
        """Bytes that count against the bound."""
        with self._lock:
            return self._used_now()

    @property
    def is_far_ahead(self) -> bool:
        """Whether more than a quarter of the bound is taken by what was requested ahead and not yet read."""
        return self._ahead > self.bytes_max // 4

    def window(self, segment: CachedSegment, position: int, wanted_end: int) -> Window | None:
        """The window with a byte, whose bytes have come or were requested now, up to `wanted_end` or further.

        None if there is no room for it. Raises what the request raises.
        """
        with self._lock:
            window = self._windows.get(_place(segment, position))
            if window is None:
                window = self._begun(segment, position, wanted_end, is_awaited=True)
                if window is None:
                    return None
            is_mine, window.is_begun = not window.is_begun, True
        if is_mine:  # nobody has, or the pool has not got to it
            self._request(window)
        window.data  # noqa: B018  # waits, and raises
        with self._lock:
            self._touch(window)
        return window

    def at_hand(self, segment: CachedSegment, position: int) -> Window | None:
        """The window with a byte if its bytes are there."""
        with self._lock:
            window = self._windows.get(_place(segment, position))
            if window is None or not window.is_there:
                return None
            self._touch(window)
            return window

    def there(self, segment: CachedSegment, position: int) -> Window | None:
        """The same for who does not read: it is not evicted the later for it."""
        with self._lock:
            window = self._windows.get(_place(segment, position))
        return window if window is not None and window.has_come else None

    def ahead(
        self, segment: CachedSegment, start: int, end: int, at_least: int, came: Callable[[Window], object] = lambda _: None
    ) -> int:
        """Requests what is missing of `[start, end)`, as far as there is room. Returns up to where all is there or requested.

        No request is for less than `at_least` bytes, unless these are the last of the segment or before others. `came` is
        called by the thread that has brought a window.
        """
        end = min(end, segment.size)
        while start < end and self._pool is not None:
            with self._lock:
                window = self._windows.get(_place(segment, start))
                is_new = window is None
                if window is None and (end - start >= at_least or end == segment.size):
                    window = self._begun(segment, start, end, is_awaited=False)
                if window is None:
                    return start
                if is_new:
                    window.is_ahead = True
                    self._ahead += window.end - window.start
            if is_new:
                self._pool.submit(self._request_ahead, window, came)
            start = window.end
        return start

    def forget(self, window: Window) -> None:
        """Its bytes are not what they should be: the next reader requests them again."""
        with self._lock:
            self._remove(window)
        if window.segment.forget is not None:
            window.segment.forget(window.start, window.end)

    def counts(self, kept: object, size: int) -> bool:
        """Whether there is room for `size` bytes of what a reader keeps besides, which count until `kept` is gone."""
        with self._lock:
            if not self._take(size, is_awaited=True):
                return False
        weakref.finalize(kept, self._freed.append, size).atexit = False
        return True

    def run(self, call: Callable[[Window], object], window: Window) -> None:
        """Calls it on a thread of the pool, if there is one."""
        if self._pool is not None and not self._is_closed:
            self._pool.submit(call, window)

    def close(self) -> None:
        """Requests nothing more ahead, also of what waits for a thread of the pool."""
        self._is_closed = True

    def _begun(self, segment: CachedSegment, position: int, wanted_end: int, *, is_awaited: bool) -> Window | None:
        """A window from the chunk of `position` on, up to the next one that there is."""
        size = segment.chunk_bytes
        first, at_most = position // size, max(1, self.window_bytes // size)
        stop = first + 1
        while stop * size < min(wanted_end, segment.size) and stop < first + at_most and (segment.key, stop) not in self._windows:
            stop += 1
        window = Window(segment, first * size, min(stop * size, segment.size))
        if not self._take(window.end - window.start, is_awaited=is_awaited):
            return None
        for number in range(first, stop):
            self._windows[segment.key, number] = window
        return window

    def _request_ahead(self, window: Window, came: Callable[[Window], object]) -> None:
        with self._lock:
            is_mine, window.is_begun = not window.is_begun, True
        if is_mine:
            self._request(window)
            if window.has_come:
                came(window)

    def _request(self, window: Window) -> None:
        size = window.end - window.start
        try:
            data = self._fetched(window)
        except BaseException as error:
            with self._lock:
                self._remove(window)
            self._freed.append(size)
            window.failed(error)
            return
        # Views of the array keep it, so it is gone when nobody has bytes of it any more.
        weakref.finalize(data, self._freed.append, size).atexit = False
        with self._lock:
            self._was_not_read[window] = None
        window.found(data.data)

    def _fetched(self, window: Window) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        if self._is_closed:
            raise Unavailable("nothing is read from the archive any more, as this process ends: ask another one")
        start, end = window.start, window.end
        data = np.frombuffer(window.segment.fetch(start, end), np.uint8)
        if len(data) != end - start:
            raise AssertionError(f"{len(data)} bytes for [{start}, {end})")
        return data

    def _touch(self, window: Window) -> None:
        self._is_not_ahead(window)
        if window in self._was_read:
            self._was_read.move_to_end(window)
        elif window in self._was_not_read:
            del self._was_not_read[window]
            self._was_read[window] = None

    def _is_not_ahead(self, window: Window) -> None:
        if window.is_ahead:
            window.is_ahead = False
            self._ahead -= window.end - window.start

    def _used_now(self) -> int:
        while self._freed:
            self._used -= self._freed.popleft()
        return self._used

    def _take(self, size: int, *, is_awaited: bool) -> bool:
        """Takes so many bytes of the bound; makes room first."""
        if size > self.bytes_max:
            return False
        missing = self._used_now() + size - self.bytes_max
        while missing > 0 and (self._was_read or (is_awaited and self._was_not_read)):
            window = next(iter(self._was_read or self._was_not_read))
            missing -= window.end - window.start
            self._remove(window)
            del window
        if self._used_now() + size > self.bytes_max:  # somebody still uses what was evicted
            return False
        self._used += size
        return True

    def _remove(self, window: Window) -> None:
        self._is_not_ahead(window)
        self._was_read.pop(window, None)
        self._was_not_read.pop(window, None)
        size, key = window.segment.chunk_bytes, window.segment.key
        for number in range(window.start // size, -(-window.end // size)):
            if self._windows.get((key, number)) is window:
                del self._windows[key, number]


def window_bytes_for(bytes_max: int) -> int:
    """The size of windows for a cache of `bytes_max` bytes: the larger, the fewer requests, each of which costs servers a ms."""
    return LARGE_WINDOW_BYTES if bytes_max >= WINDOWS_MIN * LARGE_WINDOW_BYTES else WINDOW_BYTES


def _place(segment: CachedSegment, position: int) -> tuple[Hashable, int]:
    return segment.key, position // segment.chunk_bytes
