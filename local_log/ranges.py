"""Arithmetic on ranges of integers `[start, end)`, such as offsets or times, sorted by start. Pure."""

from collections.abc import Iterable

Range = tuple[int, int]
Ranges = tuple[Range, ...]


def uncovered(ranges: Iterable[Range], start: int, end: int) -> Ranges:
    """The parts of `[start, end)` that no range covers. `ranges` are sorted by start."""
    missing = []
    for range_start, range_end in ranges:
        if range_start >= end:
            break
        if range_start > start:
            missing.append((start, range_start))
        start = max(start, range_end)
    return (*missing, (start, end)) if start < end else tuple(missing)


def clipped(ranges: Iterable[Range], start: int, end: int) -> Ranges:
    """The intersections of the ranges with `[start, end)`, without empty ones."""
    return tuple((max(a, start), min(b, end)) for a, b in ranges if max(a, start) < min(b, end))


def joined(ranges: Iterable[Range]) -> Ranges:
    """The ranges sorted by start, overlapping and adjacent ones merged."""
    found: list[Range] = []
    for start, end in ranges:
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return tuple(found)


def without(ranges: Iterable[Range], others: Iterable[Range]) -> Ranges:
    """The ranges without the parts that `others` cover."""
    known = sorted(others)
    return tuple(left for start, end in ranges for left in uncovered(known, start, end))


def intersection(one: Iterable[Range], other: Iterable[Range]) -> Ranges:
    """The parts that are in both, sorted."""
    others = tuple(other)
    return joined(sorted(both for start, end in one for both in clipped(others, start, end)))


def bounding_range(ranges: Iterable[Range], start: int, end: int) -> Range | None:
    """The smallest range that contains every part of the ranges in `[start, end)`, None if there is none."""
    parts = clipped(ranges, start, end)
    return (parts[0][0], max(b for _, b in parts)) if parts else None
