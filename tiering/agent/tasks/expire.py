"""A partition's retention, as the configuration says; of a topic of which it says nothing, nothing goes."""

from dataclasses import dataclass
from typing import Final

from local_log.errors import LogError, NoSuchFile
from local_log.log_reader import LogReader, open_log
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest.store import load_newest
from remote.store.api import ObjectStore
from remote.store.store_time import StoreRun
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job
from tiering.agent.watch import Mark
from tiering.cluster import Cluster
from tiering.lag.archived import Archived
from tiering.retention import expire as retention
from tiering.retention.due import next_due_ms
from tiering.retention.plan import RetentionPlan
from tiering.retention.policy import Given, says_what_is_kept
from tiering.retention.run import WRITER, LocalTier, Retention

LONGEST_MS: Final = 3_600_000
"""After this a partition is looked at again whatever was known of it: others may have committed to it."""


@dataclass(frozen=True, slots=True)
class Retaining:
    """Retention of archived partitions that this host has, too. Between two turns of one lie at least `interval_ms`."""

    store: ObjectStore
    clock: Clock
    ids: Ids
    given: tuple[Given, ...]
    interval_ms: int
    cluster: Cluster | None = None

    def wants(self, topic: str) -> bool:
        """Whether something says what is to be kept of a topic."""
        return says_what_is_kept(self.given, topic)

    def step(self, job: Job, mark: Mark) -> Outcome:
        """Deletes what has waited long enough, and gives up what is no longer kept."""
        try:
            log = open_log(mark.log_dir.disk, mark.folder, mark.partition, mark.start, mark.high_watermark)
            return self._retained(job, log, mark)
        except NoSuchFile:
            return Outcome(job)  # its broker has deleted or moved it
        except LogError as e:
            return Outcome(job, error=e)

    def _retained(self, job: Job, log: LogReader, mark: Mark) -> Outcome:
        path = PartitionPath(log.partition.topic, log.topic_id, log.partition.partition)
        stored = load_newest(self.store, path)
        if stored is None:
            return Outcome(job, due_ms=self.clock.now_ms() + LONGEST_MS)
        local = LocalTier(mark.log_dir.path, {log.partition: log})
        due = Retention(self.store, self.clock, self.ids, self.given, local, cluster=self.cluster).plan(path, stored.manifest)
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
