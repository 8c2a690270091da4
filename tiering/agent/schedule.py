"""What is done next, and when: pure decisions over what waits, what runs, and the time.

Who has waited longest goes first. A partition that has more to copy waits anew after each segment, behind all that wait already,
so none starves another. Of those due at the same moment the one goes first that has had the fewest turns, then the one whose
oldest segment is the oldest.

After a failure a job waits as Kafka's ExponentialBackoff has it. Where different jobs fail one after the other, it is the store
that has failed: then one job at a time asks whether it is there again.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

NEVER_MS: Final = 1 << 62
"""A time that does not come."""
FAILED_MAX: Final = 3
"""After so many jobs in a row that have failed, each another one, the store is asked by one at a time."""


class Kind(IntEnum):
    """The task that a job is of; of jobs that are due at the same moment the first kind goes first."""

    lost = 0
    copy = 1
    expire = 2
    sweep = 3
    scrub = 4
    local = 5


@dataclass(frozen=True, slots=True)
class Job:
    """`subject` is a partition's folder, or a topic of the archive for a scrub; "" for what is of no partition.

    `topic_id` is given of a partition that is gone, since its folder may be another topic's by now.
    """

    kind: Kind
    subject: str
    topic_id: str = ""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Since when, or from when on, a job waits for its turn, and how often it has failed in a row.

    `turns` are those that it has had since it has had nothing to do; `oldest_ms` is from when the oldest segment is that it is
    to copy.
    """

    due_ms: int
    failures: int = 0
    turns: int = 0
    oldest_ms: int = NEVER_MS


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long a job waits that has failed: `first_ms`, twice as long each time, up to `max_ms`, a part `jitter` more or less."""

    first_ms: int
    max_ms: int
    jitter: float

    def wait_ms(self, failures: int, chance: float) -> int:
        """The wait after so many failures in a row, 1 and up; `chance` is in [0, 1)."""
        term = self.first_ms * 2.0 ** min(failures - 1, 62)
        return int(min(term * (1 - self.jitter + 2 * self.jitter * chance), self.max_ms))


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether jobs may use the store: the jobs that have failed since the last success, and the time until which none may start.

    `since_ms` is when the first of them failed, `problem` its error.
    """

    failed: frozenset[str] = frozenset()
    attempts: int = 0
    until_ms: int = 0
    since_ms: int = 0
    problem: str = ""

    @property
    def is_shut(self) -> bool:
        """Whether it is the store that fails."""
        return len(self.failed) >= FAILED_MAX

    def after_failure(self, subject: str, now_ms: int, backoff: Backoff, chance: float, problem: str = "") -> "Gate":
        """The gate after a job of `subject` has failed; shut when FAILED_MAX different ones have."""
        failed = self.failed if self.is_shut else self.failed | {subject}
        gate = replace(self, failed=failed)
        if not self.failed:
            gate = replace(gate, since_ms=now_ms, problem=problem)
        if not gate.is_shut:
            return gate
        return replace(gate, attempts=gate.attempts + 1, until_ms=now_ms + backoff.wait_ms(gate.attempts + 1, chance))


OPEN: Final = Gate()


def choose(waiting: Mapping[Job, Waiting], running: Collection[Job], threads: int, now_ms: int, gate: Gate) -> list[Job]:
    """The jobs to start now, in order: no more than `threads` with those that run, and one of a subject at a time."""
    free = (1 if gate.is_shut else threads) - len(running)
    if free <= 0 or now_ms < gate.until_ms:
        return []
    busy = {job.subject for job in running}
    due = sorted((w.due_ms, job.kind, w.turns, w.oldest_ms, job.subject, job.topic_id)
                 for job, w in waiting.items() if w.due_ms <= now_ms)  # fmt: skip
    chosen: list[Job] = []
    for _, kind, _, _, subject, topic_id in due:
        if len(chosen) == free:
            break
        if subject not in busy:
            busy.add(subject)
            chosen.append(Job(kind, subject, topic_id))
    return chosen


def wake_ms(waiting: Mapping[Job, Waiting], running: Collection[Job], threads: int, gate: Gate) -> int:
    """When the next job is to be started, NEVER_MS where nothing is before one of those ends that run."""
    if len(running) >= (1 if gate.is_shut else threads):
        return NEVER_MS
    busy = {job.subject for job in running}
    return max(min((w.due_ms for job, w in waiting.items() if job.subject not in busy), default=NEVER_MS), gate.until_ms)


def moved(waiting: Mapping[Job, Waiting], by_ms: int) -> dict[Job, Waiting]:
    """The jobs after the clock was set back or forward: each waits for as long as before."""
    return {job: replace(w, due_ms=w.due_ms + by_ms) for job, w in waiting.items()}


def earlier(waiting: Waiting | None, due_ms: int) -> Waiting:
    """A job that is due at `due_ms` at the latest. A job that has failed keeps its delay."""
    if waiting is None:
        return Waiting(due_ms)
    return waiting if waiting.failures else replace(waiting, due_ms=min(waiting.due_ms, due_ms))
