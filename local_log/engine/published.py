"""The offsets that a log's writer publishes and its readers take, without a lock.

A plain append publishes only `LocalLog.end_values`, which costs one assignment. Everything else that changes offsets publishes
all of them as one value. Before bytes are truncated or files are deleted, the writer publishes offsets without them; a reader
who took its offsets earlier notices this after its read, and reads again.
"""

from collections.abc import Callable
from typing import TypeVar

from local_log.engine.local_log import LocalLog
from local_log.engine.offsets import Isolation, LogOffsets, OffsetMetadata
from local_log.errors import LogError, NotFound, OffsetOutOfRange

T = TypeVar("T")

_tuple = tuple.__new__  # as a named tuple's constructor, in a third of its time


class PublishedOffsets:
    """The published offsets of a log. Only `publish` and `withdraw` change them; the log's lock protects both."""

    __slots__ = ("_local", "_located", "_value", "truncations")

    def __init__(self, local: LocalLog, log_start: int) -> None:
        self._local = local
        local.on_removed = self._move
        start = OffsetMetadata(log_start)
        self._value = LogOffsets(log_start, log_start, start, None, local.end)
        self._located: tuple[int, OffsetMetadata, OffsetMetadata] = 0, start, start
        self.truncations = 0
        """How many truncations have begun. While it stays the same, no byte that was below the log's end is changed."""

    def is_unchanged(self, truncations: object) -> bool:
        """Whether that many truncations have begun, as when a range was found (see `file_range.Source`)."""
        return self.truncations == truncations

    @property
    def moves(self) -> int:
        """See `LogOffsets`."""
        return self._value.moves

    def current(self) -> LogOffsets:
        """The offsets at this moment."""
        while True:
            value, end = self._value, self._local.end_values
            if value is self._value:  # else the end may be another value's
                return value if value.is_moving or end == value.end else value._replace(end=OffsetMetadata._make(end))

    def publish(self, log_start: int, local_log_start: int, high_watermark: OffsetMetadata, first: OffsetMetadata | None) -> None:
        """Publishes the offsets with the log's end."""
        moves = self._value.moves + self._value.is_moving  # what a query saw of a move may be overwritten from now on
        self._value = LogOffsets(log_start, local_log_start, high_watermark, first, self._local.end, moves)

    def publish_end(self) -> OffsetMetadata:
        """Publishes the log's end, which is also its high watermark, when nothing else has changed and no transaction is open.

        It returns the end.
        """
        log_start, local_log_start, *_, moves, is_moving = self._value
        end = _tuple(OffsetMetadata, self._local.end_values)
        self._value = _tuple(LogOffsets, (log_start, local_log_start, end, None, end, moves + is_moving, False))
        return end

    def withdraw(self, log_start: int, end: OffsetMetadata) -> None:
        """Publishes that only `[log_start, end)` can be read. Afterwards the rest may be changed, until the next `publish`."""
        value = self._value
        high_watermark, first = value.high_watermark, value.first_unstable
        if high_watermark.offset < log_start:
            high_watermark = OffsetMetadata(log_start)
        self._value = value._replace(
            log_start=log_start,
            local_log_start=max(log_start, min(value.local_log_start, end.offset)),
            high_watermark=min(high_watermark, end),
            first_unstable=OffsetMetadata(log_start) if first is not None and first.offset < log_start else first,
            end=end,
            moves=value.moves + 1,
            is_moving=True,
        )
        if end.offset < self._local.log_end_offset:
            self.truncations += 1  # after the value: whoever read the number before takes no offset that is truncated now

    def _move(self) -> None:
        self._value = self._value._replace(moves=self._value.moves + 1)

    def undisturbed(self, query: Callable[[LogOffsets], T]) -> T:
        """The result of a query of files. It is repeated if a truncation, deletion or compaction began or ended meanwhile.

        Also if a file is missing during one: a compacted segment is found while its files still get their names.
        """
        while True:
            now = self.current()
            try:
                found = query(now)
            except LogError as e:
                is_missing = isinstance(e, NotFound) and not isinstance(e, OffsetOutOfRange)
                if self._value.moves == now.moves and not (is_missing and now.is_moving):
                    raise
            else:
                if self._value.moves == now.moves:
                    return found

    def up_to(self, now: LogOffsets, isolation: Isolation) -> OffsetMetadata:
        """The end of what a read returns, with its position, which is looked up if no writer knew it."""
        end = now.up_to(isolation)
        if not end.is_offset_only:
            return end
        moves, known, found = self._located
        if moves == now.moves and known is end:
            return found
        found = locate(self._local, end.offset)
        self._located = now.moves, end, found
        return found


def locate(local: LocalLog, offset: int) -> OffsetMetadata:
    """An offset with its position. In the middle of a batch or in a gap it becomes the offset of the batch found there."""
    try:
        return local.locate(offset)
    except OffsetOutOfRange:
        return OffsetMetadata(offset)
