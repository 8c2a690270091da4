"""Ranges of whole batches in files, as they are to be sent, with checksums that were checked: of each batch once.

What was checked is remembered in spans of about SPAN_BYTES, for as long as the file is the same. Their borders are known, and
those of the batches in a span that a range began or ended in, so a range is found without a read of its bytes.

    | span | span | span |        not looked at        | span | span |
      whole batches, whose checksums are right

A file that was appended to keeps its spans. It loses them when it is shorter, when its last span does not end with the batch
that it ended with, or when it was written without becoming longer.
"""

import threading
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from local_log.batch_file import BatchFile
from local_log.checked_spans import Borders, Span, Spans, borders_of
from local_log.errors import Conflict, Corrupt, placed
from local_log.file_range import FileRange, FileState, OpenedFile
from local_log.formats.batches import scan
from local_log.formats.header_layout import LENGTH_AT, LOG_OVERHEAD, MAGIC_AT
from local_log.formats.primitives import Buffer
from local_log.formats.record_batch.batch_v2 import Batches, check_crcs

SPAN_BYTES: Final = 64 << 10
WINDOW_BYTES_MAX: Final = 1 << 20
"""Of a file, read to be checked at once, if so much of it is wanted."""
SPANS_MAX: Final = 1 << 20
"""Of all files together, 40 bytes each, enough for 64 GiB. Beyond, the file that waits longest for a reader is forgotten."""
BATCHES_MAX: Final = 1 << 20
"""Whose borders are known, of all files together, 24 bytes each. Beyond, those of a file that waits longest for a reader are
forgotten, and read again where a range begins or ends."""
_tuple = tuple.__new__  # as a named tuple's constructor, in a third of its time: every fetch makes them
SEAL_BYTES: Final = 21
"""Of a batch's header up to its checksum, in every magic."""
_NO_STATE: Final = FileState(-1, -1, -1, -1)


class Located(NamedTuple):
    """A range with checked batches, None if there are none, the offset after them, and whether the file has no more of them."""

    range: FileRange | None
    next_offset: int
    is_over: bool


class _Wanted(NamedTuple):
    """What is to be located: see `CheckedFiles.locate`."""

    offset: int
    max_bytes: int
    one_at_least: bool


class _Seen(NamedTuple):
    """What was seen of a file when a range of it was found."""

    opened: OpenedFile
    state: FileState
    last: int
    seal: bytes


class _Seals:
    """Tells by a range's last batch whether the file still has it. See `file_range.Source`."""

    def is_unchanged(self, seen: object) -> bool:
        assert isinstance(seen, _Seen)
        if seen.opened.state() == seen.state:
            return True
        was_there = len(seen.seal) == SEAL_BYTES  # else the file was cut before it was read, and may end there still
        return was_there and _seal(seen.opened, seen.last) == seen.seal


_SEALS: Final = _Seals()


