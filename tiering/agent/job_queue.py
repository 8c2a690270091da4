"""The jobs that wait and the jobs that run, and whether the store lets them through: what `schedule` decides over."""

from dataclasses import replace

from local_log.errors import FILE_ERRORS, Conflict, Fenced
from remote.clock import Jitter
from tiering.agent.outcome import Failure
from tiering.agent.schedule import OPEN, Backoff, Gate, Job, Waiting, choose, earlier, moved, wake_ms


class JobQueue:
    """One thread changes it. `chance` makes waits after failures longer or shorter."""

    def __init__(self, threads: int, backoff: Backoff, chance: Jitter) -> None:
        self._threads, self._backoff, self._chance = threads, backoff, chance
        self.waiting: dict[Job, Waiting] = {}
        self.running: dict[Job, Waiting] = {}
        self.gate: Gate = OPEN

    def put(self, job: Job, waiting: Waiting) -> None:
        """The job waits so, whatever was known of it before."""
        self.waiting[job] = waiting

    def bring_forward(self, job: Job, due_ms: int) -> None:
        """The job is due at that time at the latest, unless it waits after a failure."""
        self.waiting[job] = earlier(self.waiting.get(job), due_ms)

    def remove(self, job: Job) -> None:
        """The job does not wait any more."""
        self.waiting.pop(job, None)

    def start(self, job: Job) -> None:
        """The job waits no more, and runs."""
        self.running[job] = self.waiting.pop(job)

    def end(self, job: Job) -> Waiting:
        """The job runs no more; gives how it waited before."""
        return self.running.pop(job)

    def next(self, now_ms: int) -> list[Job]:
        """The jobs to start now, in order."""
        return choose(self.waiting, self.running, self._threads, now_ms, self.gate)

    def due(self, now_ms: int) -> int:
        """How many jobs could have started by now."""
        return sum(waiting.due_ms <= now_ms for waiting in self.waiting.values())

    def wake_ms(self) -> int:
        """When the next job is to be started."""
        return wake_ms(self.waiting, self.running, self._threads, self.gate)

    def move(self, by_ms: int) -> None:
        """The clock was set back or forward: everything waits for as long as before."""
        self.waiting = moved(self.waiting, by_ms)
        self.gate = replace(self.gate, until_ms=self.gate.until_ms + by_ms)

    def succeeded(self) -> None:
        """The store has answered a job."""
        self.gate = OPEN

    def failed(self, job: Job, error: Failure, now_ms: int) -> None:
        """A job has failed: where the store did not answer, all others may have to wait."""
        if not isinstance(error, (*FILE_ERRORS, Conflict, Fenced)):
            self.gate = self.gate.after_failure(job.subject, now_ms, self._backoff, self._chance(), str(error))

    def try_again(self, job: Job, was: Waiting, now_ms: int) -> None:
        """The job waits for its next attempt, longer after each failure."""
        failures = was.failures + 1
        self.waiting[job] = replace(was, due_ms=now_ms + self._backoff.wait_ms(failures, self._chance()), failures=failures)
