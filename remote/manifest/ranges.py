"""Ranges of offsets [start, end), in the order of their starts: what is left of one, and what touches made one."""

from collections.abc import Iterable

Range = tuple[int, int]


def uncovered(ranges: Iterable[Range], start: int, end: int) -> tuple[Range, ...]:
    """The parts of `[start, end)` that none of the ranges, in the order of their starts, covers."""
    missing = []
    for range_start, range_end in ranges:
        if range_start >= end:
            break
        if range_start > start:
            missing.append((start, range_start))
        start = max(start, range_end)
    return (*missing, (start, end)) if start < end else tuple(missing)


def joined(ranges: Iterable[Range]) -> list[Range]:
    """Ranges in the order of their starts, those that touch made one."""
    found: list[Range] = []
    for start, end in ranges:
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((start, end))
    return found


def without(ranges: Iterable[Range], others: Iterable[Range]) -> tuple[Range, ...]:
    """What the others leave of the ranges."""
    known = sorted(others)
    return tuple(left for start, end in ranges for left in uncovered(known, start, end))
