"""Work by a few threads: results in order, never more under way than allowed, and nothing begun that nobody waits for."""

import threading
from collections.abc import Iterator

import pytest

from remote.parallel import in_order


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_come_in_the_order_of_the_jobs(threads: int) -> None:
    first = threading.Event()

    def act(number: int) -> int:
        if threads > 1 and number == 0:
            assert first.wait(10)  # the second ends before the first
        if number == 1:
            first.set()
        return number * number

    with in_order(act, range(20), threads) as results:
        assert list(results) == [n * n for n in range(20)]


@pytest.mark.parametrize("threads", [1, 3])
def test_no_more_jobs_are_taken_than_threads_allow(threads: int) -> None:
    taken: list[int] = []

    def jobs() -> Iterator[int]:
        for number in range(10):
            taken.append(number)
            yield number

    with in_order(lambda number: number, jobs(), threads) as results:
        assert taken == []
        for done, _ in enumerate(results, 1):
            assert len(taken) <= done + threads
    assert len(taken) == 10


def test_an_error_is_the_callers_and_what_was_not_begun_is_not_done() -> None:
    done: list[int] = []

    def act(number: int) -> int:
        if number == 2:
            raise ValueError(number)
        done.append(number)
        return number

    with pytest.raises(ValueError, match="2"), in_order(act, range(100), 2) as results:
        list(results)
    assert len(done) < 8