@dataclass(slots=True)
class _File:
    """What is known of one file. The lock is held while it is looked at."""

    spans: Spans = field(default_factory=Spans)
    state: FileState | None = None
    seal: bytes = b""
    """Of the last span's last batch."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    borders: dict[int, Borders] = field(default_factory=dict)
    """Of the batches of spans, by where these start."""
    bordered: int = 0
    """How many batches these are."""
    is_in_use: bool = False
    """Whether a range was found at once since the file was last among those to be forgotten."""
    counted: tuple[int, int] = (0, 0)
    """How many spans and batches `CheckedFiles` has counted."""

    def look(self, opened: OpenedFile, state: FileState) -> None:
        """Forgets the spans if the file was changed other than by appends."""
        if state == self.state:
            return
        spans = self.spans
        is_longer = self.state is not None and state.size > self.state.size
        if not (is_longer and len(spans) and _seal(opened, spans.lasts[-1]) == self.seal):
            spans.clear()
            self.forget_borders()
        self.state = state

    def forget_borders(self) -> None:
        """They are read again when they are needed."""
        self.borders, self.bordered = {}, 0


class CheckedFiles:
    """What was checked of many files, for many threads."""

    def __init__(self, spans_max: int = SPANS_MAX, batches_max: int = BATCHES_MAX) -> None:
        self._spans_max, self._batches_max = spans_max, batches_max
        self._files: OrderedDict[tuple[int, int], _File] = OrderedDict()
        self._spans = self._batches = 0
        self._lock = threading.Lock()

    def locate(self, file: BatchFile, offset: int, max_bytes: int, *, one_at_least: bool) -> Located:
        """Whole batches from the one with `offset` on, up to `max_bytes`, and with `one_at_least` the first in any case.

        Raises Corrupt if the first batch is damaged (later ones end the range), Conflict if the file was truncated meanwhile, and
        Unreadable.
        """
        state = file.opened.state()
        size = state.size if file.size is None else file.size
        if state.size < size:
            raise Corrupt(f"the file ends here, where it should have {size} bytes", file=file.name, position=state.size)
        key = state.device, state.inode
        kept = self._kept(key)
        with kept.lock:
            try:
                kept.look(file.opened, state)
                return _Look(file, kept, size, _Wanted(offset, max_bytes, one_at_least)).located()
            except Corrupt as e:
                if file.opened.state().size < state.size:
                    raise Conflict(f"{file.name} was truncated while it was read; fetch again") from e
                raise
            finally:
                self._count(key, kept)

    def locate_checked(self, file: BatchFile, offset: int, max_bytes: int, *, one_at_least: bool) -> Located | None:
        """The same without waiting for another thread, if it was checked before; None if not, or if the file was changed."""
        state = file.opened.state()
        key = state[:2]
        kept = self._files.get(key)
        if kept is None or not kept.lock.acquire(blocking=False):
            return None
        try:
            at = kept.spans.find(offset) if kept.state == state else -1
            found = at if at < 0 else _from_span(file, kept, at, _tuple(_Wanted, (offset, max_bytes, one_at_least)))
            if isinstance(found, int):
                return None
            kept.is_in_use = True
            return found
        finally:
            if kept.bordered != kept.counted[1]:
                self._count(key, kept)
            kept.lock.release()

    def checked(self, file: BatchFile) -> tuple[FileState, Any] | None:
        """The spans of a file that are checked, as an array with a row for each field of `Span`, and its state.

        None if there are none, or another thread would have to be waited for. Raises Unreadable.
        """
        state = file.opened.state()
        kept = self._files.get(state[:2])
        if kept is None or not kept.lock.acquire(blocking=False):
            return None
        try:
            is_known = kept.state == state and len(kept.spans)
            return (state, np.array([np.frombuffer(column, np.int64) for column in kept.spans.columns])) if is_known else None
        finally:
            kept.lock.release()

    def _kept(self, key: tuple[int, int]) -> _File:
        with self._lock:
            kept = self._files.get(key)
            if kept is None:
                kept = self._files[key] = _File()
            else:
                self._files.move_to_end(key)
            return kept

    def _count(self, key: tuple[int, int], kept: _File) -> None:
        """Adds what a file has more than before, and forgets what is too much."""
        if (len(kept.spans), kept.bordered) == kept.counted:
            return
        with self._lock:
            if self._files.get(key) is not kept:
                return
            self._recount(kept)
            while self._spans > self._spans_max and len(self._files) > 1:
                at, gone = self._files.popitem(last=False)
                if gone.is_in_use:  # it waits for a reader from now on
                    self._files[at], gone.is_in_use = gone, False
                else:
                    self._add(gone.counted, -1)
            for waiting in self._files.values():
                if self._batches <= self._batches_max:
                    break
                self._batches -= waiting.counted[1]
                waiting.forget_borders()
                waiting.counted = waiting.counted[0], 0

    def _recount(self, kept: _File) -> None:
        self._add(kept.counted, -1)
        kept.counted = len(kept.spans), kept.bordered
        self._add(kept.counted, 1)

    def _add(self, counted: tuple[int, int], sign: int) -> None:
        self._spans += sign * counted[0]
        self._batches += sign * counted[1]


def _from_span(file: BatchFile, kept: _File, at: int, wanted: _Wanted, is_over: bool | None = None) -> Located | int:
    """What is located from span `at` on, or a span: what follows it has to be looked at first.

    `is_over` is whether the file has no more there, if it was looked at and nothing was found. Every fetch calls this.
    """
    offset, max_bytes, one_at_least = wanted
    spans, end_offset, state = kept.spans, file.end_offset, kept.state
    if offset >= end_offset or state is None:
        return Located(None, offset, is_over=True)
    starts, ends, firsts, nexts, lasts = spans.columns
    start, cut = starts[at], None
    if firsts[at] < offset or ends[at] - start > max_bytes or nexts[at] > end_offset:
        cut = _cut(file, kept, at, wanted)
        if cut is None:
            return Located(None, offset, is_over=one_at_least)
        start = cut.start
    if cut is not None and cut.end != ends[at]:
        is_over = False
    else:
        cut, at = None, spans.last_inside(at, start + max_bytes, end_offset)
        if nexts[at] >= end_offset or ends[at] >= (state.size if file.size is None else file.size):
            is_over = True
        elif at + 1 < len(ends) and starts[at + 1] == ends[at]:
            left = max_bytes - (ends[at] - start)
            cut, is_over = _cut(file, kept, at + 1, _Wanted(firsts[at + 1], left, False)), False
    if is_over is None:
        return at
    _, end, _, next_offset, last = cut or (0, ends[at], 0, nexts[at], lasts[at])
    seen = _tuple(_Seen, (file.opened, state, last, _seal(file.opened, last)))
    return _tuple(Located, (_tuple(FileRange, (file.opened, start, end - start, _SEALS, seen)), next_offset, is_over))


def _cut(file: BatchFile, kept: _File, at: int, wanted: _Wanted) -> Span | None:
    """The batches of a span that are wanted, below the file's end offset; None if there are none."""
    offset, max_bytes, one_at_least = wanted
    span = kept.spans.span(at)
    if span.last == span.start:  # it is one batch
        is_taken = span.first_offset < file.end_offset and (one_at_least or span.end - span.start <= max_bytes)
        return span if is_taken else None
    borders = kept.borders.get(span.start)
    if borders is None or borders.ends[-1] != span.end:  # batches may have been added to it
        borders = _borders(file, kept, span)
    return borders.taken(span, offset, max_bytes, file.end_offset, one_at_least=one_at_least)


