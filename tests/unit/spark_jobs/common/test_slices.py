"""How partitions are cut into slices."""

import pytest

from spark_jobs.common.slices import PARTITIONS_MAX, SLICES_PER_CORE, sliced


@pytest.mark.parametrize("count", [0, 1, 7, 16, 17, 1_000, 8_001])
@pytest.mark.parametrize("cores", [1, 2, 100])
def test_every_item_is_in_one_slice_in_order_and_no_slice_is_too_large(count: int, cores: int) -> None:
    slices = sliced(range(count), cores)
    assert [item for of in slices for item in of] == list(range(count))
    assert all(0 < len(of) <= PARTITIONS_MAX for of in slices)
    assert len(slices) <= max(cores * SLICES_PER_CORE, -(-count // PARTITIONS_MAX))


def test_there_are_several_slices_for_each_core_and_small_ones_where_there_is_little() -> None:
    assert len(sliced(range(1_600), 4)) == 4 * SLICES_PER_CORE
    assert [len(of) for of in sliced(range(10), 4)] == [1] * 10
    assert {len(of) for of in sliced(range(100_000), 2)} == {PARTITIONS_MAX}
