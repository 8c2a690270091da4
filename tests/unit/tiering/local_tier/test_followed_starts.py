"""What the archive of a log that is not tiered for a while keeps, and what DeleteRecords deletes from it."""

from dataclasses import replace

import pytest
from agents import LOGS, MINUTE_MS
from archive_fakes import CountingIds
from local_tiers import ORDERS, SMALL, produce
from own_worlds import OwnWorld

from local_log.engine.config import read_config
from local_log.engine.manager.background import AtOnce
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.manager.retention import delete_old_segments
from tiering.local_tier.errors import InvalidTopicConfig

UNTIERED = {"remote.storage.enable": "false"}


@pytest.fixture
def world() -> OwnWorld:
    """100 records, of which the archive has all but the active segment's; the log has all."""
    world = OwnWorld()
    world.settings["local.retention.ms"] = "-1"
    world.start().create_topic("orders")
    produce(world.tier, ORDERS, 100, now_ms=world.clock.now)
    world.run(2)
    return world


def restarted(world: OwnWorld, **settings: str) -> None:
    """A clean stop, and a start with these settings, in which dots are underscores."""
    assert world.service.stop() == ()
    world.clock.at.clear()
    world.settings |= {name.replace("_", "."): text for name, text in settings.items()}
    world.start()


def deletes_records(world: OwnWorld, offset: int) -> None:
    world.tier.log(ORDERS).maybe_increment_log_start_offset(offset)


def local_bases(world: OwnWorld) -> list[int]:
    """The base offsets of the segments on the disk."""
    return sorted(int(name.removesuffix(".log")) for name in world.disk.names(f"{LOGS}/{ORDERS}") if name.endswith(".log"))


def start_of_archive(world: OwnWorld) -> int:
    """Where the archive starts some time later."""
    world.run(12)
    start = world.manifest().log_start_offset
    assert isinstance(start, int)
    return start


def without_what_is_archived(world: OwnWorld) -> None:
    """The disk has only what is new."""
    world.tier.alter_configs("orders", {"local.retention.ms": "1"})
    world.run(12)
    produce(world.tier, ORDERS, 5, now_ms=world.clock.now)
    log = world.tier.log(ORDERS)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, 100, 105)


@pytest.mark.parametrize("settings", [UNTIERED, {"cleanup.policy": "compact"}])
def test_a_default_that_ends_tiering_is_refused_while_only_the_archive_has_the_first_records(
    world: OwnWorld, settings: dict[str, str]
) -> None:
    without_what_is_archived(world)
    world.tier.alter_configs("orders", {"local.retention.ms": None})
    assert world.service.stop() == ()
    before = dict(world.settings)
    world.settings = {name: text for name, text in before.items() if name != "remote.storage.enable"} | settings
    with pytest.raises(InvalidTopicConfig, match=r"only the archive has the offsets from 0 to 99 of .*/orders-0; keep it among"):
        world.start()
    world.settings = before
    log = world.start().log(ORDERS)
    assert (log.log_start_offset, log.local_log_start_offset, log.log_end_offset) == (0, 100, 105)
    deletes_records(world, 100)
    restarted(world, **UNTIERED)
    assert world.tier.log(ORDERS).log_start_offset == 100


@pytest.mark.parametrize("is_running", [True, False])
def test_the_archive_keeps_what_a_log_dropped_without_tiering_and_follows_it_once_it_is_tiered_again(
    world: OwnWorld, *, is_running: bool
) -> None:
    again = {"remote.storage.enable": "true"}
    if is_running:
        world.tier.alter_configs("orders", UNTIERED)
    else:
        restarted(world, **UNTIERED)
    deletes_records(world, 80)
    world.run(12)
    if is_running:
        world.tier.alter_configs("orders", again)
    else:
        restarted(world, **again)
    assert start_of_archive(world) == 0
    restarted(world)
    assert start_of_archive(world) == 0
    deletes_records(world, 85)
    assert start_of_archive(world) == 85


