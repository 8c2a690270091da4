"""The agent in a process that owns its log directory, and ends with it."""

from dataclasses import dataclass

from local_log.errors import LogError, Unreadable
from remote.keys import PartitionPath
from remote.store.api import ObjectStore
from simulated.agents import AgentHost
from simulated.archive_tasks import OWN_TOPIC
from simulated.disks import DiskOf
from simulated.own_host import LOGS, OwnHost
from simulated.readers import decoded
from simulated.schedule import MINUTE_MS, Actor
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Kind
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.tasks.expire import ExpireTask
from tiering.agent.tasks.local_retention import LocalRetentionTask
from tiering.agent.tasks.lost_partitions import LostPartitionsTask
from tiering.agent.tasks.task import Task
from tiering.agent.view import AgentView
from tiering.local_tier.own_log_dir import OwnLogDir
from tiering.local_tier.own_topics import OwnTopics


@dataclass(eq=False, kw_only=True)
class OwnAgent(AgentHost):
    """The agent of the process of the moment."""

    host: OwnHost

    def __post_init__(self) -> None:
        self.host.machine, self.of, self.topic = self, "own", OWN_TOPIC

    def log_dir(self, process: Actor) -> OwnLogDir:
        return OwnLogDir(DiskOf(process, self.host), LOGS, self.host.tier)

    def log_dir_now(self) -> OwnLogDir:
        return OwnLogDir(self.host.disk, LOGS, self.host.tier)

    def path(self, topic_id: str) -> PartitionPath:
        return self.host.path

    def its_tasks(self, process: Actor, store: ObjectStore) -> list[Task]:
        tasks, tier = self.tasks, self.host.tier
        self.host.actors.append(process)
        own = OwnTopics((), process, tier=tier)
        found: list[Task] = [
            CopyTask(store, process, process, tasks.transforms(process), own.copies),
            LostPartitionsTask(store, process, process, was_deleted=tier.deleted.__contains__),
        ]
        if not process.is_atomic:  # it rolls the log, and the last agent may not live on to copy that
            found.append(LocalRetentionTask(store, process, tier, 5 * MINUTE_MS, decoded))
            found.append(ExpireTask(store, process, process, tasks.given, 5 * MINUTE_MS, own, own))
        return found

    def is_calm(self, view: AgentView) -> None:
        if not self.host.tier.offline:
            super().is_calm(view)

    def may_come(self, error: LogError, kind: Kind) -> bool:
        """A disk that has failed is offline until the process is started again, which may be already."""
        return isinstance(error, Unreadable)

    def judged(self, outcome: Outcome, topic_id: str | None) -> Outcome:
        if outcome.job.kind is Kind.local and not self.host.tier.offline:
            log = self.host.log
            self.tasks.judge.check_local_log(self.host.path, log)
            self.host.start_max = max(self.host.start_max, log.log_start_offset)
        return super().judged(outcome, topic_id)
