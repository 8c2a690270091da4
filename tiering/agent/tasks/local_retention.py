"""Local retention of log directories that the agent owns: what the archive has leaves the disk when local.retention says so."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from local_log.errors import LogError, NotFound
from local_log.log_reader import open_log
from remote.clock import Clock
from remote.read.context import Decoder
from remote.store.api import ObjectStore
from remote.transforms.decoded_bytes import DecodedBytes
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job, Kind, Waiting
from tiering.agent.state import AgentState, Changes
from tiering.agent.tasks.task import nothing_to_do
from tiering.agent.watch import Mark
from tiering.local_tier.local_retention import is_due, retain
from tiering.local_tier.local_tier import LocalTier


@dataclass(slots=True)
class LocalRetentionTask:
    """Checks each tiered log of `tier` every `interval_ms`. The store is asked only when there is something to delete.

    `decoded` is for what has to be read of the archive.
    """

    store: ObjectStore
    clock: Clock
    tier: LocalTier
    interval_ms: int
    decoded: Decoder = DecodedBytes
    kind: Kind = Kind.local
    attempts_max: int | None = None

    def plan(self, state: AgentState, changes: Changes, now_ms: int) -> None:
        """A partition is due when it is first there, then at each interval."""
        for _, mark in changes.dropped:
            state.queue.remove(Job(self.kind, mark.folder))
        for before, mark in changes.noted:
            if before is None:
                state.queue.bring_forward(Job(self.kind, mark.folder), now_ms)

    def turn(self, job: Job, state: AgentState) -> Callable[[], Outcome]:
        """Deletes what may go of one log."""
        mark = state.marks.get(job.subject)
        if mark is None:
            return nothing_to_do(job)
        view = state.views.get(job.subject)
        archive_start = view.archived.log_start_offset if view is not None and view.archived is not None else 0
        return partial(self._partition, job, mark, archive_start)

    def done(self, outcome: Outcome, was: Waiting, state: AgentState, now_ms: int) -> None:
        """Waits for the next interval."""
        if outcome.job.subject in state.views:
            state.queue.bring_forward(outcome.job, now_ms + self.interval_ms)

    def _partition(self, job: Job, mark: Mark, archive_start: int) -> Outcome:
        now_ms = self.clock.now_ms()
        try:
            if not self.tier.is_tiered(mark.partition):
                return Outcome(job, asked_nothing=True)
            log = self.tier.log(mark.partition)
            now = log.offsets
            reader = open_log(mark.log_dir.disk, mark.folder, mark.partition, now.log_start, now.high_watermark.offset)
            if archive_start <= now.log_start and not is_due(log, reader, now_ms, self.tier.policies):
                return Outcome(job, asked_nothing=True)
            deleted = retain(log, reader, self.store, now_ms, self.tier.policies, self.decoded, self.tier.checkpoint)
            return Outcome(job, deleted=deleted)
        except NotFound:
            return Outcome(job, asked_nothing=True)  # the topic was deleted, or the segments while they were looked at
        except LogError as e:
            return Outcome(job, error=e)
