"""What is done to all of an archive now and then, a piece a turn: the sweep by partitions, the scrub by topics."""

from dataclasses import dataclass
from typing import Final

from local_log.errors import LogError, NoSuchFile
from local_log.log_reader import open_log
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.read.context import Decoder
from remote.scrub.budget import RequestBudget
from remote.scrub.finding import NOTES
from remote.scrub.scrub import scrub
from remote.scrub.settings import ScrubSettings
from remote.store.api import ObjectStore
from remote.store.store_time import store_now_ms
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job
from tiering.agent.watch import Mark
from tiering.sweep import collect as sweep

FINDINGS_MAX: Final = 100
"""Of one topic; who wants to know more scrubs it by hand."""


@dataclass(frozen=True, slots=True)
class Sweeping:
    """Deletes what no manifest names, of the partitions that this host has, and strays."""

    store: ObjectStore
    clock: Clock
    ids: Ids
    grace_ms: int

    def step(self, job: Job, mark: Mark) -> Outcome:
        """One partition."""
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

    def strays(self, job: Job) -> Outcome:
        """What is of no partition."""
        gone = 0
        try:
            for piece in sweep.strays(self.store, store_now_ms(self.store, self.ids), self.grace_ms):
                sweep.sweep_stray(self.store, piece)
                gone += 1
        except LogError as e:
            return Outcome(job, error=e, deleted=gone)
        return Outcome(job, deleted=gone, requests=gone)


@dataclass(frozen=True, slots=True)
class Scrubbing:
    """Holds the archive against its manifests; reads the part `sample` of the segments from end to end, another one each day."""

    store: ObjectStore
    clock: Clock
    decoded: Decoder
    sample: float

    def step(self, job: Job) -> Outcome:
        """One topic. Its anomalies are no failures of the job."""
        now_ms = self.clock.now_ms()
        settings = ScrubSettings(self.sample > 0, self.sample or 1.0, now_ms // 86_400_000)
        found: list[str] = []
        try:
            for finding in scrub(RequestBudget(self.store, None), self.decoded, settings, now_ms, (job.subject,)):
                if finding.kind not in NOTES and len(found) < FINDINGS_MAX:
                    found.append(f"{finding.kind}: {finding.key}: {finding.problem}")
        except LogError as e:
            return Outcome(job, error=e)
        return Outcome(job, findings=tuple(found))
