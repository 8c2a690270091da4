"""The agents beside the brokers, each on the machine of one, which may lose its power."""

from dataclasses import dataclass, field, replace

from local_log.errors import Corrupt, LogError
from local_log.log_dir import LogDir
from remote.keys import PartitionPath
from remote.store.api import ObjectStore
from simulated.agents import STATE, AgentHost
from simulated.brokers import LOGS, PARTITION, Broker
from simulated.disks import DiskOf
from simulated.schedule import MINUTE_MS, Actor
from tiering.agent.schedule import Kind
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.tasks.expire import ExpireTask
from tiering.agent.tasks.lost_partitions import LostPartitionsTask
from tiering.agent.tasks.sweep import SweepTask
from tiering.agent.tasks.task import Task
from tiering.losses.seen_logs import SeenFile, SeenLog


@dataclass(eq=False, kw_only=True)
class BrokerAgent(AgentHost):
    """The machine of a broker."""

    broker: Broker
    known: dict[str, SeenLog] = field(default_factory=dict)
    """What the folder has had of topics when they were deleted, by their ids."""

    def __post_init__(self) -> None:
        self.broker.machine, self.of, self.topic = self, self.broker.name, PARTITION.topic

    def topic_is_deleted(self) -> None:
        """What is kept of its log is not to be forgotten."""
        log_dir = LogDir(self.broker.disk, LOGS)
        seen = SeenFile.of(self.disk, STATE, log_dir, self.tasks.judge.store.url).load().get(PARTITION)
        if seen is not None:
            self.known[seen.topic_id] = seen

    def log_dir(self, process: Actor) -> LogDir:
        return LogDir(DiskOf(process, self.broker), LOGS)

    def path(self, topic_id: str) -> PartitionPath:
        return replace(self.tasks.path, topic_id=topic_id)

    def its_tasks(self, process: Actor, store: ObjectStore) -> list[Task]:
        tasks, waits = self.tasks, self.tasks.waits
        found: list[Task] = [
            CopyTask(store, process, process, tasks.transforms(process)), LostPartitionsTask(store, process, process),
        ]  # fmt: skip
        if "expire" in self.groups and not process.is_atomic:
            found.append(ExpireTask(store, process, process, tasks.given, 5 * MINUTE_MS))
        if "sweep" in self.groups and not process.is_atomic:
            found.append(SweepTask(store, process, process, waits.grace_ms, waits.grace_ms))
        return found

    def may_come(self, error: LogError, kind: Kind) -> bool:
        """A directory in the midst of its recovery may be damaged."""
        return isinstance(error, Corrupt) and kind is Kind.copy
