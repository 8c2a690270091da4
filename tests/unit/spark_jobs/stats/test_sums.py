"""Sums merge: in any order, grouped in any way, and with nothing."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.stats.sums import HOUR_MS, HourSums, OffsetSums, PartitionSums, merged

counts = st.integers(0, 1 << 40)
hour_sums = st.builds(
    HourSums,
    *[counts] * 7,
    record_bytes_min=st.none() | counts,
    record_bytes_max=counts,
    codecs=st.dictionaries(st.integers(0, 4), st.integers(1, 99)),
    producers=st.frozensets(st.integers(0, 9)),
)
hours = st.none() | st.integers(0, 5).map(lambda n: n * HOUR_MS)
sums = st.builds(PartitionSums, st.builds(OffsetSums, counts, counts), st.dictionaries(hours, hour_sums))


@given(sums, sums, sums)
def test_sums_may_be_grouped_in_any_way(a: PartitionSums, b: PartitionSums, c: PartitionSums) -> None:
    assert (a + b) + c == a + (b + c)


@settings(max_examples=30)
@given(st.lists(sums, max_size=6).flatmap(lambda parts: st.tuples(st.just(parts), st.permutations(parts))))
@pytest.mark.slow
def test_the_order_of_parts_does_not_matter(of: tuple[list[PartitionSums], list[PartitionSums]]) -> None:
    parts, mixed = of
    assert merged(mixed) == merged(parts)


@given(sums)
def test_nothing_changes_nothing(a: PartitionSums) -> None:
    assert a + PartitionSums() == PartitionSums() + a == a


@given(sums, sums)
def test_the_total_of_both_is_the_sum_of_the_totals(a: PartitionSums, b: PartitionSums) -> None:
    assert (a + b).total == a.total + b.total
    assert (a + b).missing_offsets == a.missing_offsets + b.missing_offsets
