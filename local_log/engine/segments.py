"""The segments of a log in the order of their base offsets (LogSegments)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from local_log.engine.segment import Segment
from local_log.errors import Invalid, LogError


class Segments:
    """Segments by base offset. Few are ever added anywhere but at the end."""

    def __init__(self) -> None:
        self._bases: list[int] = []
        self._of: dict[int, Segment] = {}
        self.active: Segment
        """The last one, which is written to; there must be one. Kept rather than looked up: every append asks for it."""

    def __len__(self) -> int:
        return len(self._bases)

    def __iter__(self) -> Iterator[Segment]:
        return iter([self._of[base] for base in self._bases])

    def __contains__(self, base_offset: int) -> bool:
        return base_offset in self._of

    @property
    def base_offsets(self) -> tuple[int, ...]:
        """All base offsets."""
        return tuple(self._bases)

    @property
    def first(self) -> Segment:
        """The first one; there must be one."""
        return self._of[self._bases[0]]

    @property
    def size(self) -> int:
        """Bytes of all log files."""
        return sum(s.size for s in self._of.values())

    def add(self, segment: Segment) -> None:
        """Takes one in, in place of one with the same base offset."""
        if segment.base_offset not in self._of:
            self._bases.insert(bisect_left(self._bases, segment.base_offset), segment.base_offset)
        self._of[segment.base_offset] = segment
        self.active = self._of[self._bases[-1]]

    def remove(self, base_offset: int) -> None:
        """Lets one go, if it is there."""
        if self._of.pop(base_offset, None) is not None:
            del self._bases[bisect_left(self._bases, base_offset)]
            if self._bases:
                self.active = self._of[self._bases[-1]]

    def clear(self) -> None:
        """Forgets all segments; their files stay."""
        self._bases.clear()
        self._of.clear()

    def floor(self, offset: int) -> Segment | None:
        """The last one that starts at or below an offset."""
        at = bisect_right(self._bases, offset) - 1
        return self._of[self._bases[at]] if at >= 0 else None

    def lower(self, base_offset: int) -> Segment | None:
        """The last one that starts below an offset."""
        at = bisect_left(self._bases, base_offset) - 1
        return self._of[self._bases[at]] if at >= 0 else None

    def higher(self, base_offset: int) -> Segment | None:
        """The first one that starts above an offset."""
        at = bisect_right(self._bases, base_offset)
        return self._of[self._bases[at]] if at < len(self._bases) else None

    def between(self, start: int, end: int) -> list[Segment]:
        """Those with offsets in `[start, end)`: from the one that `start` lies in on. Raises Invalid where end is below start."""
        if end < start:
            raise Invalid(f"segments from offset {start} to {end}: the end is below the start")
        if start == end:
            return []
        first = max(bisect_right(self._bases, start) - 1, 0)
        return [self._of[base] for base in self._bases[first : bisect_left(self._bases, end)]]

    def moved_to(self, folder: str) -> None:
        """The log's folder has another name now."""
        for segment in self:
            segment.moved_to(folder)

    def close(self) -> None:
        """Closes all, also where one cannot be: then raises what the first of those did."""
        failed: LogError | None = None
        for segment in self:
            try:
                segment.close()
            except LogError as e:
                failed = failed or e
        if failed is not None:
            raise failed
