"""Into how many parts ranges of offsets are divided: the arithmetic of Spark's KafkaOffsetRangeCalculator. Pure."""

from collections.abc import Iterator, Sequence


def parts(sizes: Sequence[int], records_max: int | None, parts_min: int | None) -> list[list[int]]:
    """The sizes of the parts of each range of so many offsets (1 or more).

    No part has more than `records_max`. Where there are fewer than `parts_min` then, the large ones are divided by their share of
    all offsets: about as many come of it, as rounding has it.
    """
    first = [_evenly(size, -(-size // records_max)) if records_max else [size] for size in sizes]
    count = sum(map(len, first))
    if parts_min is None or count >= parts_min:
        return first
    total = sum(sizes)
    shares = [_share(size, total, parts_min) for of_range in first for size in of_range]
    whole = [size for of_range in first for size in of_range if _share(size, total, parts_min) == 1]
    divided, rest_min = total - sum(whole), max(parts_min - len(whole), 1)
    share = iter(shares)
    return [
        [part for size in of_range for part in _evenly(size, 1 if next(share) == 1 else _share(size, divided, rest_min))]
        for of_range in first
    ]


def _share(size: int, total: int, count: int) -> int:
    # Java's Math.round: halves go up
    return max(int(size / total * count + 0.5), 1)


def _evenly(size: int, count: int) -> list[int]:
    return [part for part in _parts(size, count) if part]


def _parts(size: int, count: int) -> Iterator[int]:
    """The last part takes what does not divide."""
    for left in range(count, 0, -1):
        part = size // left
        size -= part
        yield part
