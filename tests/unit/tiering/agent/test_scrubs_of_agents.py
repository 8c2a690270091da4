"""The rounds of an agent's scrub and sweep: when one begins, and what is told of what a scrub cannot read."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from agents import MINUTE_MS, STATE, World
from archive_fakes import FailsBefore
from key_files import write_keys
from logs_to_archive import path_of
from one_offload import TXN

from local_log.errors import Invalid
from remote.read.context import decoder_with
from remote.store.api import ObjectStore
from tiering.agent.agent import Agent
from tiering.agent.memory import MemoryFile
from tiering.agent.schedule import Kind
from tiering.agent.tasks.scrub import ScrubTask
from tiering.metrics.series import SCRUB_ANOMALIES, SCRUB_UNREADABLE, SCRUBS
from tiering.metrics.values import values
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan
from tiering.wiring import transforms


def test_a_scrub_begins_once_there_are_partitions() -> None:
    world = World()
    agent, controls = world.agent(tasks=("copy", "scrub"))
    world.clock.when(world.clock.now + 5 * MINUTE_MS, lambda: world.has(TXN))
    world.run(agent, controls, 10)
    scrub = agent.view().scrub
    assert scrub is not None
    assert scrub.topics == 1


def test_what_is_of_no_partition_is_swept_where_there_are_none() -> None:
    world = World()
    agent, controls = world.agent(tasks=("sweep",))
    world.run(agent, controls, 5)
    assert agent.view().swept_ms > 0


def test_an_agent_says_whether_it_scrubs() -> None:
    world = World()
    told = [values(world.agent(tasks=tasks)[0].view(), {})[SCRUBS] for tasks in (("copy",), ("copy", "scrub"))]
    assert told == [{(): 0}, {(): 1}]


@dataclass(frozen=True)
class Encrypted:
    """An archive of one partition, encrypted with a key of its own. `segments` is how many it has."""

    world: World
    folder: Path
    segments: int

    @classmethod
    def made(cls, folder: Path) -> "Encrypted":
        world, keys = World().has(TXN), write_keys(folder / "keys", "k1", k1=bytes(range(32)))
        how = transforms(compress=False, encrypt_with=str(keys))
        run = OffloadRun(world.archive, world.clock, world.ids, "a", lambda _: None, how)
        done = list(offload(plan(world.logs()[TXN], world.archive), run))
        assert all(one.error is None for one in done)
        return cls(world, folder, sum(key.endswith(".log") for key in world.archive.objects))

    def scrubbed(self, keys: Path | None, store: ObjectStore | None = None) -> Agent:
        agent, controls = self.world.agent(store, tasks=("scrub",))
        task = agent._tasks[Kind.scrub]
        assert isinstance(task, ScrubTask)
        task.sample, task.decoder = 1.0, decoder_with(None if keys is None else str(keys))
        self.world.run(agent, controls, 1)
        return agent


def of_denied(of: Encrypted) -> Agent:
    denied = FailsBefore(
        of.world.archive, Invalid("AccessDenied"), lambda verb, key: verb.startswith("get") and "/segments/" in key
    )
    return of.scrubbed(of.folder / "keys", denied)


@pytest.mark.parametrize(
    ("scrubbed", "why"),
    [
        (lambda of: of.scrubbed(None), "key 'k1' is needed: no keys are given"),
        (lambda of: of.scrubbed(write_keys(of.folder / "other", "k2", k2=bytes(32))), "key 'k1' is needed: "),
        (lambda of: of.scrubbed(write_keys(of.folder / "wrong", "k1", k1=bytes(32))), "does not unwrap the data key"),
        (of_denied, "AccessDenied"),
    ],
    ids=["no keys", "another key", "a wrong key", "no rights"],
)
def test_what_a_scrub_cannot_read_is_told_and_is_no_damage(
    scrubbed: Callable[[Encrypted], Agent], why: str, tmp_path: Path
) -> None:
    of = Encrypted.made(tmp_path)
    view = scrubbed(of).view()
    told = values(view, {})
    assert (told[SCRUB_UNREADABLE], told[SCRUB_ANOMALIES]) == ({(): of.segments}, {(): 0})
    assert view.scrub is not None
    assert view.scrub.failed == 0
    assert all(why in one and one.startswith(path_of(of.world.logs()[TXN]).segments) for one in view.scrub.unreadable)
    assert view.summary()["last_scrub"]["unreadable"] == list(view.scrub.unreadable)
    assert MemoryFile(of.world.disk, STATE, "agent.json").load().scrub == view.scrub


def test_of_what_a_scrub_can_read_nothing_is_told(tmp_path: Path) -> None:
    of = Encrypted.made(tmp_path)
    told = values(of.scrubbed(tmp_path / "keys").view(), {})
    assert (told[SCRUB_UNREADABLE], told[SCRUB_ANOMALIES]) == ({(): 0}, {(): 0})
