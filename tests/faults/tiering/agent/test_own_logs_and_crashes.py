"""A process that owns its log directory dies at any call of its disk or its store: no flushed record is lost in either tier."""

from collections.abc import Callable

import pytest
from archive_fakes import Crash, CrashesAt
from local_tiers import ORDERS, produce
from own_worlds import OwnWorld
from simulated_disk import Crashed

from remote.store.api import ObjectStore
from tiering.local_tier.reads import TierReads

RECORDS = 24
MINUTES = 12
DISK_STEP, STORE_STEP = 3, 3
"""Each so many-th call is a test's last one; together they are about eighty."""


def lived() -> OwnWorld:
    """A log whose records are flushed, and nothing is archived yet."""
    world = OwnWorld()
    world.start().create_topic("orders")
    produce(world.tier, ORDERS, RECORDS, now_ms=world.clock.now)
    world.tier.log(ORDERS).flush()
    return world


def records(world: OwnWorld) -> list[dict[str, object]]:
    """All of them, from whichever tier has them."""
    batches = TierReads(world.tier, world.archive).log(ORDERS).read(0)
    return [row for one in batches for row in one.select(["offset", "timestamp", "value"]).to_pylist()]


def restarted(world: OwnWorld, seed: int) -> None:
    world.clock.at.clear()
    world.disk = world.disk.after_power_failure(0.5, seed)
    world.disk.now_ms = world.clock.now
    world.start()


def assert_nothing_is_lost(world: OwnWorld, before: list[dict[str, object]], seed: int) -> None:
    restarted(world, seed)
    assert records(world) == before
    world.run(MINUTES)
    assert records(world) == before
    log = world.tier.log(ORDERS)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, RECORDS, RECORDS)
    assert world.manifest().end_offset == RECORDS


def dies(world: OwnWorld, store: Callable[[OwnWorld], ObjectStore]) -> None:
    with pytest.raises((Crash, Crashed)):
        world.run(MINUTES, store(world))


@pytest.mark.slow
def test_at_a_call_of_the_disk() -> None:
    world = lived()
    before, first = records(world), len(world.disk.calls)
    world.run(MINUTES)
    calls = len(world.disk.calls) - first
    assert calls > 20 * DISK_STEP
    for number in range(1, calls, DISK_STEP):
        world = lived()
        world.disk.crash_after = len(world.disk.calls) + number
        dies(world, lambda world: world.archive)
        assert_nothing_is_lost(world, before, number)


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_at_a_call_of_the_store(after: bool) -> None:
    world = lived()
    before = records(world)
    world.archive.calls.clear()
    world.run(MINUTES)
    calls = len(world.archive.calls)
    assert calls > 10 * STORE_STEP
    for number in range(1, calls, STORE_STEP):
        world = lived()
        dies(world, lambda world, number=number: CrashesAt(world.archive, number, after=after))
        assert_nothing_is_lost(world, before, number)
