"""How work is divided among Spark's tasks. Pure.

    split_sizes        ranges of offsets into splits                    the arithmetic of Spark's KafkaOffsetRangeCalculator
    pack_neighbours    small splits of a partition into one task        the data source, whose rows stay in order
    fill_last_round    large items into pieces, so no core is idle      jobs
    pack_tasks         items into tasks of about one size               jobs; bin packing, the largest item first

Starting and ending a task takes Spark some 20 ms, and many a segment is read in less: a topic that gets few records, or rolls its
segments every hour, has many of some KB. So small ones share a task.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from math import inf
from typing import Final, Protocol, TypeVar

from remote.keys import PartitionPath

PACK_BYTES: Final = 4 << 20
"""What neighbours share a task up to."""
OPEN_BYTES: Final = 16 << 10
"""The request that opens a segment counts as so many bytes, so at most 256 segments share a task of PACK_BYTES."""

ROUNDS_MAX: Final = 8
"""After more rounds of tasks than these, the time that cores are idle in the last round is too short to divide an item for."""
PIECE_BYTES_MIN: Final = 4 << 20
"""Bytes as stored; a compressed segment decodes to several times as many."""

TASK_BYTES: Final = 128 << 20
"""What is worth a task of its own, unless the user has set another size."""
ROUNDS_MIN: Final = 2
"""Tasks for each core, if there are as many items: when one task is slow, other cores run the rest."""

T = TypeVar("T")


class Split(Protocol):
    """A range of offsets of one partition."""

    @property
    def path(self) -> PartitionPath:
        """The partition."""

    @property
    def bytes(self) -> int:
        """About how many bytes are read for it."""

    @property
    def records(self) -> int:
        """How many offsets it has."""


S = TypeVar("S", bound=Split)


@dataclass(frozen=True, slots=True)
class PackLimits:
    """At most how many bytes and records share a task (None: any number), and how many tasks there are at least."""

    bytes_max: int = PACK_BYTES
    records_max: int | None = None
    tasks_min: int | None = None


def split_sizes(sizes: Sequence[int], records_max: int | None, splits_min: int | None) -> list[list[int]]:
    """Divides each range of so many offsets (1 or more) into splits; returns the sizes of its splits.

    No split has more than `records_max` offsets. If that makes fewer than `splits_min`, the large ones are divided by their share
    of all offsets, which makes about as many, depending on rounding.
    """
    first = [_evenly(size, -(-size // records_max)) if records_max else [size] for size in sizes]
    count = sum(map(len, first))
    if splits_min is None or count >= splits_min:
        return first
    total = sum(sizes)
    shares = [_share(size, total, splits_min) for of_range in first for size in of_range]
    uncut = [size for of_range in first for size in of_range if _share(size, total, splits_min) == 1]
    divided, rest_min = total - sum(uncut), max(splits_min - len(uncut), 1)
    share = iter(shares)
    return [
        [part for size in of_range for part in _evenly(size, 1 if next(share) == 1 else _share(size, divided, rest_min))]
        for of_range in first
    ]


def pack_neighbours(splits: Sequence[S], limits: PackLimits) -> Iterator[tuple[S, ...]]:
    """The splits in their order, as packs of neighbours in one partition. A split larger than the limits is alone."""
    merges_left = len(splits) - (limits.tasks_min or 0)  # each split that joins a pack makes one task fewer
    share = sum(map(_cost, splits)) / limits.tasks_min if limits.tasks_min else inf
    cost_max, records_max = min(limits.bytes_max, share), limits.records_max or inf
    pack: list[S] = []
    cost = records = 0
    for split in splits:
        cost, records = cost + _cost(split), records + split.records
        if pack and (merges_left < 1 or pack[-1].path != split.path or cost > cost_max or records > records_max):
            yield tuple(pack)
            pack, cost, records = [], _cost(split), split.records
        merges_left -= bool(pack)
        pack.append(split)
    if pack:
        yield tuple(pack)


def fill_last_round(items: Sequence[T], cores: int, size_of: Callable[[T], int], cut: Callable[[T, int], Sequence[T]]) -> list[T]:
    """The items, the largest first. If the last round would leave cores idle, its items are cut into one piece for each core.

    Seven items of one size are four rounds on two cores, and in the fourth one core is idle. `cut(item, pieces)` cuts an item
    into two or more pieces, none of them smaller than PIECE_BYTES_MIN.
    """
    ordered = sorted(items, key=size_of, reverse=True)
    rest = len(ordered) % cores
    if not rest or len(ordered) > ROUNDS_MAX * cores:
        return ordered
    found, last = ordered[:-rest], ordered[-rest:]
    for number, item in enumerate(last):
        pieces = min(cores // rest + (number < cores % rest), size_of(item) // PIECE_BYTES_MIN)
        found.extend(cut(item, pieces) if pieces > 1 else (item,))
    return found


def pack_tasks(
    items: Sequence[T], cores: int, size_of: Callable[[T], int], *, task_bytes: int = TASK_BYTES, tasks_min: int = 0
) -> list[list[T]]:
    """The items in tasks of about one size: the largest task first, and in each task the largest item first.

    A task has `task_bytes` on average or less. There are at least `tasks_min` tasks, if there are as many items.
    """
    ordered = sorted(items, key=size_of, reverse=True)
    total = sum(map(size_of, ordered)) + OPEN_BYTES * len(ordered)
    count = min(len(ordered), max(ROUNDS_MIN * cores, tasks_min, -(-total // task_bytes)))
    tasks: list[list[T]] = [[] for _ in range(count)]
    smallest = [(0, number) for number in range(count)]
    heapify(smallest)
    for item in ordered:
        size, number = smallest[0]
        tasks[number].append(item)
        heapreplace(smallest, (size + size_of(item) + OPEN_BYTES, number))
    sizes = {number: size for size, number in smallest}
    return [tasks[number] for number in sorted(sizes, key=lambda number: (-sizes[number], number))]


def _cost(split: Split) -> int:
    return split.bytes + OPEN_BYTES


def _share(size: int, total: int, count: int) -> int:
    # Java's Math.round: halves go up
    return max(int(size / total * count + 0.5), 1)


def _evenly(size: int, count: int) -> list[int]:
    return [part for part in _parts(size, count) if part]


def _parts(size: int, count: int) -> Iterator[int]:
    """The last part takes the remainder."""
    for left in range(count, 0, -1):
        part = size // left
        size -= part
        yield part
