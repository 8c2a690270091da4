"""Reads of batches that go on where an earlier one ended, so that a reader of fetch after fetch is read ahead.

A first read requests what it asks for and no more. The second one in a row keeps its requests: each later read takes up what
was requested meanwhile.
"""

import threading
from collections import OrderedDict
from collections.abc import Generator, Hashable, Iterator
from typing import Final, Protocol, cast

import numpy as np

from local_log.errors import LogError
from local_log.formats.chunks import Chunk

OPEN_MAX: Final = 16
"""Reads that are kept. Each may have `ReadAhead.ahead_bytes_max` bytes in memory."""


class ReadableAhead(Protocol):
    """What can be read on and on: an archived log, or one over both tiers."""

    @property
    def end_offset(self) -> int:
        """The offset after the last one that may be read."""

    def chunks(self, start_offset: int, end_offset: int) -> Iterator[Chunk]:
        """The batches of `[start_offset, end_offset)`, read ahead."""

    def first_chunks(self, start_offset: int, end_offset: int, wanted_bytes: int) -> Iterator[Chunk]:
        """Like `chunks`, for a caller that stops after about `wanted_bytes`."""


class SequentialRead:
    """The batches of a log from an offset on, taken a limited number of bytes at a time. `of` tells logs apart."""

    def __init__(self, of: Hashable, archived: ReadableAhead, offset: int, first_bytes: int | None) -> None:
        """With `first_bytes` it requests no more than is asked for, in a first request of that size."""
        end = self.end_offset = archived.end_offset
        self.of, self.archived = of, archived
        self.is_ahead = first_bytes is None
        chunks = archived.chunks(offset, end) if first_bytes is None else archived.first_chunks(offset, end, first_bytes)
        self._chunks: Iterator[Chunk] = chunks
        self._rest: Chunk | None = None
        self._failed: LogError | None = None
        self.offset = offset
        """The offset of the next batch, or one before it."""

    def take(self, end_offset: int, max_bytes: int, *, one_at_least: bool) -> tuple[list[Chunk], bool]:
        """Whole batches that begin below `end_offset`, up to `max_bytes`, the first even if it is larger; whether no more follow.

        An error is raised when nothing can be taken before it.
        """
        taken: list[Chunk] = []
        left = max_bytes
        while True:
            try:
                chunk = self._next()
            except LogError:
                if not taken:
                    raise
                return taken, False
            if chunk is None:
                return taken, True
            inside = chunk.where(chunk.batches.last_offset >= self.offset)
            below = int(np.searchsorted(inside.batches.base_offset, end_offset, side="left"))
            fit = int(np.searchsorted(np.cumsum(inside.batches.size), left, side="right"))
            count = min(below, max(fit, int(one_at_least and not taken)))
            if count:
                found = inside.where(slice(count))
                taken.append(found)
                left -= int(found.batches.size.sum())
                self.offset = found.batches.next_offset
            if count < len(inside.batches):
                self._rest = inside.where(slice(count, None))
                return taken, count == below

    def _next(self) -> Chunk | None:
        """The next batches, None after the last. An error is raised again by each later call."""
        if self._failed is not None:
            raise self._failed
        chunk, self._rest = self._rest, None
        try:
            return next(self._chunks, None) if chunk is None else chunk
        except LogError as e:
            self._failed = e
            raise

    def close(self) -> None:
        """Cancels what is requested ahead."""
        cast("Generator[Chunk]", self._chunks).close()


class ArchiveReads:
    """The reads of many partitions that may be continued, at most `open_max`; the one that waits longest gives way.

    Many threads may use it: a read belongs to the thread that has taken it.
    """

    def __init__(self, open_max: int = OPEN_MAX) -> None:
        self._open_max = open_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Hashable, int], SequentialRead | None] = OrderedDict()

    def begin(self, of: Hashable, archived: ReadableAhead, offset: int, max_bytes: int) -> SequentialRead:
        """A read from `offset` on: the one of the same log that ended there, else a new one. Give it back with `end`."""
        with self._lock:
            is_continued = (of, offset) in self._kept
            kept = self._kept.pop((of, offset), None)
        if kept is not None and offset < kept.end_offset:
            return kept
        return SequentialRead(of, archived, offset, None if is_continued else max_bytes)

    def end(self, read: SequentialRead) -> None:
        """Keeps a read for the fetch that continues it. Of a first one only its end is kept."""
        gone: SequentialRead | None = None
        with self._lock:
            self._kept[read.of, read.offset] = read if read.is_ahead else None
            if len(self._kept) > self._open_max:
                _, gone = self._kept.popitem(last=False)
        if gone is not None:
            gone.close()

    def forget(self) -> None:
        """Cancels all reads."""
        with self._lock:
            kept, self._kept = self._kept, OrderedDict()
        for read in kept.values():
            if read is not None:
                read.close()
