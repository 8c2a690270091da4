"""The agents beside the brokers, each on the machine of one, which may lose its power."""

from dataclasses import dataclass, field, replace

from local_log.errors import Corrupt, LogError, Unreadable
from local_log.formats.primitives import INT64_MAX
from local_log.log_dir import LogDir
from local_log.ranges import Range
from remote.keys import PartitionPath
from remote.store.api import ObjectStore
from simulated.agents import STATE, AgentHost
from simulated.broker import LOGS, PARTITION, Broker, Mount
from simulated.disks import DiskOf
from simulated.schedule import MINUTE_MS, Actor
from tiering.agent.agent import Agent
from tiering.agent.memory import MemoryFile, key_of
from tiering.agent.schedule import Kind
from tiering.agent.seen_there import KEEP_MS
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.tasks.expire import ExpireTask
from tiering.agent.tasks.lost_partitions import LostPartitionsTask
from tiering.agent.tasks.sweep import SweepTask
from tiering.agent.tasks.task import Task
from tiering.agent.view import AgentView
from tiering.losses.seen_logs import SeenFile, SeenLog


@dataclass(eq=False, kw_only=True)
class BrokerAgent(AgentHost):
    """The machine of a broker."""

    broker: Broker
    known: dict[str, list[Range]] = field(default_factory=dict)
    """What is not to be forgotten of topics that were deleted, by their ids."""
    _looked_at: dict[str, Range] = field(default_factory=dict)
    """What agents have found of logs that the archive knew when they looked again: it is in the folder by then."""
    _grew: dict[str, tuple[int, Range]] = field(default_factory=dict)
    """The same, and when the agent that lives now has looked: KEEP_MS later the folder has it, too."""
    _lost_power: set[str] = field(default_factory=set)
    """Topics that were there when the power failed: the files of the log directory may tell less of them since."""
    _came_back: set[str] = field(default_factory=set)
    """Topics whose log was moved away and back: the folder may have what it had before."""

    def __post_init__(self) -> None:
        self.broker.machine, self.of, self.topic = self, self.broker.name, PARTITION.topic

    def loses_power(self, lost: float, seed: int) -> None:
        """See AgentHost; what the folder has of a log is there afterwards."""
        kept = self._kept()
        self._lost_power |= {*self._looked_at}
        super().loses_power(lost, seed)
        now = self._kept()
        if kept is not None and kept.topic_id in self._looked_at and (now is None or now.topic_id != kept.topic_id):
            raise self.tasks.schedule.violated(f"{self.name} has kept {kept}, and its folder has {now} after a loss of power")

    def log_is_new(self) -> None:
        """What it had before is forgotten with it, unless an agent has noticed that it was gone: other replicas have it."""
        self._came_back.add(self.tasks.path.topic_id)
        self._looked_at.pop(self.tasks.path.topic_id, None)
        self._grew.pop(self.tasks.path.topic_id, None)

    def topic_is_deleted(self) -> None:
        """What is kept of its log is not to be forgotten, but for what its files do not tell any more since a loss of power."""
        seen = self._kept()
        logs = [log for log in self.log_dir_now().logs() if log.partition == PARTITION]
        most = SeenLog.of(logs[0], 0).end_offset if logs else INT64_MAX
        if seen is not None and seen.topic_id not in self._came_back:
            self.known.setdefault(seen.topic_id, []).append((seen.start_offset, min(seen.end_offset, most)))
        for topic_id, (start, end) in self._looked_at.items():
            self.known.setdefault(topic_id, []).append((start, min(end, most)))

    def steps(self, agent: Agent) -> None:
        before, state, failures, unmounts = _archived(agent), agent._state, self.disk.failures, self.broker.unmounts
        marks, was_mounted = state.marks, self.broker.is_mounted
        agent.step()
        has_looked = state.marks is not marks and was_mounted and self.broker.unmounts == unmounts
        if not has_looked or self.disk.failures > failures:
            return
        now, now_ms = _archived(agent), agent._now_ms
        for topic_id in self._lost_power & self._looked_at.keys() & now.keys():  # it may have left less of it
            start, end = self._looked_at[topic_id]
            self._looked_at[topic_id] = start, min(end, max(start, now[topic_id][1]))
        for topic_id in before.keys() & now.keys():
            if not failures:  # else it may have grown since it was kept
                self._looked_at.setdefault(topic_id, before[topic_id])
            at_ms, (_, end) = self._grew.setdefault(topic_id, (now_ms, before[topic_id]))
            if now_ms - at_ms >= KEEP_MS:
                start = now[topic_id][0]
                self._looked_at[topic_id] = start, max(start, end)
            if not 0 <= now_ms - at_ms < KEEP_MS:  # its clock may have been set back
                self._grew[topic_id] = now_ms, before[topic_id]
            kept = self._kept()
            if kept is None or kept.topic_id != topic_id:
                raise self.tasks.schedule.violated(f"{self.name} has looked at {topic_id} twice, and has kept {kept}")

    def has_stopped(self, agent: Agent) -> None:
        """See AgentHost; what it has come to know since its last look is in the folder, too, of the logs and of the archive."""
        now, kept = _archived(agent), self._kept()
        if not agent._state.there._files:
            return
        with self.disk.healthy():
            archived = MemoryFile(self.disk, STATE, "agent.json").load().archived
        for view in agent._state.views.values():
            if (
                view.archived is not None
                and view.topic_id is not None
                and archived.get(key_of(view.partition, view.topic_id)) != view.archived
            ):
                raise self.tasks.schedule.violated(f"{self.name} has stopped with {view.archived}, and kept {archived}")
        for topic_id, (start, end) in now.items():
            if kept is None or (kept.topic_id, kept.start_offset, kept.end_offset) != (topic_id, start, end):
                raise self.tasks.schedule.violated(
                    f"{self.name} has stopped with [{start}, {end}) of {topic_id}, and kept {kept}"
                )

    def _kept(self) -> SeenLog | None:
        """What the folder has of the log."""
        with self.disk.healthy():
            file = SeenFile.of(self.disk, STATE, self.log_dir_now(), self.broker.source, self.tasks.judge.store.url)
            return file.load().get(PARTITION)

    def ends(self) -> None:
        super().ends()
        self._grew.clear()

    def is_calm(self, view: AgentView) -> None:
        """See AgentHost; it shows the topic that is there, and manifests have recorded that logs are gone of those before it."""
        super().is_calm(view)
        judge, shown = self.tasks.judge, {one.topic_id for one in view.partitions}
        if shown != ({self.tasks.path.topic_id} if self.broker.has_replica else set()):
            raise self.tasks.schedule.violated(f"{self.name}, which lives on, shows {shown}, not {self.tasks.path.topic_id}")
        for path in (self.path(topic_id) for topic_id in self.known if topic_id != self.tasks.path.topic_id):
            newest = judge.newest(path)
            if newest is None or newest.manifest.is_deleted or judge.watched[path].may_be_deleted:
                continue
            if self.broker.source in newest.manifest.local_log_start_offsets.keys() - newest.manifest.gone.keys():
                raise self.tasks.schedule.violated(
                    f"{self.name}, which lives on, has not recorded that its log of {path} is gone"
                )

    def log_dir(self, process: Actor) -> LogDir:
        return LogDir(DiskOf(process, Mount(self.broker)), LOGS)

    def log_dir_now(self) -> LogDir:
        return LogDir(self.broker.disk, LOGS)

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
        """A directory in the midst of its recovery may be damaged, and the disk may not be mounted."""
        if isinstance(error, Unreadable):
            return self.broker.unmounts > 0
        return isinstance(error, Corrupt) and kind is Kind.copy


def _archived(agent: Agent) -> dict[str, Range]:
    """What lies on disk of partitions of which a manifest is known, by their topics."""
    views = agent._state.views.values()
    found = ((v.seen, v.archived is not None and not v.is_left_alone) for v in views)
    return {seen.topic_id: (seen.start_offset, seen.end_offset) for seen, is_known in found if seen is not None and is_known}
