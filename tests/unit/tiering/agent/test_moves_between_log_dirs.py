"""A partition that moves from one log directory of a broker to another: the first one no longer has it, and nothing is lost."""

import pytest
from agents import BACKOFF, LOGS, MINUTE_MS, STATE, World
from archive_fakes import FailsBefore
from logs_to_archive import path_of

from local_log.errors import Unavailable
from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT
from local_log.log_dir import LogDir
from remote.manifest.losses import lost_ranges
from remote.manifest.model import Manifest
from remote.manifest.store import load_newest
from remote.store.api import ObjectStore
from tiering.agent.agent import Agent
from tiering.agent.controls import Controls
from tiering.agent.memory import MemoryFile
from tiering.agent.settings import Settings, Source, Surroundings
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.tasks.lost_partitions import LostPartitionsTask
from tiering.agent.workers import InTurn

ONE, TXN = "g-codec-lz4-0", "g-txn-0"
OTHER = "/other"


class TwoDirs(World):
    """A broker with two log directories, of which the partitions are in the first one."""

    def __post_init__(self) -> None:
        World.__post_init__(self)
        self.said: list[str] = []
        self.has(ONE, TXN)
        self.rewrite("meta.properties", "version=1\nnode.id=1\ndirectory.id=first\n")
        self.disk.make_folder(OTHER)
        self.disk.write(f"{OTHER}/meta.properties", 0, b"version=1\nnode.id=1\ndirectory.id=second\n")
        checkpoint = "replication-offset-checkpoint"
        self.disk.write(f"{OTHER}/{checkpoint}", 0, self.disk.read(f"{LOGS}/{checkpoint}"))
        self.path = path_of(self.logs()[ONE])

    def agent_of_both(self, store: ObjectStore | None = None) -> tuple[Agent, Controls]:
        inner = store or self.archive
        controls, dirs = Controls(), (self.log_dir(), LogDir(self.disk, OTHER))
        source = Source(dirs, "memory://store", lambda topic: True, lambda topic: True)
        around = Surroundings(InTurn(self.clock), controls, self.clock, lambda: 0.5, self.said.append)
        tasks = [CopyTask(inner, self.clock, self.ids), LostPartitionsTask(inner, self.clock, self.ids)]
        return Agent(source, tasks, Settings(1, BACKOFF), around, MemoryFile(self.disk, STATE, "agent.json")), controls

    def move(self) -> None:
        self.disk.rename(f"{LOGS}/{ONE}", f"{OTHER}/{ONE}")

    def delete_records(self, start: int) -> None:
        self.disk.write(f"{OTHER}/{LOG_START_OFFSET_CHECKPOINT}", 0, f"0\n1\ng-codec-lz4 0 {start}\n".encode())

    def manifest(self) -> Manifest:
        stored = load_newest(self.archive, self.path)
        assert stored is not None
        return stored.manifest


@pytest.mark.parametrize("is_running", [False, True], ids=["while no agent runs", "while an agent runs"])
def test_what_a_moved_partition_loses_later_is_told_and_its_move_is_no_loss(*, is_running: bool) -> None:
    world = TwoDirs()
    world.run(*world.agent_of_both(), 2)
    end, now_ms = world.manifest().end_offset, world.clock.now
    agent, controls = world.agent_of_both()
    if is_running:
        world.clock.when(now_ms + MINUTE_MS, world.move)
    else:
        world.move()
    shown: list[tuple[int, list[str]]] = []
    world.clock.when(now_ms + 4 * MINUTE_MS, lambda: shown.append((agent.view().row()["lost_offsets"], [*world.said])))
    world.clock.when(now_ms + 5 * MINUTE_MS, lambda: world.delete_records(end + 100))
    world.run(agent, controls, 10)
    assert shown == [(0, [])]
    assert set(world.manifest().gone) == {"first"}
    assert [(loss.start, loss.end) for loss in lost_ranges(world.manifest())] == [(end, end + 100)]
    assert agent.view().row()["lost_offsets"] == 100
    assert agent.view().gone == ()


def test_a_partition_that_has_moved_and_is_gone_there_before_that_was_recorded_is_told_as_lost() -> None:
    world = TwoDirs()
    end_of_log = world.logs()[ONE].log_end_offset
    world.run(*world.agent_of_both(), 2)
    now_ms, end = world.clock.now, world.manifest().end_offset
    world.move()
    dead = FailsBefore(world.archive, Unavailable("refused"), lambda *_: world.clock.now < now_ms + 3 * MINUTE_MS)
    agent, controls = world.agent_of_both(dead)
    world.clock.when(now_ms + 2 * MINUTE_MS, lambda: world.disk.delete_folder(f"{OTHER}/{ONE}"))
    world.run(agent, controls, 8)
    assert [(loss.start, loss.end) for loss in lost_ranges(world.manifest())] == [(end, end_of_log)]
    assert [message for message in world.said if f"{ONE}: {end_of_log - end} offsets are lost" in message] != []
