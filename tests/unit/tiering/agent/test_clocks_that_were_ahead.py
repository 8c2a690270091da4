"""What an agent noted while its clock was ahead stops nothing once the clock is right."""

import pytest
from agents import MINUTE_MS, World
from logs_to_archive import path_of
from one_offload import TXN
from test_partitions_that_disappear import ComesAndGoes, losses, metric

DAY_MS = 24 * 60 * MINUTE_MS
YEAR_MS = 365 * DAY_MS


def set_by(world: World, by_ms: int) -> None:
    world.clock.set(world.clock.now + by_ms)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["while the agent runs", "while it does not"])
@pytest.mark.parametrize("task", ["sweep", "scrub"])
def test_a_round_that_began_at_a_time_to_come_counts_as_none(task: str, is_restarted: bool) -> None:
    world = World().has(TXN)
    set_by(world, YEAR_MS)
    agent, controls = world.agent(tasks=(task,))
    right_ms = world.clock.now - YEAR_MS + 5 * MINUTE_MS

    def is_right() -> None:
        world.clock.set(right_ms)
        world.clock.when(right_ms + 5 * MINUTE_MS, controls.stop)

    if is_restarted:
        world.run(agent, controls, 5)
        world.clock.set(right_ms)
        agent, controls = world.agent(tasks=(task,))
        world.run(agent, controls, 5)
    else:
        world.clock.when(world.clock.now + 5 * MINUTE_MS, is_right)
        agent.run()
    view = agent.view()
    last_ms = view.swept_ms if task == "sweep" else view.scrub.started_ms if view.scrub else 0
    assert right_ms <= last_ms <= world.clock.now


def test_nothing_was_seen_later_than_now_once_the_clock_is_set_back() -> None:
    world = World().has(TXN)
    set_by(world, YEAR_MS)
    agent, controls = world.agent()

    def is_right() -> None:
        controls.pause()
        set_by(world, -YEAR_MS)
        world.clock.when(world.clock.now + 5 * MINUTE_MS, controls.stop)

    world.clock.when(world.clock.now + 5 * MINUTE_MS, is_right)
    agent.run()
    view = agent.view()
    assert 0 < view.started_ms <= view.now_ms
    assert [0 < ms <= view.now_ms for p in view.partitions for ms in (p.seen_ms, p.copied_ms)] == [True] * 2


def test_a_partition_that_disappeared_while_the_clock_was_ahead_is_told_as_lost() -> None:
    world = ComesAndGoes()
    agent, controls = world.agent(world.dead)

    def is_right() -> None:
        set_by(world, -DAY_MS)
        world.clock.when(world.clock.now + 10 * MINUTE_MS, controls.stop)

    world.at(18, is_right)
    agent.run()
    assert losses(world, path_of(world.log)) == [(0, world.log.log_end_offset)]
    assert metric(agent) == {("g-codec-lz4", "0"): world.log.log_end_offset}
