"""Runs work in a bounded number of threads and returns its results in order. With one thread no other is started."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, Generic, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")
R = TypeVar("R")

POLL_SECONDS: Final = 0.25
"""How often a waiting caller checks whether to go on."""


@contextmanager
def in_order(act: Callable[[T], R], jobs: Iterable[T], threads: int) -> Iterator[Iterator[R]]:
    """The results of `act` for the jobs, in order; at most `threads` jobs are in flight.

    With one thread the caller runs the jobs itself, so that a simulation sees one order. At the end of the block, started jobs
    are waited for and the others are cancelled.
    """
    if threads == 1:
        yield (act(job) for job in jobs)
        return
    from concurrent.futures import ThreadPoolExecutor  # brings logging, and not all that is here needs it

    pool = ThreadPoolExecutor(threads)
    try:
        yield _results(pool, act, jobs, threads)
    finally:
        pool.shutdown(cancel_futures=True)


def _results(pool: "ThreadPoolExecutor", act: Callable[[T], R], jobs: Iterable[T], threads: int) -> Iterator[R]:
    in_flight: deque[Future[R]] = deque()
    for job in jobs:
        if len(in_flight) == threads:
            yield in_flight.popleft().result()
        in_flight.append(pool.submit(act, job))
    while in_flight:
        yield in_flight.popleft().result()


def streams_in_order(jobs: Iterable[Callable[[], Iterable[R]]], threads: int) -> Iterator[R]:
    """The results of all jobs, in the order of the jobs, with `threads` jobs running; those of one job as it yields them.

    With one thread the caller runs the jobs itself, lazily. An exception of a job is raised here. When the caller stops, each
    started job runs to its next result, and the others are not started.
    """
    if threads == 1:
        for job in jobs:
            yield from job()
        return
    is_over = Event()
    from concurrent.futures import ThreadPoolExecutor  # brings logging, and not all that is here needs it

    pool = ThreadPoolExecutor(threads)
    try:
        streams = [_Stream(job, is_over) for job in jobs]
        for stream in streams:
            pool.submit(stream.run)
        for stream in streams:
            yield from stream.consume()
    finally:
        is_over.set()
        pool.shutdown(cancel_futures=True)


class _Stream(Generic[R]):
    """The results of a job, queued until they are consumed."""

    def __init__(self, job: Callable[[], Iterable[R]], is_over: Event) -> None:
        self._job = job
        self._is_over = is_over
        self._results: SimpleQueue[tuple[R] | BaseException | None] = SimpleQueue()

    def run(self) -> None:
        try:
            for result in () if self._is_over.is_set() else self._job():
                self._results.put((result,))
                if self._is_over.is_set():
                    break
        except BaseException as e:
            self._results.put(e)
        else:
            self._results.put(None)

    def consume(self) -> Iterator[R]:
        while (result := self._results.get()) is not None:
            if isinstance(result, BaseException):
                raise result
            yield result[0]


def as_completed(act: Callable[[T], R], jobs: Iterable[T], threads: int, is_over: Callable[[], bool]) -> Iterator[R]:
    """The results of the jobs in order of completion; ends early once no result arrives and `is_over` is true.

    Threads that are still running then are abandoned; they are daemons. An exception of `act` is raised here.
    """
    rest, lock, results = iter(jobs), Lock(), SimpleQueue[tuple[R] | BaseException | None]()

    def work() -> None:
        try:
            while True:
                with lock:
                    job = next(rest)
                results.put((act(job),))
        except StopIteration:
            results.put(None)
        except BaseException as e:
            results.put(e)

    for _ in range(threads):
        Thread(target=work, name="as-they-come", daemon=True).start()
    at_work = threads
    while at_work:
        try:
            result = results.get(timeout=POLL_SECONDS)
        except Empty:
            if is_over():
                return
            continue
        if isinstance(result, BaseException):
            raise result
        if result is None:
            at_work -= 1
        else:
            yield result[0]
