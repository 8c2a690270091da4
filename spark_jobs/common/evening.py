"""Work cut so that all cores end at about the same time. Pure.

Tasks begin in the order of their sizes, so what is left for the last round is small; but seven tasks of one size are four rounds
for two cores all the same, and one task leaves all cores but one idle.
"""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

ROUNDS_MAX: Final = 8
"""With more rounds than these, what is idle in the last one is too little to be worth another task."""
PIECE_BYTES_MIN: Final = 4 << 20
"""As an archive stores them: a compressed segment has some times as many to decode."""


def evened(items: Sequence[T], cores: int, size_of: Callable[[T], int], cut: Callable[[T, int], Sequence[T]]) -> list[T]:
    """The items, the largest first; those of a last round that leaves cores idle are cut into as many pieces as there are cores.

    `cut(item, pieces)` cuts one into two or more, none of them smaller than PIECE_BYTES_MIN.
    """
    ordered = sorted(items, key=size_of, reverse=True)
    rest = len(ordered) % cores
    if not rest or len(ordered) > ROUNDS_MAX * cores:
        return ordered
    whole, last = ordered[:-rest], ordered[-rest:]
    for number, item in enumerate(last):
        pieces = min(cores // rest + (number < cores % rest), size_of(item) // PIECE_BYTES_MIN)
        whole.extend(cut(item, pieces) if pieces > 1 else (item,))
    return whole
