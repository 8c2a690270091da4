"""A stop: everything flushed and closed, checkpoints, and the mark of a clean stop where it is one."""

import shutil
from pathlib import Path

import pytest
from managed import ORDERS, PAYMENTS, World, append, checkpoint

from local_log.engine.manager.guarded_disk import Offline
from local_log.formats.checkpoints import read_offsets
from local_log.os_disk import OsWritableDisk

MARK = ".kafka_cleanshutdown"


@pytest.fixture
def world() -> World:
    return World()


def test_a_clean_stop_leaves_checkpoints_at_the_end_and_a_mark_with_the_broker_s_epoch(world: World, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    manager = world.start(a, b)
    for partition in (ORDERS, PAYMENTS):
        append(manager.get_or_create(partition), 5)
    assert manager.stop(broker_epoch=3) == ()
    for folder, name in ((a, "orders-0"), (b, "payments-3")):
        assert (folder / MARK).read_text() == '{"version":0,"brokerEpoch":3}'
        assert checkpoint(folder, "recovery-point-offset-checkpoint") == {name: 5}
        assert checkpoint(folder, "replication-offset-checkpoint") == {name: 5}
        assert checkpoint(folder, "log-start-offset-checkpoint") == {}
        assert not (folder / ".lock").exists()
    manager = world.start(a, b)
    assert manager.broker_epoch == 3
    assert not (a / MARK).exists()


def test_no_epoch_is_known_where_the_directories_say_different_ones_or_one_says_none(world: World, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    for folder, epoch in ((a, 3), (b, 4)):
        world.start(folder).stop(epoch)
    manager = world.start(a, b)
    assert manager.broker_epoch is None
    manager.stop(3)
    (b / MARK).write_text("")
    manager = world.start(a, b)
    assert manager.broker_epoch is None
    assert all(directory.was_clean for directory in manager.directories)


def test_a_log_that_cannot_be_closed_keeps_its_directory_from_being_marked_and_no_other(world: World, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    manager = world.start(a, b)
    for partition in (ORDERS, PAYMENTS):
        append(manager.get_or_create(partition), 30)
    shutil.rmtree(a / "orders-0")
    (problem,) = manager.stop(3)
    assert "orders-0" in str(problem)
    assert not (a / MARK).exists()
    assert (b / MARK).exists()
    assert not (a / ".lock").exists()


def test_a_disk_that_fails_in_the_middle_of_a_stop_leaves_no_mark(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    append(manager.get_or_create(ORDERS), 30)
    world.disk.broken = {str(tmp_path): ("rename",)}
    (problem,) = manager.stop()
    assert isinstance(problem, Offline)
    assert not (tmp_path / MARK).exists()


def test_a_crash_while_the_next_start_opens_logs_is_no_clean_stop(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    append(manager.get_or_create(ORDERS), 3)
    manager.stop()
    manager = world.start(tmp_path)  # and never stopped
    world.disk.unlock(f"{tmp_path}/.lock")
    manager = world.start(tmp_path)
    assert [directory.was_clean for directory in manager.directories] == [False]


def test_a_stop_needs_no_delay_of_deletions_to_pass(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    append(manager.get_or_create(ORDERS), 3)
    manager.delete(ORDERS)
    assert manager.stop() == ()
    (left,) = (f.name for f in tmp_path.iterdir() if f.is_dir())
    assert left.endswith("-delete")


def test_the_directories_can_be_had_again_at_once(world: World, tmp_path: Path) -> None:
    world.start(tmp_path).stop()
    disk = OsWritableDisk()
    assert disk.lock(f"{tmp_path}/.lock")
    disk.unlock(f"{tmp_path}/.lock")


def test_what_was_appended_last_is_flushed(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    append(manager.get_or_create(ORDERS), 3)
    world.disk.asked.clear()
    manager.stop()
    log = f"{tmp_path}/orders-0/00000000000000000000.log"
    mark = world.disk.asked.index(("rename", f"{tmp_path}/{MARK}.tmp"))
    assert world.disk.asked.index(("sync", log)) < mark
    assert read_offsets((tmp_path / "recovery-point-offset-checkpoint").read_bytes()) == {ORDERS: 3}
