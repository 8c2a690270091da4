"""Small items share a task, large ones have their own, and every item is in one."""

from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.work_division import OPEN_BYTES, ROUNDS_MIN, TASK_BYTES, pack_tasks

MIB = 1 << 20


def tasks_of(sizes: list[int], cores: int) -> list[list[int]]:
    return pack_tasks(sizes, cores, lambda size: size)


def test_ten_thousand_small_items_are_a_few_tasks():
    found = tasks_of([MIB] * 10_000, 2)
    assert len(found) == 80
    assert {len(task) for task in found} <= {125, 126}


def test_large_items_have_a_task_each_and_the_largest_begins():
    assert tasks_of([TASK_BYTES, 3 * TASK_BYTES, 2 * TASK_BYTES], 2) == [[3 * TASK_BYTES], [2 * TASK_BYTES], [TASK_BYTES]]


def test_where_there_is_little_to_do_every_core_has_some_of_it():
    assert tasks_of([MIB] * 100, 8) == [[MIB] * 7] * 4 + [[MIB] * 6] * 12


def test_tasks_are_of_about_one_size():
    assert tasks_of([64 * MIB] * 6 + [32 * MIB] * 2, 2) == [[64 * MIB] * 2] * 2 + [[64 * MIB, 32 * MIB]] * 2


def test_items_of_no_bytes_are_requests_all_the_same():
    assert len(tasks_of([0] * 100_000, 2)) == 13


def test_a_user_who_wants_smaller_tasks_or_more_of_them_gets_them():
    sizes = [MIB] * 100
    assert len(pack_tasks(sizes, 2, lambda size: size, task_bytes=10 * MIB)) == 11
    assert len(pack_tasks(sizes, 2, lambda size: size, tasks_min=30)) == 30
    assert len(pack_tasks(sizes, 2, lambda size: size, tasks_min=1_000)) == 100


@given(st.lists(st.integers(0, 4 * TASK_BYTES), min_size=1, max_size=60), st.integers(1, 16))
def test_every_item_is_in_one_task_and_no_task_is_more_than_an_item_larger_than_another(sizes: list[int], cores: int):
    found = tasks_of(sizes, cores)
    assert sorted(size for task in found for size in task) == sorted(sizes)
    weights = [sum(task) + OPEN_BYTES * len(task) for task in found]
    assert weights == sorted(weights, reverse=True)
    assert min(len(sizes), ROUNDS_MIN * cores) <= len(found) <= len(sizes)
    assert all(weight - min(task) - OPEN_BYTES <= weights[-1] for task, weight in zip(found, weights, strict=True))
