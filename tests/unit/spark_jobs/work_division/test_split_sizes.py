"""How many parts ranges come in: the cases of Spark's own KafkaOffsetRangeCalculatorSuite, and what must hold of any."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.work_division import split_sizes


@pytest.mark.parametrize(
    ("sizes", "records_max", "parts_min", "expected"),
    [
        ([1], None, None, [[1]]),
        ([1], None, 1, [[1]]),
        ([1, 1], None, 1, [[1], [1]]),
        ([4], None, 4, [[1, 1, 1, 1]]),
        ([5], None, 4, [[1, 1, 1, 2]]),
        ([1, 4], None, 3, [[1], [2, 2]]),
        ([10, 1000], None, 4, [[10], [333, 333, 334]]),
        ([1, 1, 20], None, 4, [[1], [1], [10, 10]]),
        ([99, 999], None, 6, [[99], [199, 200, 200, 200, 200]]),
        ([5, 7], 3, None, [[2, 3], [2, 2, 3]]),
        ([5, 7], 3, 4, [[2, 3], [2, 2, 3]]),
        ([10], 6, 4, [[2, 3, 2, 3]]),
    ],
)
def test_ranges_are_divided_as_by_spark(
    sizes: list[int], records_max: int | None, parts_min: int | None, expected: list[list[int]]
) -> None:
    assert split_sizes(sizes, records_max, parts_min) == expected


@given(st.lists(st.integers(1, 10**9), max_size=8), st.none() | st.integers(10**6, 10**9), st.none() | st.integers(1, 200))
def test_parts_make_up_their_range_and_none_is_empty(sizes: list[int], records_max: int | None, parts_min: int | None) -> None:
    found = split_sizes(sizes, records_max, parts_min)
    assert [sum(of_range) for of_range in found] == sizes
    assert all(0 < part <= (records_max or part) for of_range in found for part in of_range)
