"""What a query's filters leave to be read: too much is never wrong, too little always."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from local_log.ranges import bounding_range
from spark_jobs.source.pushdown import ALL, EVERYTHING, Pushdown, pushdown_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOLDS: dict[type[Filter], Any] = {
    EqualTo: lambda a, b: a == b,
    EqualNullSafe: lambda a, b: a == b,
    GreaterThan: lambda a, b: a > b,
    GreaterThanOrEqual: lambda a, b: a >= b,
    LessThan: lambda a, b: a < b,
    LessThanOrEqual: lambda a, b: a <= b,
    In: lambda a, b: a in b,
}
numbers = st.integers(-3, 12)
comparisons = st.tuples(st.sampled_from([k for k in HOLDS if k is not In]), numbers)
filters = st.one_of(comparisons, st.tuples(st.just(In), st.lists(numbers, max_size=4).map(tuple)))


def has(ranges: Any, number: int) -> bool:
    return bounding_range(ranges, number, number + 1) is not None


@given(st.lists(filters, max_size=4))
def test_an_offset_is_wanted_if_all_filters_hold(asked: list[tuple[Any, Any]]) -> None:
    offsets = pushdown_of([kind(("offset",), value) for kind, value in asked]).offsets
    for offset in range(-5, 15):
        assert has(offsets, offset) == all(HOLDS[kind](offset, value) for kind, value in asked)


@given(st.lists(filters, max_size=3))
def test_a_time_between_two_milliseconds_counts_as_it_compares(asked: list[tuple[Any, Any]]) -> None:
    """Filters are in microseconds, 500 of them a step here, and records in milliseconds."""

    def moment(value: Any) -> Any:
        return tuple(map(moment, value)) if isinstance(value, tuple) else EPOCH + timedelta(microseconds=500 * value)

    times = pushdown_of([kind(("timestamp",), moment(value)) for kind, value in asked]).times_ms
    for ms in range(-4, 8):
        assert has(times, ms) == all(HOLDS[kind](EPOCH + timedelta(milliseconds=ms), moment(value)) for kind, value in asked)


def test_topics_and_partitions_are_those_that_all_filters_name() -> None:
    asked = [In(("topic",), ("a", "b", None)), EqualTo(("topic",), "b"), LessThan(("partition",), 3)]
    found = pushdown_of(asked)
    assert (found.has_topic("b"), found.has_topic("a")) == (True, False)
    assert [found.has_partition(n) for n in range(4)] == [True, True, True, False]


@pytest.mark.parametrize(
    "one",
    [
        Not(EqualTo(("offset",), 5)), IsNotNull(("offset",)), StringStartsWith(("topic",), "a"), EqualTo(("key",), b"k"),
        EqualTo(("offset",), 5.0), EqualTo(("timestamp",), 5), EqualTo(("timestamp",), datetime(2026, 1, 1)),  # noqa: DTZ001
        EqualTo(("headers", "key"), "a"), In(("offset",), ("x", 5)),
    ],
)  # fmt: skip
def test_a_filter_that_is_not_understood_leaves_everything_in(one: Filter) -> None:
    assert pushdown_of([one]) == EVERYTHING == Pushdown(None, ALL, ALL, ALL)


def test_a_null_in_a_list_equals_no_record() -> None:
    assert pushdown_of([In(("offset",), (None, 4))]).offsets == ((4, 5),)
    assert pushdown_of([In(("offset",), ())]).offsets == ()
