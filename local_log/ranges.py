"""Arithmetic on ranges of whole numbers [start, end), such as offsets or times, in the order of their starts. Pure."""

from collections.abc import Iterable

Range = tuple[int, int]
Ranges = tuple[Range, ...]


def uncovered(ranges: Iterable[Range], start: int, end: int) -> Ranges:
    """The parts of `[start, end)` that none of the ranges, in the order of their starts, covers."""
    missing = []
    for range_start, range_end in ranges:
        if range_start >= end:
            break
        if range_start > start:
            missing.append((start, range_start))
        start = max(start, range_end)
    return (*missing, (start, end)) if start < end else tuple(missing)


def clipped(ranges: Iterable[Range], start: int, end: int) -> Ranges:
    """The parts of the ranges that lie in `[start, end)`, without those of which nothing does."""
    return tuple((max(a, start), min(b, end)) for a, b in ranges if max(a, start) < min(b, end))


def joined(ranges: Iterable[Range]) -> Ranges:
    """Ranges in the order of their starts, those that touch made one."""
    found: list[Range] = []
    for start, end in ranges:
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def without(ranges: Iterable[Range], others: Iterable[Range]) -> Ranges:
    """What the others leave of the ranges."""
    known = sorted(others)
    return tuple(left for start, end in ranges for left in uncovered(known, start, end))


def intersection(one: Iterable[Range], other: Iterable[Range]) -> Ranges:
    """What is in both, in order."""
    others = tuple(other)
    return joined(sorted(both for start, end in one for both in clipped(others, start, end)))


def bounding_range(ranges: Iterable[Range], start: int, end: int) -> Range | None:
    """The least range that holds all of `[start, end)` that is in the ranges, None where nothing is."""
    parts = clipped(ranges, start, end)
    return (parts[0][0], max(b for _, b in parts)) if parts else None
