"""Work done by a few threads at a time, its results in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def in_order(act: Callable[[T], R], jobs: Iterable[T], threads: int) -> Iterator[Iterator[R]]:
    """What `act` gives for each of the jobs, at most `threads` of them taken before the first of their results is asked for.

    One thread is the caller's own, so that a simulation sees one order. When the block ends, what was begun is waited for, and
    the rest is not done.
    """
    if threads == 1:
        yield (act(job) for job in jobs)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        yield _results(pool, act, jobs, threads)
    finally:
        pool.shutdown(cancel_futures=True)


def _results(pool: ThreadPoolExecutor, act: Callable[[T], R], jobs: Iterable[T], threads: int) -> Iterator[R]:
    flying: deque[Future[R]] = deque()
    for job in jobs:
        if len(flying) == threads:
            yield flying.popleft().result()
        flying.append(pool.submit(act, job))
    while flying:
        yield flying.popleft().result()
