"""Where the log cleaner runs: in threads of its own, or for a simulation in the thread of its caller."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol


class Background(Protocol):
    """Runs jobs."""

    def run(self, jobs: int, job: Callable[[], None]) -> None:
        """Starts so many jobs, unless some still run. Raises what one of the earlier ones has raised."""

    def pause(self, ms: int) -> None:
        """Lets a job wait for so long, or until `stop`."""

    def stop(self) -> None:
        """Waits until no job runs, and starts no more."""


class Threads:
    """As many threads as there are jobs; they start with the first ones."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._running: list[Future[None]] = []
        self._stopping = threading.Event()

    def run(self, jobs: int, job: Callable[[], None]) -> None:
        """See Background."""
        ended = [future for future in self._running if future.done()]
        self._running = [future for future in self._running if not future.done()]
        for future in ended:
            future.result()
        if not self._running and not self._stopping.is_set():
            self._pool = self._pool or ThreadPoolExecutor(jobs, "log-cleaner")
            self._running = [self._pool.submit(job) for _ in range(jobs)]

    def pause(self, ms: int) -> None:
        """See Background."""
        self._stopping.wait(ms / 1000)

    def stop(self) -> None:
        """See Background."""
        self._stopping.set()
        if self._pool is not None:
            self._pool.shutdown()


class AtOnce:
    """Runs jobs before `run` returns, and never waits."""

    def run(self, jobs: int, job: Callable[[], None]) -> None:
        """See Background."""
        for _ in range(jobs):
            job()

    def pause(self, ms: int) -> None:
        """See Background."""

    def stop(self) -> None:
        """See Background."""
