"""What one task does, one item after the other: pure.

A task takes Spark some 20 ms to start and to end, and a segment of a topic that is written slowly may be read in one. So small
items share a task, and no task has so many that the others wait for it at the end.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heapreplace
from typing import Final, TypeVar

from spark_jobs.source.packing import OPEN_BYTES

T = TypeVar("T")

LOAD_BYTES: Final = 128 << 20
"""What is worth a task of its own, unless a user has said so by an option."""
ROUNDS_MIN: Final = 2
"""Tasks for each core, where there are as many items: what one of them is late, another one may make up for."""


def loads(
    items: Sequence[T], cores: int, size_of: Callable[[T], int], *, load_bytes: int = LOAD_BYTES, loads_min: int = 0
) -> list[list[T]]:
    """The items in loads of about one size, the largest load first, and in each the largest item.

    On an average a load is of `load_bytes` at most, and there are no fewer than `loads_min`, where there are as many items.
    """
    ordered = sorted(items, key=size_of, reverse=True)
    total = sum(map(size_of, ordered)) + OPEN_BYTES * len(ordered)
    count = min(len(ordered), max(ROUNDS_MIN * cores, loads_min, -(-total // load_bytes)))
    found: list[list[T]] = [[] for _ in range(count)]
    lightest = [(0, number) for number in range(count)]
    heapify(lightest)
    for item in ordered:
        size, number = lightest[0]
        found[number].append(item)
        heapreplace(lightest, (size + size_of(item) + OPEN_BYTES, number))
    sizes = {number: size for size, number in lightest}
    return [found[number] for number in sorted(sizes, key=lambda number: (-sizes[number], number))]
