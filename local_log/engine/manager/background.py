"""Where the log cleaner runs: in threads of its own, or for a simulation in the thread of its caller."""

import threading
from collections.abc import Callable
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
    """A thread for each job. They are daemons: a process that ends without `stop` does not wait for them, as after a crash."""

    def __init__(self) -> None:
        self._running: list[threading.Thread] = []
        self._raised: list[BaseException] = []
        self._stopping = threading.Event()

    def run(self, jobs: int, job: Callable[[], None]) -> None:
        """See Background."""
        self._running = [thread for thread in self._running if thread.is_alive()]
        if self._raised:
            raise self._raised.pop(0)
        if not self._running and not self._stopping.is_set():
            self._running = [
                threading.Thread(target=self._job, args=(job,), name=f"log-cleaner-{n}", daemon=True) for n in range(jobs)
            ]
            for thread in self._running:
                thread.start()

    def _job(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as e:
            self._raised.append(e)

    def pause(self, ms: int) -> None:
        """See Background."""
        self._stopping.wait(ms / 1000)

    def stop(self) -> None:
        """See Background."""
        self._stopping.set()
        for thread in self._running:
            thread.join()


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
