"""The disk that the simulation runs on: it keeps the door's promises, and at a crash no other."""

import pytest
from disk_promises import DiskConformance
from simulated_disk import Crashed, SimulatedDisk
from simulated_nodes import BLOCK_BYTES

from local_log.disk import replace_file

SEEDS = range(40)


@pytest.fixture
def disk() -> SimulatedDisk:
    disk = SimulatedDisk()
    disk.make_folder("/x")
    disk.sync_folder("")
    return disk


class TestSimulatedDisk(DiskConformance):
    @pytest.fixture
    def disk(self, disk: SimulatedDisk) -> SimulatedDisk:  # type: ignore[override]
        return disk

    @pytest.fixture
    def folder(self) -> str:
        return "/x"


def found(disk: SimulatedDisk, lost: float = 0.5) -> list[dict[str, bytes]]:
    """What there is after the power has failed, once for each seed."""
    return [disk.after_power_failure(lost, seed).contents("/x") for seed in SEEDS]


def synced(disk: SimulatedDisk, file: str, data: bytes) -> None:
    disk.write(file, 0, data)
    disk.sync(file)
    disk.sync_folder("/x")


def test_what_is_synced_in_bytes_and_name_is_there_whatever_is_lost(disk):
    synced(disk, "/x/f", b"sure")
    assert found(disk) == [{"/x/f": b"sure"}] * len(SEEDS)
    assert disk.after_power_failure().contents("/x") == {"/x/f": b"sure"}


def test_a_killed_process_loses_nothing(disk):
    disk.write("/x/f", 0, b"written")
    disk.rename("/x/f", "/x/g")
    assert disk.after_kill().contents("/x") == {"/x/g": b"written"}


def test_all_that_is_not_synced_can_be_lost(disk):
    synced(disk, "/x/f", b"sure")
    disk.write("/x/f", 0, b"SURE, and more")
    disk.write("/x/g", 0, b"g")
    assert disk.after_power_failure().contents("/x") == {"/x/f": b"sure"}


def test_a_file_s_bytes_are_not_there_without_its_name(disk):
    disk.write("/x/f", 0, b"data")
    disk.sync("/x/f")
    assert {frozenset(each.items()) for each in found(disk)} == {frozenset(), frozenset({("/x/f", b"data")})}


def test_a_file_s_name_may_be_there_without_its_bytes(disk):
    disk.write("/x/f", 0, b"data")
    disk.sync_folder("/x")
    assert {each["/x/f"] for each in found(disk)} == {b"", b"data", bytes(4)}


def test_blocks_of_one_write_are_lost_one_by_one(disk):
    synced(disk, "/x/f", b"o" * 3 * BLOCK_BYTES)
    disk.write("/x/f", 0, b"n" * 3 * BLOCK_BYTES)
    assert {each["/x/f"][::BLOCK_BYTES] for each in found(disk)} >= {b"onn", b"non", b"ooo", b"nno"}


def test_a_lost_cut_shows_what_was_cut_and_not_what_came_after_it(disk):
    old, new = b"o" * 3 * BLOCK_BYTES, b"n" * 2 * BLOCK_BYTES
    synced(disk, "/x/f", old)
    disk.truncate("/x/f", BLOCK_BYTES)
    disk.write("/x/f", BLOCK_BYTES, new)
    for each in found(disk):
        blocks = each["/x/f"][::BLOCK_BYTES]
        assert blocks == b"ooo" or (blocks[:1] == b"o" and set(blocks[1:]) <= set(b"n\0"))


def test_the_last_changes_of_names_are_lost(disk):
    for name in "abc":
        synced(disk, f"/x/{name}", b"")
    for name in "abc":
        disk.rename(f"/x/{name}", f"/x/{name}2")
    assert {"".join(sorted(each)) for each in found(disk)} == {
        "/x/a/x/b/x/c",
        "/x/a2/x/b/x/c",
        "/x/a2/x/b2/x/c",
        "/x/a2/x/b2/x/c2",
    }


def test_a_synced_folder_has_its_names_and_no_other(disk):
    disk.make_folder("/y")
    disk.write("/x/f", 0, b"")
    disk.sync_folder("/x")
    left = disk.after_power_failure()
    assert (left.names("/"), left.names("/x")) == (["x"], ["f"])
    disk.write("/y/f", 0, b"")
    disk.sync_folder("/y")
    assert not disk.after_power_failure().exists("/y")
    disk.sync_folder("/")
    assert disk.after_power_failure().exists("/y/f")


def test_a_deleted_file_may_come_back(disk):
    synced(disk, "/x/f", b"old")
    disk.delete("/x/f")
    assert {each.get("/x/f") for each in found(disk)} == {None, b"old"}
    disk.sync_folder("/x")
    assert found(disk) == [{}] * len(SEEDS)


def test_a_replaced_file_is_the_old_or_the_new_one_at_every_call(disk):
    synced(disk, "/x/f", b"old")
    states: list[bytes] = []
    disk.on_call = lambda: states.extend(each["/x/f"] for each in found(disk))
    replace_file(disk, "/x/f", b"new")
    assert set(states) == {b"old", b"new"}
    assert disk.after_power_failure().read("/x/f") == b"new"


def test_after_the_crash_nothing_is_done_any_more(disk):
    disk.crash_after = len(disk.calls) + 2
    disk.write("/x/f", 0, b"1")
    with pytest.raises(Crashed):
        disk.write("/x/f", 0, b"2")
    with pytest.raises(Crashed):
        disk.write("/x/f", 0, b"3")
    with pytest.raises(Crashed):
        disk.read("/x/f")
    assert disk.after_kill().read("/x/f") == b"2"


def test_one_seed_gives_one_crash(disk):
    for name in "abcdef":
        disk.write(f"/x/{name}", 0, name.encode() * 9000)
    assert found(disk) == found(disk)
