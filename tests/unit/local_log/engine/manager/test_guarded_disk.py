"""A disk that fails takes its directory offline, and no other."""

from pathlib import Path

import pytest
from disk_promises import DiskConformance
from managed import ORDERS, PAYMENTS, World, append, one

from local_log.engine.manager.guarded_disk import GuardedDisk, Offline
from local_log.engine.manager.log_manager import LogManager
from local_log.errors import Unreadable
from local_log.os_disk import OsWritableDisk


class TestGuardedDisk(DiskConformance):
    @pytest.fixture
    def disk(self, tmp_path: Path) -> GuardedDisk:
        return GuardedDisk(OsWritableDisk(), str(tmp_path), lambda: None)

    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return str(tmp_path)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def manager(world: World, tmp_path: Path) -> LogManager:
    """Two directories with a log each."""
    manager = world.start(tmp_path / "a", tmp_path / "b")
    for partition in (ORDERS, PAYMENTS):
        append(manager.get_or_create(partition), 5)
    return manager


@pytest.mark.parametrize("verb", ["write", "sync"])
def test_the_first_failure_of_a_log_s_disk_ends_all_logs_of_the_directory(
    world: World, manager: LogManager, tmp_path: Path, verb: str
) -> None:
    log = manager.log(ORDERS)
    world.disk.broken = {f"{tmp_path}/a": (verb,)}
    with pytest.raises(Offline, match=rf"{tmp_path}/a: this log directory is offline since its disk failed .*mend it"):
        log.append_as_leader(one(), 0) if verb == "write" else log.flush()
    world.disk.broken = {}
    for act in (lambda: log.append_as_leader(one(), 0), log.flush, lambda: manager.log(ORDERS), lambda: manager.delete(ORDERS)):
        with pytest.raises(Offline, match=f"{tmp_path}/a"):
            act()
    assert manager.partitions() == (PAYMENTS,)
    append(manager.log(PAYMENTS), 1)
    assert [failure.directory for failure in manager.offline] == [f"{tmp_path}/a"]
    assert world.later(manager, 10_000_000) == ()
    assert manager.stop() == ()
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "b" / ".kafka_cleanshutdown").exists()


def test_a_failure_in_a_tick_is_told_once_and_the_other_directory_is_looked_after(
    world: World, manager: LogManager, tmp_path: Path
) -> None:
    world.disk.broken = {f"{tmp_path}/a": ()}
    (problem,) = world.later(manager, 60_000)
    assert isinstance(problem, Offline)
    assert (tmp_path / "b" / "recovery-point-offset-checkpoint").exists()


def test_the_lock_of_a_directory_that_is_offline_is_let_go(world: World, manager: LogManager, tmp_path: Path) -> None:
    world.disk.broken = {f"{tmp_path}/a": ("write",)}
    world.later(manager, 60_000)
    disk = OsWritableDisk()
    assert disk.lock(f"{tmp_path}/a/.lock")
    disk.unlock(f"{tmp_path}/a/.lock")
    assert not disk.lock(f"{tmp_path}/b/.lock")


def test_when_every_directory_is_offline_a_tick_says_so(world: World, manager: LogManager, tmp_path: Path) -> None:
    world.disk.broken = {str(tmp_path): ()}
    with pytest.raises(Unreadable, match=rf"every log directory is offline: {tmp_path}/a: .*; {tmp_path}/b: "):
        world.later(manager, 60_000)
    with pytest.raises(Unreadable, match="every log directory is offline"):
        manager.get_or_create(ORDERS, is_new=True)
    assert manager.stop() == ()


@pytest.mark.parametrize("verb", ["names", "read", "write", "lock", "delete"])
def test_a_directory_that_fails_at_the_start_does_not_keep_the_other_from_it(world: World, tmp_path: Path, verb: str) -> None:
    manager = world.start(tmp_path / "a", tmp_path / "b")
    for partition in (ORDERS, PAYMENTS):
        append(manager.get_or_create(partition), 5)
    manager.stop()
    world.disk.broken = {f"{tmp_path}/a": (verb,)}
    manager = world.start(tmp_path / "a", tmp_path / "b")
    if verb == "write":
        world.later(manager, 60_000)  # a clean log is opened without writing anything
    assert [failure.directory for failure in manager.offline] == [f"{tmp_path}/a"]
    assert manager.partitions() == (PAYMENTS,)


def test_a_path_that_cannot_be_one_does_not_keep_the_other_directories_from_it(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path, "\0")
    append(manager.get_or_create(ORDERS, is_new=True))
    assert len(manager.offline) == 1


def test_a_file_in_place_of_a_directory_is_a_failed_one(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unreadable, match=r"every log directory is offline: .*file: .*not a folder"):
        world.start(tmp_path / "file")
