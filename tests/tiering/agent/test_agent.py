"""The agent's life beside a broker: what it copies, when it asks, and what it leaves alone."""

from agents import MINUTE_MS, World
from archive_fakes import verbs
from logs_to_archive import path_of
from made_manifests import assert_sound_archive
from one_offload import TXN, due_ranges, named

OTHERS = ("g-codec-lz4-0", "g-epochs-0", "g-codec-none-0")


def test_everything_that_is_due_is_archived_and_nothing_else() -> None:
    world = World().has(TXN, *OTHERS)
    agent, controls = world.agent()
    assert world.run(agent, controls, 1) == 0
    for name, log in world.logs().items():
        manifest = assert_sound_archive(world.archive, path_of(log))
        assert named(manifest) == due_ranges(log), name


def test_an_idle_agent_asks_the_store_nothing() -> None:
    world = World().has(TXN, *OTHERS)
    agent, controls = world.agent()
    world.clock.when(world.clock.now + 2 * MINUTE_MS, world.archive.calls.clear)
    world.run(agent, controls, 50)
    assert world.archive.calls == []


def test_after_an_hour_an_idle_partition_is_planned_for_again() -> None:
    world = World().has(TXN)
    agent, controls = world.agent()
    world.clock.when(world.clock.now + 2 * MINUTE_MS, world.archive.calls.clear)
    world.run(agent, controls, 70)
    assert verbs(world.archive.calls) == ["list", "get"]
