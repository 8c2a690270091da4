"""The expiry of a partition, as the configuration says; of a topic of which it says nothing, nothing expires."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from local_log.errors import LogError, NoSuchFile
from local_log.log_reader import LogReader
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest.store import load_newest
from remote.store.api import ObjectStore
from remote.store.store_time import StoreRun
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job, Kind, Waiting
from tiering.agent.state import AgentState, Changes
from tiering.agent.tasks.task import nothing_to_do
from tiering.agent.watch import Mark, opened
from tiering.cluster import Cluster
from tiering.lag.archived import Archived
from tiering.local_tier.errors import UnknownTopicOrPartition
from tiering.local_tier.own_topics import OwnTopics
from tiering.retention import expire as retention
from tiering.retention.due import next_due_ms
from tiering.retention.plan import RetentionPlan
from tiering.retention.policy import Given, says_what_is_kept
from tiering.retention.run import WRITER, LocalTier, Retention

LONGEST_MS: Final = 3_600_000
"""After this a partition is looked at again whatever was known of it: others may have committed to it."""


@dataclass(slots=True)
class ExpireTask:
    """Expires segments of archived partitions that this host has, too. Between two turns of one lie at least `interval_ms`.

    `own` are the topics of log directories that the agent owns: their settings count, and what is deleted from tiered logs is
    deleted from their archives.
    """

    store: ObjectStore
    clock: Clock
    ids: Ids
    given: tuple[Given, ...]
    interval_ms: int
    cluster: Cluster | None = None
    own: OwnTopics | None = None
    kind: Kind = Kind.expire
    attempts_max: int | None = None

    def plan(self, state: AgentState, changes: Changes, now_ms: int) -> None:
        """A partition is due when it is first there, and again some time after a segment of it was archived."""
        for _, mark in changes.dropped:
            state.queue.remove(Job(self.kind, mark.folder))
        for before, mark in changes.noted:
            has_moved = self.own is not None and (before.start if before else 0) != mark.start
            if has_moved or (before is None and says_what_is_kept(self._given(), mark.partition.topic)):
                state.queue.bring_forward(Job(self.kind, mark.folder), now_ms)
        for folder in changes.copied:
            if (job := Job(self.kind, folder)) in state.queue.waiting:
                state.queue.bring_forward(job, now_ms + self.interval_ms)

    def turn(self, job: Job, state: AgentState) -> Callable[[], Outcome]:
        """Deletes what has waited long enough, and expires what is no longer kept."""
        mark = state.marks.get(job.subject)
        return partial(self._partition, job, mark) if mark is not None else nothing_to_do(job)

    def done(self, outcome: Outcome, was: Waiting, state: AgentState, now_ms: int) -> None:
        """Waits until something more may expire."""
        if outcome.due_ms is not None and outcome.job.subject in state.views:
            state.queue.bring_forward(outcome.job, outcome.due_ms)

    def _given(self) -> tuple[Given, ...]:
        return self.given if self.own is None else (*self.given, *self.own.given())

    def _partition(self, job: Job, mark: Mark) -> Outcome:
        try:
            start = mark.start if self.own is None else self.own.tier.followed_start(mark.partition)
            return self._expired(job, opened(replace(mark, start=start)), mark)
        except (NoSuchFile, UnknownTopicOrPartition):
            return Outcome(job, due_ms=self.clock.now_ms() + self.interval_ms)  # deleted, moved, or not mounted now
        except LogError as e:
            return Outcome(job, error=e)

    def _expired(self, job: Job, log: LogReader, mark: Mark) -> Outcome:
        path = PartitionPath(log.partition.topic, log.topic_id, log.partition.partition)
        stored = load_newest(self.store, path)
        if stored is None:
            return Outcome(job, due_ms=self.clock.now_ms() + LONGEST_MS)
        local = LocalTier(mark.log_dir.path, {log.partition: log})
        retained = Retention(
            self.store, self.clock, self.ids, self._given(), local, follows=self.own is not None, cluster=self.own or self.cluster
        )
        due = retained.plan(path, stored.manifest)
        if not isinstance(due, RetentionPlan):
            return Outcome(job, error=due)
        archived = Archived.of(due.manifest)
        now_ms = self.clock.now_ms()
        if due.is_empty:
            return Outcome(
                job, archived=archived, due_ms=next_due_ms(due.manifest, due.policy, now_ms, self.interval_ms, LONGEST_MS)
            )
        done = retention.expire(due, StoreRun(self.store, self.clock, self.ids), WRITER)
        return Outcome(
            job,
            error=done.error,
            archived=archived,
            deleted=done.deleted,
            requests=len(due.due),
            due_ms=now_ms + self.interval_ms,
        )
