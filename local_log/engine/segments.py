"""The segments of a log, sorted by base offset (LogSegments)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from local_log.engine.segment import Segment
from local_log.errors import Invalid, LogError


class Segments:
    """Segments by base offset. Segments are almost always added at the end.

    One thread at a time changes them while others read: a change replaces the lists that readers may be using, and only a segment
    at the end is added in place. Queries therefore see the segments as they were at one moment.
    """

    def __init__(self) -> None:
        self._all: tuple[list[int], list[Segment]] = [], []
        self.active: Segment
        """The last segment, which appends go to; there must be one. It is cached, since every append uses it."""

    def __len__(self) -> int:
        return len(self._all[0])

    def __iter__(self) -> Iterator[Segment]:
        return iter(tuple(self._all[1]))

    def __contains__(self, base_offset: int) -> bool:
        bases = self._all[0]
        at = bisect_left(bases, base_offset)
        return at < len(bases) and bases[at] == base_offset

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """All base offsets, sorted."""
        return tuple(self._all[0])

    @property
    def first(self) -> Segment:
        """The first segment; there must be one."""
        return self._all[1][0]

    @property
    def size(self) -> int:
        """The size of all log files in bytes."""
        return sum(s.size for s in self)

    def add(self, segment: Segment) -> None:
        """Adds a segment; it replaces one with the same base offset."""
        bases, segments = self._all
        base = segment.base_offset
        if not bases or base > bases[-1]:
            segments.append(segment)  # before its base offset, by which readers find it
            bases.append(base)
        else:
            at = bisect_left(bases, base)
            end = at + (bases[at] == base)
            self._all = [*bases[:at], base, *bases[end:]], [*segments[:at], segment, *segments[end:]]
        self.active = self._all[1][-1]

    def remove(self, *base_offsets: int) -> None:
        """Removes the segments that are there."""
        gone = frozenset(base_offsets)
        kept = [s for s in self if s.base_offset not in gone]
        self._all = [s.base_offset for s in kept], kept
        if kept:
            self.active = kept[-1]

    def clear(self) -> None:
        """Removes all segments; their files stay."""
        self._all = [], []

    def floor(self, offset: int) -> Segment | None:
        """The last segment whose base offset is at or below an offset."""
        bases, segments = self._all
        at = bisect_right(bases, offset) - 1
        return segments[at] if at >= 0 else None

    def lower(self, base_offset: int) -> Segment | None:
        """The last segment whose base offset is below an offset."""
        bases, segments = self._all
        at = bisect_left(bases, base_offset) - 1
        return segments[at] if at >= 0 else None

    def higher(self, base_offset: int) -> Segment | None:
        """The first segment whose base offset is above an offset."""
        bases, segments = self._all
        at = bisect_right(bases, base_offset)
        return segments[at] if at < len(bases) else None

    def between(self, start: int, end: int) -> list[Segment]:
        """The segments with offsets in `[start, end)`, in order. Raises Invalid if end is below start."""
        if end < start:
            raise Invalid(f"segments from offset {start} to {end}: the end is below the start")
        if start == end:
            return []
        bases, segments = self._all
        return segments[max(bisect_right(bases, start) - 1, 0) : bisect_left(bases, end)]

    def moved_to(self, folder: str) -> None:
        """Uses the new path of a renamed log folder."""
        for segment in self:
            segment.moved_to(folder)

    def close(self) -> None:
        """Closes all segments, also after an error; then raises the first error."""
        failed: LogError | None = None
        for segment in self:
            try:
                segment.close()
            except LogError as e:
                failed = failed or e
        if failed is not None:
            raise failed
