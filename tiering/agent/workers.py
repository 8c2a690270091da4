"""Where turns are done: by a few threads, or, in a simulation, by the caller itself."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Protocol

from remote.clock import Clock
from tiering.agent.outcome import Outcome

Turn = Callable[[], Outcome]


class Workers(Protocol):
    """Does turns. What a turn raises is raised by `finished`."""

    def start(self, turn: Turn) -> None:
        """Begins a turn."""

    def finished(self, wait_s: float) -> list[Outcome]:
        """The turns that have ended; where there are none, those of the next seconds, if only of the first of them."""

    def wake(self) -> None:
        """Makes `finished` return; from any thread, and from a signal's handler."""


class InTurn:
    """One turn after the other, by who calls; time passes on `clock` alone."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._done: list[Outcome] = []

    def start(self, turn: Turn) -> None:
        """See Workers. It is over on return."""
        self._done.append(turn())

    def finished(self, wait_s: float) -> list[Outcome]:
        if not self._done and wait_s > 0:
            self._clock.sleep(wait_s)
        done, self._done = self._done, []
        return done

    def wake(self) -> None:
        """See Workers. Nobody is there to be woken."""


class Threads:
    """Turns by as many threads as are free."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="agent")
        self._done: SimpleQueue[Future[Outcome] | None] = SimpleQueue()

    def start(self, turn: Turn) -> None:
        self._pool.submit(turn).add_done_callback(self._done.put)

    def finished(self, wait_s: float) -> list[Outcome]:
        ended: list[Future[Outcome] | None] = []
        try:
            ended.append(self._done.get(timeout=max(0.0, wait_s)))
            while True:
                ended.append(self._done.get_nowait())
        except Empty:
            return [future.result() for future in ended if future is not None]

    def wake(self) -> None:
        self._done.put(None)
