"""What an agent remembers, where its file has been changed by somebody: it is as if nothing were remembered."""

import json
from pathlib import Path
from typing import Any

import pytest
from simulated_disk import SimulatedDisk

from local_log.os_disk import OsWritableDisk
from tiering.agent.memory import Memory, MemoryFile
from tiering.agent.view import Scrub
from tiering.lag.archived import Archived

FULL = Memory(5, Scrub(1, 2, 3, 4, ("a",), ("b",)), "127.0.0.1:1", {"orders-0": Archived(0, 9, 1, 100, 0, 0, 2, 7, ((3, 5),))})
WRONG = (2**63, 10**400, -(10**400), -5, 1e300, float("inf"), float("nan"), True, "5", None)


def file(folder: Path) -> MemoryFile:
    return MemoryFile(OsWritableDisk(), str(folder), "memory.json")


@pytest.mark.parametrize("wrong", WRONG, ids=lambda w: str(w)[:9])
@pytest.mark.parametrize(
    "place",
    [("swept_ms",), ("scrub", "started_ms"), ("scrub", "failed"), ("archived", "orders-0", 1), ("archived", "orders-0", 6)],
)
def test_a_number_that_is_none_is_as_if_nothing_were_remembered(tmp_path: Path, place: tuple[Any, ...], wrong: object) -> None:
    memory = file(tmp_path)
    memory.save(FULL)
    assert memory.load() == FULL
    body = json.loads((tmp_path / "memory.json").read_bytes())
    within = body
    for name in place[:-1]:
        within = within[name]
    within[place[-1]] = wrong
    (tmp_path / "memory.json").write_text(json.dumps(body))
    assert memory.load() == Memory()


def test_a_time_that_no_calendar_has_is_none_either(tmp_path: Path) -> None:
    memory = file(tmp_path)
    memory.save(Memory(swept_ms=2**62))
    assert memory.load() == Memory()


def test_a_scrub_that_an_earlier_version_remembered_has_no_unreadable_segments(tmp_path: Path) -> None:
    memory = file(tmp_path)
    memory.save(FULL)
    body = json.loads((tmp_path / "memory.json").read_bytes())
    del body["scrub"]["unreadable"]
    (tmp_path / "memory.json").write_text(json.dumps(body))
    assert memory.load().scrub == Scrub(1, 2, 3, 4, ("a",))


@pytest.mark.parametrize("body", ["", "[", "[" * 100_000, "5", '{"format": 2}'])
def test_a_file_that_is_no_memory_is_as_if_there_were_none(tmp_path: Path, body: str) -> None:
    (tmp_path / "memory.json").write_text(body)
    assert file(tmp_path).load() == Memory()


def test_what_is_remembered_first_is_there_after_a_loss_of_power() -> None:
    disk = SimulatedDisk()
    disk.make_folder("/var")
    disk.sync_folder("/")
    MemoryFile(disk, "/var/tiering", "memory.json").save(FULL)
    assert MemoryFile(disk.after_power_failure(), "/var/tiering", "memory.json").load() == FULL
