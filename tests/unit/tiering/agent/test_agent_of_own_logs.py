"""An agent that owns its log directory: it archives, drops what the archive has, and deletes nothing that only the disk has."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from agents import BACKOFF, LOGS, MINUTE_MS, STATE, WorldClock
from archive_fakes import CountingIds, Door, MemoryStore
from local_tiers import ORDERS, SMALL, produce
from made_manifests import assert_sound_archive
from simulated_disk import SimulatedDisk

from local_log.engine.manager.background import AtOnce
from local_log.engine.manager.config import ManagerConfig
from local_log.errors import Unavailable
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
from tiering.agent.workers import InTurn
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.own_log_dir import OwnLogDir
from tiering.local_tier.own_topics import OwnTopics
from tiering.local_tier.service import TierService
from tiering.retention.policy import Given

T = TypeVar("T")
TIERED = {**SMALL, "remote.storage.enable": "true", "retention.ms": "-1", "local.retention.ms": "60000"}


class Shut(Door):
    """A store that answers only while it is open."""

    is_open = True

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if not self.is_open:
            raise Unavailable(f"{verb} {key}: no answer")
        return call()


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

    def start(self) -> LocalTier:
        config = ManagerConfig(log_dirs=(LOGS,), num_recovery_threads_per_data_dir=1)
        tier = LocalTier(
            self.disk, config, self.clock.now_ms, lambda: 0.0, self.ids.new_id, lambda topic: self.settings, AtOnce()
        )
        self.service = TierService(tier, self.clock.now_ms, self.said.append)
        self.service.start()
        self.tier = tier
        return tier

    def run(self, minutes: int, store: ObjectStore | None = None, given: tuple[Given, ...] = ()) -> Agent:
        """An agent lives for so long; the background tasks are run each minute."""
        inner, controls, tier = store or self.archive, Controls(), self.tier
        own = OwnTopics((), self.clock, tier=tier)
        tasks: list[Any] = [
            CopyTask(inner, self.clock, self.ids),
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


@pytest.fixture
def world() -> OwnWorld:
    world = OwnWorld()
    world.start().create_topic("orders")
    produce(world.tier, ORDERS, 100, now_ms=world.clock.now)
    return world


def logs_on_disk(world: OwnWorld) -> list[int]:
    return [int(name[:20]) for name in world.disk.names(f"{LOGS}/orders-0") if name.endswith(".log")]


def test_what_is_archived_leaves_the_disk_once_local_retention_says_so_and_the_rest_follows(world: OwnWorld) -> None:
    before = logs_on_disk(world)
    agent = world.run(12)
    assert world.manifest().end_offset == 100, "the idle active segment was rolled and archived, as Kafka does"
    assert len(before) > 5
    assert logs_on_disk(world) == [100]
    log = world.tier.log(ORDERS)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, 100, 100)
    view = agent.view()
    assert view.last_error is None
    assert view.local_tier is not None
    assert view.local_tier.row()["partitions"] == [
        {"topic": "orders", "partition": 0, "log_start_offset": 0, "local_log_start_offset": 100, "high_watermark": 100,
         "log_end_offset": 100},
    ]  # fmt: skip
    assert (view.local_tier.state, view.local_tier.problems, world.said) == ("running", (), [])


def test_a_record_is_archived_whatever_the_high_watermark_checkpoint_says(world: OwnWorld) -> None:
    """The offsets are those of the open log: its checkpoint file is not written yet."""
    world.settings["local.retention.ms"] = "-1"
    world.run(1)
    assert world.manifest().end_offset == logs_on_disk(world)[-1]


def test_while_the_store_does_not_answer_nothing_is_deleted(world: OwnWorld) -> None:
    door = Shut(world.archive)
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    world.run(2, door)
    before = logs_on_disk(world)
    world.tier.alter_configs("orders", {"local.retention.ms": "1"})
    door.is_open = False
    agent = world.run(30, door)
    assert logs_on_disk(world)[: len(before)] == before
    assert agent.view().last_error is not None
    door.is_open = True
    world.run(12, door)
    assert logs_on_disk(world) == [100]


def test_with_nothing_to_delete_the_store_is_asked_nothing(world: OwnWorld) -> None:
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    world.run(2)
    world.run(2)
    world.archive.calls.clear()
    world.run(40)
    lists = [call for call in world.archive.calls if call[0] == "list"]
    assert len(lists) <= 3, "the look of a new agent, and retention's at its start"


def test_the_log_start_follows_the_archive_and_the_archive_the_log_start(world: OwnWorld) -> None:
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    world.run(2)
    bases = logs_on_disk(world)
    world.tier.log(ORDERS).maybe_increment_log_start_offset(bases[3])
    world.run(7)
    assert world.manifest().log_start_offset == bases[3]
    world.tier.alter_configs("orders", {"retention.ms": str(20 * MINUTE_MS), "local.retention.ms": "-2"})
    world.run(90)
    assert world.manifest().log_start_offset == 100
    assert world.tier.log(ORDERS).log_start_offset == 100
    assert logs_on_disk(world) == [100]


def test_a_restart_after_a_power_failure_reads_on_where_the_archive_and_the_disk_meet(world: OwnWorld) -> None:
    world.run(12)
    produce(world.tier, ORDERS, 7, now_ms=world.clock.now)
    world.tier.log(ORDERS).flush()
    world.disk = world.disk.after_power_failure()
    log = world.start().log(ORDERS)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, 100, 107)
    world.run(12)
    assert world.manifest().end_offset == 107


def test_a_failing_disk_is_told_and_ends_the_service(world: OwnWorld) -> None:
    failure = world.tier._manager.directories[0].disk.fail("Input/output error")
    assert not world.service.tick()
    assert world.service.failure is not None
    assert str(failure.cause) in str(world.service.failure)
    assert world.service.status().state == "failed"
    assert len(world.said) == 1
