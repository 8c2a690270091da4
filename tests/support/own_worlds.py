"""A process that owns the log directory on a simulated disk, its archive in memory, and an agent that lives for some minutes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agents import BACKOFF, LOGS, MINUTE_MS, STATE, WorldClock
from archive_fakes import CountingIds, MemoryStore
from local_tiers import ORDERS, SMALL
from made_manifests import assert_sound_archive
from simulated_disk import SimulatedDisk

from local_log.engine.manager.background import AtOnce
from local_log.engine.manager.config import ManagerConfig
from local_log.formats.filenames import TopicPartition
from remote import archive
from remote.keys import PartitionPath
from remote.store.api import ObjectStore
from tiering.agent.agent import Agent
from tiering.agent.controls import Controls
from tiering.agent.memory import MemoryFile
from tiering.agent.settings import Settings, Source, Surroundings
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.tasks.expire import ExpireTask
from tiering.agent.tasks.local_retention import LocalRetentionTask
from tiering.agent.tasks.lost_partitions import LostPartitionsTask
from tiering.agent.workers import InTurn
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.own_log_dir import OwnLogDir
from tiering.local_tier.own_topics import OwnTopics
from tiering.local_tier.service import TierService
from tiering.retention.policy import Given

TIERED = {**SMALL, "remote.storage.enable": "true", "retention.ms": "-1", "local.retention.ms": "60000"}


@dataclass
class OwnWorld:
    """A disk, an archive, and a process that owns the log directory on the one and writes the other."""

    settings: dict[str, str] = field(default_factory=lambda: dict(TIERED))
    clock: WorldClock = field(default_factory=WorldClock)
    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    ids: CountingIds = field(default_factory=CountingIds)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.archive = MemoryStore(self.clock)
        self.clock.on_tick = lambda now_ms: setattr(self.disk, "now_ms", now_ms)
        self.disk.now_ms = self.clock.now
        archive.create_archive(self.archive, self.clock, self.ids)
        self.archive.calls.clear()

    def start(self, is_stopping: Callable[[], bool] = lambda: False) -> LocalTier:
        config = ManagerConfig(log_dirs=(LOGS,), num_recovery_threads_per_data_dir=1)
        tier = LocalTier(
            self.disk, config, self.clock.now_ms, lambda: 0.0, self.ids.new_id, lambda topic: self.settings, AtOnce()
        )
        self.service = TierService(tier, self.clock.now_ms, self.said.append)
        self.service.start(is_stopping)
        self.tier = tier
        return tier

    def run(self, minutes: int, store: ObjectStore | None = None, given: tuple[Given, ...] = ()) -> Agent:
        """An agent lives for so long; the background tasks are run each minute."""
        inner, controls, tier = store or self.archive, Controls(), self.tier
        own = OwnTopics((), self.clock, tier=tier)
        tasks: list[Any] = [
            CopyTask(inner, self.clock, self.ids, wants=own.copies),
            LostPartitionsTask(inner, self.clock, self.ids, was_deleted=tier.deleted.__contains__),
            ExpireTask(inner, self.clock, self.ids, given, 5 * MINUTE_MS, own, own),
            LocalRetentionTask(inner, self.clock, tier, 5 * MINUTE_MS),
        ]
        source = Source((OwnLogDir(self.disk, LOGS, tier),), "memory://store", lambda topic: True, lambda topic: True)
        around = Surroundings(InTurn(self.clock), controls, self.clock, lambda: 0.5, self.said.append, tier=self.service.status)
        agent = Agent(source, tasks, Settings(1, BACKOFF), around, MemoryFile(self.disk, STATE, "agent.json"))
        start = self.clock.now
        for minute in range(1, minutes):
            self.clock.when(start + minute * MINUTE_MS, self.service.tick)
        self.clock.when(start + minutes * MINUTE_MS, controls.stop)
        agent.run()
        return agent

    def manifest(self, partition: TopicPartition = ORDERS) -> Any:
        topic_id = self.tier.topics()[partition.topic].topic_id
        return assert_sound_archive(self.archive, PartitionPath(partition.topic, topic_id or "", partition.partition))
