"""The scrub: holds the archive against its manifests, a topic a turn."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from local_log.errors import LogError
from remote.clock import Clock
from remote.read.context import Decoder
from remote.scrub.budget import RequestBudget
from remote.scrub.finding import Kind as Finding
from remote.scrub.scrub import scrub
from remote.scrub.settings import ScrubSettings
from remote.store.api import ObjectStore
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job, Kind, Waiting
from tiering.agent.state import AgentState, Changes
from tiering.agent.tasks.rounds import ATTEMPTS_MAX, Round
from tiering.agent.tasks.task import put_piece
from tiering.agent.view import Scrub

FINDINGS_MAX: Final = 100
"""Of one topic, and so many unreadable segments; `tiering scrub` shows all of them."""


@dataclass(slots=True)
class ScrubTask:
    """Scrubs all topics every `interval_ms`. Reads all bytes of the share `sample` of the segments, another one each day."""

    store: ObjectStore
    clock: Clock
    decoder: Decoder
    sample: float
    interval_ms: int
    kind: Kind = Kind.scrub
    attempts_max: int | None = ATTEMPTS_MAX
    _round: Round = field(init=False)
    _so_far: Scrub = field(default=Scrub(0), init=False)

    def __post_init__(self) -> None:
        self._round = Round(self.kind, self.interval_ms)

    def plan(self, state: AgentState, changes: Changes, now_ms: int) -> None:
        """Begins a round when it is due, and not before a log directory has partitions: it may not be mounted yet."""
        last = state.memory.scrub
        if state.marks and self._round.is_due(last.started_ms if last else 0, now_ms):
            self._so_far = Scrub(now_ms)
            topics = sorted({mark.partition.topic for mark in state.marks.values()})
            put_piece(self._round.begin(topics, now_ms), state.queue, now_ms)

    def turn(self, job: Job, state: AgentState) -> Callable[[], Outcome]:
        """Scrubs one topic, all of its partitions."""
        return partial(self._topic, job)

    def done(self, outcome: Outcome, was: Waiting, state: AgentState, now_ms: int) -> None:
        """Adds up what was found, goes on with the round, and remembers one that is over."""
        so_far, failed = self._so_far, int(outcome.error is not None)
        self._so_far = replace(
            so_far,
            topics=so_far.topics + 1,
            failed=so_far.failed + failed,
            findings=(*so_far.findings, *outcome.findings),
            unreadable=(*so_far.unreadable, *outcome.unreadable),
        )
        put_piece(self._round.next(), state.queue, now_ms)
        if not self._round.is_under_way:
            state.remember(scrub=replace(self._so_far, ended_ms=now_ms))

    def _topic(self, job: Job) -> Outcome:
        """Anomalies are no failures of the job, and what cannot be read is no anomaly: an agent may have no keys."""
        now_ms = self.clock.now_ms()
        settings = ScrubSettings(self.sample > 0, self.sample or 1.0, now_ms // 86_400_000)
        found, unreadable = list[str](), list[str]()
        try:
            for finding in scrub(RequestBudget(self.store, None), self.decoder, settings, now_ms, (job.subject,)):
                text = f"{finding.key}: {finding.problem}"
                if finding.kind is Finding.unreadable and len(unreadable) < FINDINGS_MAX:
                    unreadable.append(text)
                elif finding.is_anomaly and len(found) < FINDINGS_MAX:
                    found.append(f"{finding.kind}: {text}")
        except LogError as e:
            return Outcome(job, error=e)
        return Outcome(job, findings=tuple(found), unreadable=tuple(unreadable))
