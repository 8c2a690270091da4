"""Work done by a few threads at a time, its results in order. With one thread no other is started."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Final, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

POLL_SECONDS: Final = 0.25
"""So often it is asked whether to wait on."""


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
    in_flight: deque[Future[R]] = deque()
    for job in jobs:
        if len(in_flight) == threads:
            yield in_flight.popleft().result()
        in_flight.append(pool.submit(act, job))
    while in_flight:
        yield in_flight.popleft().result()


def streams_in_order(jobs: Iterable[Callable[[], Iterable[R]]], threads: int) -> Iterator[R]:
    """The results of all jobs, in the order of the jobs, `threads` of them at work at a time; those of one come as it gives them.

    One thread is the caller's own, which takes each job no further than its results are asked for. What a job raises is raised
    here. When nobody asks any more, each job that was begun goes on to its next result, and the rest is not done.
    """
    if threads == 1:
        for job in jobs:
            yield from job()
        return
    is_over = Event()
    pool = ThreadPoolExecutor(threads)
    try:
        streams = [_Stream(job, is_over) for job in jobs]
        for stream in streams:
            pool.submit(stream.run)
        for stream in streams:
            yield from stream.results()
    finally:
        is_over.set()
        pool.shutdown(cancel_futures=True)


class _Stream(Generic[R]):
    """What a job gives, kept until somebody asks for it."""

    def __init__(self, job: Callable[[], Iterable[R]], is_over: Event) -> None:
        self._job = job
        self._is_over = is_over
        self._given: SimpleQueue[tuple[R] | BaseException | None] = SimpleQueue()

    def run(self) -> None:
        try:
            for result in () if self._is_over.is_set() else self._job():
                self._given.put((result,))
                if self._is_over.is_set():
                    break
        except BaseException as e:
            self._given.put(e)
        else:
            self._given.put(None)

    def results(self) -> Iterator[R]:
        while (given := self._given.get()) is not None:
            if isinstance(given, BaseException):
                raise given
            yield given[0]


def as_completed(act: Callable[[T], R], jobs: Iterable[T], threads: int, is_over: Callable[[], bool]) -> Iterator[R]:
    """The results of the jobs as they come; no more of them where none has come for a moment and `is_over` says that none will.

    Who still waits then is left behind, and does not keep the process. What `act` raises is raised here.
    """
    rest, turn, given = iter(jobs), Lock(), SimpleQueue[tuple[R] | BaseException | None]()

    def work() -> None:
        try:
            while True:
                with turn:
                    job = next(rest)
                given.put((act(job),))
        except StopIteration:
            given.put(None)
        except BaseException as e:
            given.put(e)

    for _ in range(threads):
        Thread(target=work, name="as-they-come", daemon=True).start()
    at_work = threads
    while at_work:
        try:
            result = given.get(timeout=POLL_SECONDS)
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


def serialized(call: Callable[[T], None]) -> Callable[[T], None]:
    """A call that several threads make, made by one of them at a time."""
    turn = Lock()

    def made(value: T) -> None:
        with turn:
            call(value)

    return made