def _borders(file: BatchFile, kept: _File, span: Span) -> Borders:
    """The borders of a span's batches, which are read."""
    data = file.opened.read_large(span.start, span.end)
    with placed(file.name, span.start):
        batches, _ = scan(data)
    found = borders_of(batches, span.start)
    before = kept.borders.get(span.start)
    kept.borders[span.start] = found
    kept.bordered += len(found.ends) - (0 if before is None else len(before.ends))
    return found


class _Look:
    """One look for a range in a file, of which the first `size` bytes are there; what is needed is read and checked."""

    def __init__(self, file: BatchFile, kept: _File, size: int, wanted: _Wanted) -> None:
        self.file, self.kept, self.size, self.wanted = file, kept, size, wanted
        self.spans = kept.spans

    def located(self) -> Located:
        wanted = self.wanted
        at = self._find(wanted.offset) if wanted.offset < self.file.end_offset else None
        if at is None:
            return Located(None, wanted.offset, is_over=True)
        is_over: bool | None = None
        while True:
            found = _from_span(self.file, self.kept, at, wanted, is_over)
            if not isinstance(found, int):
                return found
            follows = self._follows(self.spans.ends[found], found + 1)
            if not follows:
                is_over = follows is False

    def _find(self, offset: int) -> int | None:
        """The span with the batch of an offset, or of the next offset that there is; None if no batch follows."""
        spans = self.spans
        known = spans.find(offset)
        if known >= 0:
            return known
        at = bisect_right(spans.nexts, offset)
        position = spans.ends[at - 1] if at else 0
        if not (at and spans.nexts[at - 1] == offset):
            position = max(position, self.file.position_of(offset))
        while True:
            if at < len(spans) and spans.starts[at] <= position:
                return at
            end = self._read_on(position, at)
            if end is None:
                return None
            at, position = bisect_right(spans.nexts, offset), end

    def _follows(self, position: int, at: int) -> bool | None:
        """Looks at the batches after a span; whether there are some, None for a damaged one, which ends the range before it."""
        try:
            return self._read_on(position, at, alone=True) is not None
        except Corrupt:
            return None

    def _read_on(self, position: int, at: int, *, alone: bool = False) -> int | None:
        """Checks batches from `position` on, up to the span `at`, makes them spans, and gives where they end; None without any.

        The first joins the span before, if both are small, unless it is to be `alone`.
        """
        is_last = at == len(self.spans)
        limit = self.size if is_last else self.spans.starts[at]
        with placed(self.file.name, position):
            batches, buffer = self._checked(position, limit)
        if not len(batches):
            if limit > position and not (is_last and self.file.next_offset is None):
                raise Corrupt("no whole batch where batches should be", file=self.file.name, position=position)
            return None
        batches = batches[batches.base_offset < self.file.end_offset]
        if not len(batches):
            return None
        *others, last = borders_of(batches, position).spans(position, SPAN_BYTES)
        if is_last:
            self.kept.seal = bytes(buffer[last.last - position :][:SEAL_BYTES])
        for found in (*others, last):
            before = self.spans.span(at - 1) if at and not alone else None
            if before is not None and self._is_joined(before, found, buffer):
                self.spans.replace(at - 1, found._replace(start=before.start, first_offset=before.first_offset))
            else:
                self.spans.insert(at, found)
                at, alone = at + 1, True
        return last.end

    def _is_joined(self, before: Span, found: Span, buffer: Buffer) -> bool:
        """Whether a new span becomes a part of the one before."""
        if before.end != found.start or found.end - before.start > SPAN_BYTES:
            return False
        magic = self.file.opened.read(before.start + MAGIC_AT, before.start + MAGIC_AT + 1)
        return (magic[0] <= 1) == (buffer[MAGIC_AT] <= 1)

    def _checked(self, position: int, limit: int) -> tuple[Batches, Buffer]:
        """The batches of one kind from a position on, and the bytes that they are in."""
        window = max(SPAN_BYTES, min(self.wanted.max_bytes, WINDOW_BYTES_MAX))
        while True:
            buffer = self.file.opened.read_large(position, min(limit, position + window))
            batches = _right_ones(buffer)
            size = LOG_OVERHEAD + int.from_bytes(buffer[LENGTH_AT:LOG_OVERHEAD], "big", signed=True)
            if len(batches) or len(buffer) < window or size <= window:
                return batches, buffer
            window = size  # one batch is larger


def sealed_range(opened: OpenedFile, position: int, size: int, last: int, seal: bytes) -> FileRange:
    """A range whose last batch began at `last` and had this seal when it was found; without a seal it is taken as changed."""
    return FileRange(opened, position, size, _SEALS, _Seen(opened, _NO_STATE, last, seal))


def _right_ones(buffer: Buffer) -> Batches:
    """The whole batches up to the first damaged one. Raises Corrupt if that is the first."""
    try:
        batches, _ = scan(buffer)
    except Corrupt as e:
        batches, _ = scan(buffer[: e.position or 0])
        if not len(batches):
            raise
    try:
        check_crcs(buffer, batches)
    except Corrupt as e:
        batches = batches[batches.positions < (e.position or 0)]
        if not len(batches):
            raise
    return batches


def _seal(opened: OpenedFile, position: int) -> bytes:
    return opened.read(position, position + SEAL_BYTES)