def test_what_was_deleted_before_it_was_archived_is_not_lost(world: OwnWorld) -> None:
    end = world.manifest().end_offset
    produce(world.tier, ORDERS, 100, now_ms=world.clock.now)
    deletes_records(world, 150)
    assert delete_old_segments(world.tier.log(ORDERS), world.clock.now) > 0
    assert local_bases(world)[0] > end
    world.run(1)
    manifest = world.manifest()
    assert manifest.end_offset > 150
    assert manifest.losses == ()
    assert world.said == []
    assert start_of_archive(world) == 150
    assert world.manifest().gaps == ()


def test_deleted_records_are_not_lost_after_a_crash_that_keeps_the_log_start_offset(world: OwnWorld) -> None:
    end = world.manifest().end_offset
    deletes_records(world, end + 2)
    world.tier.checkpoint()  # as after local retention
    world.disk = world.disk.after_kill()
    world.clock.at.clear()
    world.start()
    assert world.tier.log(ORDERS).log_start_offset == world.tier.followed_start(ORDERS) == end + 2
    world.run(1)
    assert world.manifest().losses == ()


def test_what_somebody_else_has_deleted_besides_is_lost(world: OwnWorld) -> None:
    end = world.manifest().end_offset
    produce(world.tier, ORDERS, 100, now_ms=world.clock.now)
    deletes_records(world, end + 10)
    assert delete_old_segments(world.tier.log(ORDERS), world.clock.now) > 0
    assert world.service.stop() == ()
    world.clock.at.clear()
    for base in local_bases(world)[:4]:
        for suffix in (".log", ".index", ".timeindex", ".snapshot"):
            world.disk.delete(f"{LOGS}/{ORDERS}/{base:020d}{suffix}")
    first = local_bases(world)[0]
    world.start()
    world.run(1)
    assert [(loss.start, loss.end) for loss in world.manifest().losses] == [(end + 10, first)]


def test_what_was_deleted_from_the_log_is_deleted_from_the_archive_after_a_restart_too(world: OwnWorld) -> None:
    deletes_records(world, 30)
    restarted(world)
    assert start_of_archive(world) == 30
    deletes_records(world, 40)
    world.clock.set(world.clock.now + MINUTE_MS)
    world.service.tick()
    world.clock.at.clear()
    world.disk = world.disk.after_power_failure()
    world.start()
    assert start_of_archive(world) == 40


def test_the_archive_keeps_what_a_broker_deleted_that_had_the_directory_meanwhile(world: OwnWorld) -> None:
    deletes_records(world, 10)
    assert world.service.stop() == ()
    config = ManagerConfig(log_dirs=(LOGS,), num_recovery_threads_per_data_dir=1)
    broker = LogManager(
        world.disk, config, world.clock.now_ms, lambda: 0.0, CountingIds().new_id, background=AtOnce(),
        default=replace(read_config(SMALL), retention_ms=-1), only_replica=True,
    )  # fmt: skip
    broker.start()
    broker.log(ORDERS).maybe_increment_log_start_offset(90)
    assert broker.stop(broker_epoch=7) == ()
    world.clock.at.clear()
    assert world.start().log(ORDERS).log_start_offset == 90
    assert start_of_archive(world) == 10


def test_the_archive_keeps_what_the_log_of_an_adopted_directory_does_not_have(world: OwnWorld) -> None:
    """A broker's, that was archived while the broker ran, and whose retention has moved the log's start."""
    deletes_records(world, 50)
    assert world.service.stop() == ()
    world.disk.delete(f"{LOGS}/tiering-topics.json")
    world.clock.at.clear()
    assert world.start().log(ORDERS).log_start_offset == 50
    assert start_of_archive(world) == 0


def test_a_topic_that_is_created_anew_has_nothing_that_its_archive_follows(world: OwnWorld) -> None:
    deletes_records(world, 30)
    assert world.tier.followed_start(ORDERS) == 30
    world.tier.delete_topic("orders")
    world.tier.create_topic("orders")
    assert world.tier.followed_start(ORDERS) == 0
