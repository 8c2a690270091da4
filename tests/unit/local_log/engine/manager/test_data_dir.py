"""One of log.dirs: its lock, its name, and checkpoint files that are damaged."""

import subprocess
import sys
from pathlib import Path

import pytest
from managed import ORDERS, PAYMENTS, World, append, checkpoint
from simulated_disk import SimulatedDisk

from local_log.engine.manager.data_dir import DataDir
from local_log.engine.manager.guarded_disk import GuardedDisk
from local_log.engine.manager.log_manager import LogManager
from local_log.errors import Invalid

OWNER = """
import sys
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.manager.config import ManagerConfig
from local_log.os_disk import OsWritableDisk
manager = LogManager(OsWritableDisk(), ManagerConfig(log_dirs=(sys.argv[1],)), lambda: 0, lambda: 0.0, lambda: "id")
manager.start()
print("started", flush=True)
input()
manager.stop()
"""


@pytest.fixture
def world() -> World:
    return World()


def owned_by_another_process(folder: Path) -> "subprocess.Popen[str]":
    owner = subprocess.Popen([sys.executable, "-c", OWNER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline() == "started\n"
    return owner


def test_a_log_lasts_although_a_process_was_killed_before_the_name_of_its_folder_was_synced() -> None:
    disk, folder = SimulatedDisk(), "/logs"
    disk.make_folder(folder)
    disk.sync_folder("/")
    disk.make_folder(f"{folder}/{ORDERS}")
    DataDir(folder, GuardedDisk(disk, folder, lambda: None)).lock()
    assert disk.after_power_failure().is_folder(f"{folder}/{ORDERS}")


def test_a_directory_that_another_process_has_is_refused_and_says_what_to_do(world: World, tmp_path: Path) -> None:
    with owned_by_another_process(tmp_path) as owner:
        with pytest.raises(Invalid, match=rf"{tmp_path}: a broker or another process of ours is using this .*stop it first"):
            world.start(tmp_path / "free-0", tmp_path)
        owner.communicate("\n")
    assert not (tmp_path / "free-0" / ".lock").exists()
    world.start(tmp_path).stop()


def test_a_process_that_was_killed_has_nothing_any_more(world: World, tmp_path: Path) -> None:
    with owned_by_another_process(tmp_path) as owner:
        owner.kill()
    world.start(tmp_path).stop()


def test_a_second_manager_in_one_process_is_refused_and_the_first_one_goes_on(world: World, tmp_path: Path) -> None:
    first = world.start(tmp_path)
    with pytest.raises(Invalid, match="is using this log directory"):
        World().start(tmp_path)
    append(first.get_or_create(ORDERS))
    assert first.stop() == ()


def test_one_directory_named_twice_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with pytest.raises(Invalid, match=r"data and .*link are the same folder; name it once"):
        world.start(tmp_path / "data", tmp_path / "link")


@pytest.mark.parametrize("written", ["{}/data/", "{}/data", "{}/./data//"])
def test_a_directory_s_name_may_end_with_a_slash(world: World, tmp_path: Path, written: str) -> None:
    written_and_read(world.start(written.format(tmp_path)), tmp_path / "data")


def test_a_directory_s_name_may_be_relative(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written_and_read(world.start("data"), tmp_path / "data")


def written_and_read(manager: LogManager, folder: Path) -> None:
    for partition, records in ((ORDERS, 50), (PAYMENTS, 7)):
        append(manager.get_or_create(partition), records)
        manager.log(partition).flush()
    manager.tick(manager.directories[0].disk.modified_ms(str(folder)) * 2)
    assert checkpoint(folder, "recovery-point-offset-checkpoint") == {"orders-0": 50, "payments-3": 7}


@pytest.mark.parametrize(
    "data",
    [b"1\n0\n", b"0\nmany\n", b"0\n1\norders 0\n", b"0\n2\norders 0 5\n", b"\xff\xfe", b"0\n1\norders 0 99999999999999999999\n"],
)
@pytest.mark.parametrize(
    "name", ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_a_damaged_checkpoint_costs_what_it_said_and_nothing_else(world: World, tmp_path: Path, name: str, data: bytes) -> None:
    manager = world.start(tmp_path)
    append(manager.get_or_create(ORDERS), 5)
    manager.log(ORDERS).maybe_increment_log_start_offset(2)
    manager.stop()
    (tmp_path / name).write_bytes(data)
    manager = world.manager(tmp_path)
    started = manager.start()
    assert [corrupt.file for corrupt in started.damaged] == [f"{tmp_path}/{name}"]
    log = manager.log(ORDERS)
    start = 0 if name.startswith("log-start") else 2
    assert (log.log_start_offset, log.log_end_offset) == (start, 5)
    assert log.high_watermark == (start if name.startswith("replication") else 5)
    manager.stop()
    assert world.manager(tmp_path).start().damaged == ()


def test_checkpoints_that_are_missing_or_empty_say_nothing(world: World, tmp_path: Path) -> None:
    (tmp_path / "recovery-point-offset-checkpoint").write_text("")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n0\n")
    assert world.manager(tmp_path).start().damaged == ()
