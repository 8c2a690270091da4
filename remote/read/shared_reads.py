"""Batches of archived logs for readers of fetch after fetch, which share one cache of windows: what one has had, others get.

A first read requests what it asks for and no more. Who goes on where a read ended is read ahead: four times as much as it has
read in a row, up to `ahead_bytes_max`, or half of that where many bytes are requested ahead, also of the next segments. The
thread that brings what was requested ahead checks it as well.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from local_log.errors import LogError
from remote.lru_cache import LruCache
from remote.manifest.entries import PageNotHeld
from remote.manifest.segment_entry import SegmentEntry
from remote.read import read_ahead
from remote.read.checked_windows import CheckedSegment, CheckedWindow, NoRoom, NotThere
from remote.read.log import ArchivedLog
from remote.read.plan import Span
from remote.read.window_cache import CachedSegment, WindowCache

AHEAD_BYTES_MAX: Final = 2 * read_ahead.AHEAD_BYTES_MAX
AHEAD_GROWTH: Final = 4
"""Bytes that are requested ahead for each that was read in a row. With two, a reader waits often until it is far ahead."""
ENDS_MAX: Final = 10_000
"""Ends of reads that are remembered, about 500 bytes each."""
LENT_MAX: Final = 16
"""Windows that are lent at once."""
SEGMENTS_MAX: Final = 1_000


class _End(NamedTuple):
    """Where a read has ended: in which segment, at which byte. `taken` bytes were read in a row, `ahead` are requested.

    By the manifest of `put_id`, what follows is in the segment, too, unless that ends here.
    """

    entry: SegmentEntry
    segment: CheckedSegment
    put_id: str
    position: int
    taken: int
    ahead: int


class Found(NamedTuple):
    """Checked batches, not copied, and the offset after them; whether there are no more below the end."""

    parts: tuple[memoryview, ...]
    size: int
    next_offset: int
    is_over: bool


class SharedReads:
    """For many threads. `of` tells logs apart, whatever version of their manifest they are read with."""

    def __init__(self, cache: WindowCache, ahead_bytes_max: int = AHEAD_BYTES_MAX, ends_max: int = ENDS_MAX) -> None:
        self.cache = cache
        self._ahead_bytes_max, self._ends_max = ahead_bytes_max, ends_max
        self._lock = threading.Lock()
        self._ends: OrderedDict[tuple[Hashable, int], _End] = OrderedDict()
        self._lent: deque[tuple[Hashable, _End]] = deque(maxlen=LENT_MAX)
        """Where reads ended that go on in windows that were lent then."""
        self._segments: LruCache[Hashable, CachedSegment] = LruCache(SEGMENTS_MAX)

    def read(
        self, of: Hashable, log: ArchivedLog, offsets: tuple[int, int], max_bytes: int, *, one_at_least: bool, waits: bool = True
    ) -> Found:
        """Batches of the range of offsets from its first one on, up to `max_bytes`, with `one_at_least` the first in any case.

        Without `waits` NotThere is raised for what is not in memory and checked. Raises NoRoom if the cache has none,
        OffsetOutOfRange, Corrupt, Unavailable, and MissingRange if the archive lacks the offset.
        """
        offset, end_offset = offsets
        began = self._end_at(of, offset)
        if began is not None and began.put_id == log.manifest.put_id:
            end = min(end_offset, began.entry.end_offset)
            taken = began.segment.take_on(began.position, offset, end, max_bytes)
            if taken is not None:
                found = Found(taken.parts, taken.size, taken.next_offset, taken.is_over)
                following = log.spans(found.next_offset, end_offset, waits=waits)
                self._ended(of, log, found, following, began._replace(position=taken.position), began)
                return found
        found, last = Found((), 0, offset, is_over=True), began
        try:
            for span in log.spans(offset, end_offset, waits=waits):
                left, is_first = max_bytes - found.size, one_at_least and not found.parts
                if left <= 0 and not is_first:
                    found = found._replace(is_over=False)
                    break
                segment, at = self._checked(of, log, span, began, waits=waits)
                taken = segment.take(at, span.start, span.end, left, one_at_least=is_first)
                found = Found(found.parts + taken.parts, found.size + taken.size, taken.next_offset, taken.is_over)
                last = _End(span.entry, segment, log.manifest.put_id, taken.position, 0, 0) if taken.parts else last
                if not taken.is_over:
                    break
        except PageNotHeld as e:
            raise NotThere from e
        except (LogError, NoRoom):
            if not found.parts:
                raise
            found = found._replace(is_over=False)
        if found.parts and last is not None:
            self._ended(of, log, found, log.spans(found.next_offset, end_offset, waits=waits), last, began)
        return found

    def lend(self, of: Hashable, log: ArchivedLog, offsets: tuple[int, int]) -> CheckedWindow | None:
        """The window in which a read goes on that ended at the first offset, with its batches from there up to the second one.

        For who answers from it as `read` would. The next read goes on in a row wherever in the window those answers ended. None
        unless a window after this one is requested ahead: until then each read tells how far ahead is to be read.
        """
        end = self._end_at(of, offsets[0])
        if end is None or end.put_id != log.manifest.put_id or end.ahead < self.cache.window_bytes:
            return None
        lent = end.segment.checked(end.position, min(offsets[1], end.entry.end_offset))
        if lent is not None:
            with self._lock:
                self._lent.append((of, end))
        return lent

    def close(self) -> None:
        """Requests nothing more ahead."""
        self.cache.close()

    def _checked(
        self, of: Hashable, log: ArchivedLog, span: Span, began: _End | None, *, waits: bool
    ) -> tuple[CheckedSegment, int]:
        """The segment of a span, and where in it a batch begins, at or before that of the span's start."""
        entry = span.entry
        if began is not None and began.entry.segment_id == entry.segment_id:
            at = began.position
        elif waits or span.start <= entry.base_offset:
            at = log.position_of(entry, span.start)
        else:
            raise NotThere
        return self._named(of, log, entry, waits=waits), at

    def _named(self, of: Hashable, log: ArchivedLog, entry: SegmentEntry, *, waits: bool = True) -> CheckedSegment:
        return CheckedSegment(self.cache, self._segment(of, log, entry), log.manifest.path.segment(entry.log_name), waits)

    def _ended(
        self, of: Hashable, log: ArchivedLog, found: Found, following: Iterator[Span], last: _End, began: _End | None
    ) -> None:
        """Remembers where a read ended, and requests what follows if it was not the first in a row."""
        taken, ahead = found.size, 0
        if began is not None:
            taken, ahead = began.taken + found.size, max(0, began.ahead - found.size)
            wanted = min(AHEAD_GROWTH * taken, self._ahead_bytes_max // 2 if self.cache.is_far_ahead else self._ahead_bytes_max)
            at_least = min(taken, self.cache.window_bytes, self._ahead_bytes_max)
            if wanted - ahead >= at_least:
                with suppress(PageNotHeld):  # the read that comes there waits for it
                    ahead = self._request_ahead(of, log, following, last, wanted, at_least)
        end = last._replace(taken=taken, ahead=ahead)
        with self._lock:
            self._ends[of, found.next_offset] = end
            self._ends.move_to_end((of, found.next_offset))
            if len(self._ends) > self._ends_max:
                self._ends.popitem(last=False)

    def _request_ahead(
        self, of: Hashable, log: ArchivedLog, spans: Iterator[Span], last: _End, wanted: int, at_least: int
    ) -> int:
        """Requests the bytes after a read; how many of them are there or requested."""
        ahead = 0
        for span in spans:
            entry = span.entry
            start = last.position if entry.segment_id == last.entry.segment_id else 0
            end = min(entry.log_size, start + wanted - ahead)
            segment = self._named(of, log, entry)
            unchecked = segment.unchecked_after(start)
            if unchecked is not None:
                self.cache.run(segment.check_ahead, unchecked)
            reached = min(end, self.cache.ahead(segment.segment, start, end, at_least, segment.check_ahead))
            ahead += reached - start
            if reached < end or ahead >= wanted:
                break
        return ahead

    def _segment(self, of: Hashable, log: ArchivedLog, entry: SegmentEntry) -> CachedSegment:
        key = of, entry.segment_id, entry.log_crc32c
        segment = self._segments.get(key)
        if segment is None:
            segment = log.cached_segment(key, entry, self.cache.chunk_bytes)
            self._segments.put(key, segment)
        return segment

    def _end_at(self, of: Hashable, offset: int) -> _End | None:
        with self._lock:
            found, lent = self._ends.get((of, offset)), [end for key, end in self._lent if key == of]
        return found or next(filter(None, (_moved(end, offset) for end in reversed(lent))), None)


def _moved(end: _End, offset: int) -> _End | None:
    """The end of a read that went on in the window in which another one ended, if a batch of that window ends at the offset."""
    known = end.segment.checked(end.position, offset)
    if known is None or not len(known.nexts) or known.nexts[-1] != offset:
        return None
    position = int(known.ends[-1])
    size = position - end.position
    return end._replace(position=position, taken=end.taken + size, ahead=max(0, end.ahead - size))
