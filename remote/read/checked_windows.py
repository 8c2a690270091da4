"""Whole batches in windows of a cache, with checksums that are checked once for as long as a window is kept.

    |        window        |        window        |
    | batch | batch |   batch   | batch | batch |  …

A batch across the border of windows is not copied: an answer has its parts. What is known of a window are the batches that are
whole in it, from the first one on that anybody has asked for, and the one that begins at its end.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from local_log.errors import Corrupt, LogError, placed
from local_log.formats.batches import scan
from local_log.formats.header_layout import LENGTH_AT, LOG_OVERHEAD
from local_log.formats.primitives import Buffer
from local_log.formats.record_batch.batch_v2 import Batches, check_crcs, crcs
from remote.read.window_cache import CachedSegment, Window, WindowCache

BEFORE_BYTES: Final = 16 << 10
"""Bytes that may precede the wanted batch after an index look-up; the index has an entry every 4 KB or so."""


class NotThere(Exception):
    """A window is not there, or its batches are not checked: somebody has to wait for it."""


class NoRoom(Exception):
    """The cache has no room for a window: the bytes have to be read without it."""


class Taken(NamedTuple):
    """Checked batches as parts of windows, the offset and the position after them, and whether no more are to be had."""

    parts: tuple[memoryview, ...]
    size: int
    next_offset: int
    position: int
    is_over: bool


@dataclass(frozen=True, slots=True)
class _Rows:
    """Batches in a row, as columns (int64); positions are those in the segment. The next batch begins at `tail`.

    `problem` is why no batch can be read there.
    """

    starts: Any
    ends: Any
    bases: Any
    nexts: Any
    first: int
    tail: int
    problem: Corrupt | None

    @property
    def size(self) -> int:
        """Memory in bytes."""
        return 4 * int(self.starts.nbytes)


class CheckedWindow(NamedTuple):
    """A window, and batches in it that were checked, as columns (int64); positions are those in the segment."""

    window: Window
    starts: Any
    ends: Any
    bases: Any
    nexts: Any


@dataclass(slots=True)
class _Notes:
    """What is known of a window; of the batch across its end together with the following windows of these numbers."""

    whole: _Rows | None = None
    across: _Rows | None = None
    following: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckedSegment:
    """A segment in a cache; `name` is for errors. With `waits` what is missing is requested and checked, else it is NotThere."""

    cache: WindowCache
    segment: CachedSegment
    name: str
    waits: bool = True

    def take(self, position: int, offset: int, end_offset: int, max_bytes: int, *, one_at_least: bool) -> Taken:
        """Batches from the one with `offset` on, which is at `position` or after it, up to `max_bytes` and below `end_offset`.

        With `one_at_least` the first in any case. Raises Corrupt if the first batch is damaged; later ones end what is taken.
        Raises NotThere, NoRoom, and what a request raises.
        """
        taking = _Taking(self, position, offset, end_offset, max_bytes)
        try:
            taking.take(one_at_least=one_at_least)
        except (LogError, NoRoom):
            if not taking.end:
                raise
        return taking.taken()

    def take_on(self, position: int, offset: int, end_offset: int, max_bytes: int) -> Taken | None:
        """As `take` where an earlier one ended, if what it gives ends in a window that is there and was checked; else None.

        That is most reads of a reader that goes on, and a tenth of the work.
        """
        window = self.cache.at_hand(self.segment, position)
        notes = None if window is None else window.notes
        rows = notes.whole if isinstance(notes, _Notes) else None
        if window is None or rows is None or rows.first > position:
            return None
        first = int(rows.nexts.searchsorted(offset, "right"))
        if first >= len(rows.starts):
            return None
        start = int(rows.starts[first])
        stop = int(rows.ends.searchsorted(start + max_bytes, "right"))
        if not first < stop < len(rows.starts) or rows.bases[stop] >= end_offset:
            return None  # a batch that is larger, or what comes after the window or the end, has to be looked at
        end = int(rows.ends[stop - 1])
        part = window.data[start - window.start : end - window.start]
        return Taken((part,), end - start, int(rows.nexts[stop - 1]), end, is_over=False)

    def checked(self, position: int, end_offset: int) -> CheckedWindow | None:
        """What was checked of the window with a byte, from there on and below `end_offset`; None if it is not there."""
        window = self.cache.there(self.segment, position)
        rows = window.notes.whole if window is not None and isinstance(window.notes, _Notes) else None
        if window is None or rows is None or rows.first > position:
            return None
        kept = slice(int(rows.starts.searchsorted(position)), int(rows.nexts.searchsorted(end_offset, "right")))
        return CheckedWindow(window, rows.starts[kept], rows.ends[kept], rows.bases[kept], rows.nexts[kept])

    def window(self, position: int, wanted_end: int) -> Window:
        """The window with a byte."""
        window = self.cache.at_hand(self.segment, position)
        if window is None and not self.waits:
            raise NotThere
        window = window or self.cache.window(self.segment, position, wanted_end)
        if window is None:
            raise NoRoom
        return window

    def whole(self, window: Window, position: int) -> _Rows:
        """The whole batches in a window, from one at `position` or before it on."""
        known = window.notes.whole if isinstance(window.notes, _Notes) else None
        if known is not None and known.first <= position:
            return known
        if not self.waits:
            raise NotThere
        with window.lock:
            known = window.notes.whole if isinstance(window.notes, _Notes) else None
            if known is not None and known.first <= position:
                return known  # another thread has checked them meanwhile
            found = _checked(window.data[position - window.start :], self.name, position)
            self._note(window, found, lambda notes: replace(notes, whole=found))
        return found

    def check_ahead(self, window: Window) -> None:
        """Checks the batches of a window that is there, and of those there after it, before a reader comes.

        As far as the windows before tell where their batches begin. What is damaged is left to the reader, who is told of it.
        """
        before = self.cache.there(self.segment, window.start - 1)
        at = window.start if not window.start else None if before is None else self._next_begin(before, window)
        following: Window | None = window
        while following is not None and at is not None:
            window = following
            if self.whole(window, at).problem is not None:
                return
            following = self._after(window)
            at = None if following is None or _is_checked(following) else self._next_begin(window, following)

    def unchecked_after(self, position: int) -> Window | None:
        """The window after that with a byte if the former is there to be checked, and the latter was."""
        window = self.cache.there(self.segment, position)
        following = None if window is None or not _is_checked(window) else self._after(window)
        return None if following is None or _is_checked(following) else following

    def _after(self, window: Window) -> Window | None:
        """The window after another one, if it is there."""
        return self.cache.there(self.segment, window.end) if window.end < self.segment.size else None

    def _next_begin(self, window: Window, following: Window) -> int | None:
        """Where the first batch begins in a window after another one; None if that is not known, or is not in it."""
        rows = window.notes.whole if isinstance(window.notes, _Notes) else None
        if rows is None or rows.problem is not None:
            return None
        windows, at = [window, following], rows.tail
        if at >= window.end or at + LOG_OVERHEAD > following.end:
            return at if at == following.start else None
        end = at + self._batch_bytes(windows, at)
        if end > following.end:
            return None
        found = self._checked_across(windows, 1, at, end)
        return None if found.problem is not None else found.tail

    def across(self, windows: list[Window], position: int, wanted_end: int) -> _Rows:
        """The batch that begins in the last of the windows and ends after it. Those that it needs are added to them."""
        at = len(windows)
        known = self._known_across(windows, wanted_end)
        if known is not None:
            return known
        if not self.waits:
            raise NotThere
        del windows[at:]
        self._extend(windows, position + LOG_OVERHEAD, wanted_end)
        end = position + self._batch_bytes(windows, position)
        self._extend(windows, end, wanted_end)
        return self._checked_across(windows, at, position, end)

    def _checked_across(self, windows: list[Window], at: int, position: int, end: int) -> _Rows:
        """The batch `[position, end)` that begins in the window before `windows[at]`, and ends in the last one."""
        window, joined = windows[at - 1], b"".join(parts_of(windows, position, end))
        with window.lock:
            found = _checked(joined, self.name, position)
            self._note(window, found, lambda notes: _Notes(notes.whole, found, _numbers(windows[at:])))
        return found

    def _known_across(self, windows: list[Window], wanted_end: int) -> _Rows | None:
        """The same if it is known, and none of the following windows was requested again since: those may be other bytes."""
        notes, at = windows[-1].notes, len(windows)
        if not isinstance(notes, _Notes) or notes.across is None:
            return None
        self._extend(windows, notes.across.tail, wanted_end)
        return notes.across if _numbers(windows[at:]) == notes.following else None

    def _extend(self, windows: list[Window], end: int, wanted_end: int) -> None:
        if end > self.segment.size:
            raise Corrupt("no whole batch where batches should be", file=self.name, position=windows[-1].end)
        while windows[-1].end < end:
            windows.append(self.window(windows[-1].end, max(end, wanted_end)))

    def _batch_bytes(self, windows: list[Window], position: int) -> int:
        header = b"".join(parts_of(windows, position, position + LOG_OVERHEAD))
        return max(LOG_OVERHEAD + 1, LOG_OVERHEAD + int.from_bytes(header[LENGTH_AT:], "big", signed=True))

    def _note(self, window: Window, found: _Rows, noted: Callable[[_Notes], _Notes]) -> None:
        if found.problem is None and self.cache.counts(found.starts, found.size):
            window.notes = noted(window.notes if isinstance(window.notes, _Notes) else _Notes())


@dataclass(slots=True)
class _Taking:
    """Bytes `[start, end)` of windows in a row are what was taken up to now, up to `next_offset`."""

    of: CheckedSegment
    position: int
    """Up to where it is known what there is to take."""
    next_offset: int
    end_offset: int
    max_bytes: int
    start: int = 0
    end: int = 0
    is_over: bool = False
    windows: list[Window] = field(default_factory=list)

    def take(self, *, one_at_least: bool) -> None:
        """Takes what there is and fits. Raises if something cannot be had, also after others were taken."""
        for rows in self._runs():
            first = int(np.searchsorted(rows.nexts, self.next_offset, side="right"))
            if first < len(rows.starts):
                start = self.start if self.end else int(rows.starts[first])
                stop = int(np.searchsorted(rows.ends, start + self.max_bytes, side="right"))
                stop = max(stop, first + 1) if one_at_least and not self.end else stop
                below = int(np.searchsorted(rows.bases, self.end_offset, side="left"))
                if first < min(stop, below):
                    last = min(stop, below) - 1
                    self.start, self.end, self.next_offset = start, int(rows.ends[last]), int(rows.nexts[last])
                self.is_over = below <= stop and (below < len(rows.starts) or self.next_offset >= self.end_offset)
                if self.is_over or stop < len(rows.starts):
                    return
            if rows.problem is not None:
                for window in self.windows:
                    self.of.cache.forget(window)
                raise rows.problem
        self.is_over = self.position >= self.of.segment.size

    def taken(self) -> Taken:
        """What was taken."""
        parts = tuple(parts_of(self.windows, self.start, self.end)) if self.end else ()
        return Taken(parts, self.end - self.start, self.next_offset, self.end, self.is_over)

    def _runs(self) -> Iterator[_Rows]:
        """The batches from the position on, as far as they may fit."""
        size, wanted_end = self.of.segment.size, self.position + self.max_bytes + BEFORE_BYTES
        while self.position < size:
            if not self.windows or self.windows[-1].end <= self.position:
                self.windows.append(self.of.window(self.position, wanted_end))
            rows, window_end = self.of.whole(self.windows[-1], self.position), self.windows[-1].end
            self.position = rows.tail
            yield rows
            if self.end and self.end - self.start + max(1, window_end - self.position) > self.max_bytes:
                return
            if self.position < min(window_end, size):
                rows = self.of.across(self.windows, self.position, wanted_end)
                self.position = rows.tail
                yield rows


def _is_checked(window: Window) -> bool:
    return isinstance(window.notes, _Notes) and window.notes.whole is not None


def _numbers(windows: Iterable[Window]) -> tuple[int, ...]:
    return tuple(window.number for window in windows)


def parts_of(windows: Iterable[Window], start: int, end: int) -> Iterator[memoryview]:
    """The bytes `[start, end)` of windows in a row, not copied."""
    for window in windows:
        first, last = max(start, window.start), min(end, window.end)
        if first < last:
            yield window.data[first - window.start : last - window.start]


def _checked(buffer: Buffer, name: str, position: int) -> _Rows:
    """The whole batches at the begin of a buffer, which is at `position` of the segment; up to the first damaged one."""
    columns: list[tuple[Any, ...]] = [(np.empty(0, np.int64),) * 4]
    view, tail, problem = memoryview(buffer), position, None
    try:
        while problem is None and tail < position + len(view):  # more than once if batches of another magic follow
            rest = view[tail - position :]
            with placed(name, tail):
                batches, _ = scan(rest)
            if not len(batches):
                break
            batches, problem = _right_ones(rest, batches, name, tail)
            if len(batches):
                starts = batches.positions.astype(np.int64) + tail
                columns.append((starts, starts + batches.size.astype(np.int64), batches.base_offset, batches.last_offset + 1))
                tail = int(columns[-1][1][-1])
    except Corrupt as e:
        problem = e
    starts, ends, bases, nexts = (np.concatenate(column).astype(np.int64) for column in zip(*columns, strict=True))
    return _Rows(starts, ends, bases, nexts, position, tail, problem)


def _right_ones(buffer: Buffer, batches: Batches, name: str, position: int) -> tuple[Batches, Corrupt | None]:
    """The batches before the first one whose checksum is wrong, and that."""
    try:
        with placed(name, position):
            check_crcs(buffer, batches)
    except Corrupt as e:
        found = np.fromiter(crcs(buffer, batches), np.uint32, len(batches))
        return batches[: int(np.flatnonzero(found != batches.header["crc"])[0])], e
    return batches, None
