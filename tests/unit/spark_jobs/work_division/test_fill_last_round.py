"""No core is idle in the last round of a job that has few of them, and nothing is lost by the cutting."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.work_division import PIECE_BYTES_MIN, ROUNDS_MAX, fill_last_round

Item = tuple[int, int]
"""Bytes from where to where."""


def size_of(item: Item) -> int:
    return item[1] - item[0]


def cut(item: Item, pieces: int) -> list[Item]:
    start, end = item
    bounds = [start + (end - start) * n // pieces for n in range(pieces + 1)]
    return list(pairwise(bounds))


def items(*sizes: int) -> list[Item]:
    return [(n << 40, (n << 40) + size) for n, size in enumerate(sizes)]


BIG = 8 * PIECE_BYTES_MIN


def test_the_last_of_seven_is_cut_for_two_cores():
    assert [size_of(i) for i in fill_last_round(items(*[BIG] * 7), 2, size_of, cut)] == [BIG] * 6 + [BIG // 2] * 2


def test_one_item_keeps_all_cores_busy():
    assert len(fill_last_round(items(BIG), 8, size_of, cut)) == 8


def test_rounds_that_leave_no_core_idle_are_left_alone_and_begin_with_the_largest():
    found = fill_last_round(items(BIG, 3 * BIG, 2 * BIG, BIG), 2, size_of, cut)
    assert [size_of(i) for i in found] == [
        3 * BIG,
        2 * BIG,
        BIG,
        BIG,
    ]


def test_what_is_small_is_not_cut():
    assert len(fill_last_round(items(PIECE_BYTES_MIN, PIECE_BYTES_MIN, PIECE_BYTES_MIN), 2, size_of, cut)) == 3


def test_many_rounds_are_left_alone():
    assert len(fill_last_round(items(*[BIG] * (2 * ROUNDS_MAX + 1)), 2, size_of, cut)) == 2 * ROUNDS_MAX + 1


@given(st.lists(st.integers(1, 4 * BIG), max_size=40), st.integers(1, 16))
def test_every_byte_is_in_one_piece_and_no_round_is_added(sizes: list[int], cores: int):
    given_items = items(*sizes)
    found = fill_last_round(given_items, cores, size_of, cut)
    whole: dict[int, list[Item]] = {}
    for start, end in sorted(found):
        whole.setdefault(start >> 40, []).append((start, end))
    joined = [(pieces[0][0], pieces[-1][1]) for _, pieces in sorted(whole.items())]
    assert joined == given_items
    assert all(a[1] == b[0] for pieces in whole.values() for a, b in pairwise(pieces))
    assert -(-len(found) // cores) == -(-len(sizes) // cores)
