"""The interface of the agent's tasks: which jobs are due, one turn of a job, and what its outcome changes.

A new task is a module like the ones beside this, a member of `Kind`, and a line in `tiering.agent.wiring`.
"""

from collections.abc import Callable
from typing import Protocol

from tiering.agent.job_queue import JobQueue
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job, Kind, Waiting
from tiering.agent.state import AgentState, Changes


class Task(Protocol):
    """One kind of work. All but the turn itself happens in the loop's thread, under the state's lock."""

    kind: Kind
    attempts_max: int | None
    """After this many failures in a row `done` is called with the failure and decides; None to retry for ever."""

    def plan(self, state: AgentState, changes: Changes, now_ms: int) -> None:
        """Puts into the queue what is due. Called before each choice of jobs, mostly without changes."""

    def turn(self, job: Job, state: AgentState) -> Callable[[], Outcome]:
        """The work of one turn of a job that starts now, for a thread of its own."""

    def done(self, outcome: Outcome, was: Waiting, state: AgentState, now_ms: int) -> None:
        """Puts the job, or the next one, into the queue again, and updates the state. `was` is how the job waited."""


def nothing_to_do(job: Job) -> Callable[[], Outcome]:
    """The turn of a job whose partition no longer exists."""
    return lambda: Outcome(job)


def put_piece(piece: Job | None, queue: JobQueue, now_ms: int) -> None:
    """Puts the next piece of a round, if there is one, into the queue as due now."""
    if piece is not None:
        queue.put(piece, Waiting(now_ms))
