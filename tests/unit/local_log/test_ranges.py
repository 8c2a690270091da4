from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from local_log.ranges import Range, Ranges, bounding_range, clipped, intersection, joined, uncovered, without

BOUND = st.integers(0, 30)
RANGE = st.tuples(BOUND, BOUND).filter(lambda r: r[0] < r[1])
SORTED = st.lists(RANGE, max_size=6).map(sorted)


def numbers(ranges: list[Range] | Ranges) -> set[int]:
    return {n for start, end in ranges for n in range(start, end)}


@given(ranges=SORTED, asked=RANGE)
def test_what_is_uncovered_and_what_is_clipped_make_up_the_whole(ranges: list[Range], asked: Range) -> None:
    left, held = uncovered(ranges, *asked), clipped(ranges, *asked)
    assert numbers(left) == set(range(*asked)) - numbers(ranges)
    assert numbers(held) == set(range(*asked)) & numbers(ranges)
    assert all(start < end for start, end in (*left, *held))


@given(ranges=SORTED)
def test_joined_ranges_hold_the_same_numbers_and_do_not_touch(ranges: list[Range]) -> None:
    found = joined(ranges)
    assert numbers(found) == numbers(ranges)
    assert all(before[1] < after[0] for before, after in pairwise(found))


@given(one=SORTED, other=SORTED)
def test_a_range_is_in_both_or_left_by_the_other(one: list[Range], other: list[Range]) -> None:
    assert numbers(intersection(one, other)) == numbers(one) & numbers(other)
    assert numbers(without(one, other)) == numbers(one) - numbers(other)


@given(ranges=SORTED, asked=RANGE)
def test_the_bounding_range_is_the_least_that_holds_what_is_inside(ranges: list[Range], asked: Range) -> None:
    held = numbers(clipped(ranges, *asked))
    assert bounding_range(ranges, *asked) == ((min(held), max(held) + 1) if held else None)
