"""The segments of a log, sorted by base offset (LogSegments)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from local_log.engine.segment import Segment
from local_log.errors import Invalid, LogError


class Segments:
    """Segments by base offset. Segments are almost always added at the end."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._of: dict[int, Segment] = {}
        self.active: Segment
        """The last segment, which appends go to; there must be one. It is cached, since every append uses it."""

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[Segment]:
        return iter([self._of[base] for base in self._bases])

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._of

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """All base offsets, sorted."""
        return tuple(self._bases)

    @property
    def first(self) -> Segment:
        """The first segment; there must be one."""
        return self._of[self._bases[0]]

    @property
    def size(self) -> int:
        """The size of all log files in bytes."""
        return sum(s.size for s in self._of.values())

    def add(self, segment: Segment) -> None:
        """Adds a segment; it replaces one with the same base offset."""
        if segment.base_offset not in self._of:
            self._bases.insert(bisect_left(self._bases, segment.base_offset), segment.base_offset)
        self._of[segment.base_offset] = segment
        self.active = self._of[self._bases[-1]]

    def remove(self, base_offset: int) -> None:
        """Removes a segment, if it is there."""
        if self._of.pop(base_offset, None) is not None:
            del self._bases[bisect_left(self._bases, base_offset)]
            if self._bases:
                self.active = self._of[self._bases[-1]]

    def clear(self) -> None:
        """Removes all segments; their files stay."""
        self._bases.clear()
        self._of.clear()

    def floor(self, offset: int) -> Segment | None:
        """The last segment whose base offset is at or below an offset."""
        at = bisect_right(self._bases, offset) - 1
        return self._of[self._bases[at]] if at >= 0 else None

    def lower(self, base_offset: int) -> Segment | None:
        """The last segment whose base offset is below an offset."""
        at = bisect_left(self._bases, base_offset) - 1
        return self._of[self._bases[at]] if at >= 0 else None

    def higher(self, base_offset: int) -> Segment | None:
        """The first segment whose base offset is above an offset."""
        at = bisect_right(self._bases, base_offset)
        return self._of[self._bases[at]] if at < len(self._bases) else None

    def between(self, start: int, end: int) -> list[Segment]:
        """The segments with offsets in `[start, end)`, in order. Raises Invalid if end is below start."""
        if end < start:
            raise Invalid(f"segments from offset {start} to {end}: the end is below the start")
        if start == end:
            return []
        first = max(bisect_right(self._bases, start) - 1, 0)
        return [self._of[base] for base in self._bases[first : bisect_left(self._bases, end)]]

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
