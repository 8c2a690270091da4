"""The sweep: deletes what no manifest names, of the partitions that this host has, and what is of no partition."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from local_log.errors import LogError, NoSuchFile
from local_log.log_reader import open_log
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.store.api import ObjectStore
from remote.store.store_time import store_now_ms
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job, Kind, Waiting
from tiering.agent.state import AgentState, Changes
from tiering.agent.tasks.rounds import ATTEMPTS_MAX, Round
from tiering.agent.tasks.task import nothing_to_do, put_piece
from tiering.agent.watch import Mark
from tiering.sweep import collect as sweep

_STRAYS: Final = ""
"""The piece of a round that is of no partition."""


@dataclass(slots=True)
class SweepTask:
    """A round through this host's partitions every `interval_ms`. What goes is older than `grace_ms`, by the store's clock."""

    store: ObjectStore
    clock: Clock
    ids: Ids
    grace_ms: int
    interval_ms: int
    kind: Kind = Kind.sweep
    attempts_max: int | None = ATTEMPTS_MAX
    _round: Round = field(init=False)

    def __post_init__(self) -> None:
        self._round = Round(self.kind, self.interval_ms)

    def plan(self, state: AgentState, changes: Changes, now_ms: int) -> None:
        """Begins a round when it is due."""
        if self._round.is_due(state.memory.swept_ms, now_ms):
            put_piece(self._round.begin([*sorted(state.marks), _STRAYS], now_ms), state.queue, now_ms)

    def turn(self, job: Job, state: AgentState) -> Callable[[], Outcome]:
        """Sweeps one partition, or what is of none."""
        if job.subject == _STRAYS:
            return partial(self._strays, job)
        mark = state.marks.get(job.subject)
        return partial(self._partition, job, mark) if mark is not None else nothing_to_do(job)

    def done(self, outcome: Outcome, was: Waiting, state: AgentState, now_ms: int) -> None:
        """Goes on with the round, and remembers one that is over."""
        put_piece(self._round.next(), state.queue, now_ms)
        if not self._round.is_under_way:
            state.remember(swept_ms=self._round.last_ms)

    def _partition(self, job: Job, mark: Mark) -> Outcome:
        try:
            log = open_log(mark.log_dir.disk, mark.folder, mark.partition)
            path = PartitionPath(log.partition.topic, log.topic_id, log.partition.partition)
            now_ms = store_now_ms(self.store, self.ids)
            due = sweep.plan(self.store, path, now_ms, self.grace_ms)
            gone = sum(1 for _ in sweep.sweep(due, self.store, self.clock, self.ids, now_ms))
        except NoSuchFile:
            return Outcome(job)
        except LogError as e:
            return Outcome(job, error=e)
        return Outcome(job, deleted=gone, requests=gone, refused=next(iter(due.damaged_pins), None))

    def _strays(self, job: Job) -> Outcome:
        gone = 0
        try:
            for piece in sweep.strays(self.store, store_now_ms(self.store, self.ids), self.grace_ms):
                sweep.sweep_stray(self.store, piece)
                gone += 1
        except LogError as e:
            return Outcome(job, error=e, deleted=gone)
        return Outcome(job, deleted=gone, requests=gone)
