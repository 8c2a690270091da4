"""The door to the file system."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from disk_promises import DiskConformance
from hypothesis import given, settings
from hypothesis import strategies as st
from simulated_disk import SimulatedDisk

from local_log.disk import make_missing_folder, parent_of, replace_file
from local_log.errors import NotFound, Unreadable
from local_log.os_disk import OPEN_FILES_MAX, OsDisk, OsWritableDisk

CONTENT = bytes(range(100))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("storage") / "file"
    path.write_bytes(CONTENT)
    return str(path)


def test_a_folder_lasts_although_who_has_created_it_was_killed_before_its_name_was_synced() -> None:
    disk = SimulatedDisk()
    disk.make_folder("/state")
    make_missing_folder(disk, "/state")
    replace_file(disk, "/state/agent.json", b"{}")
    assert disk.after_power_failure().read("/state/agent.json") == b"{}"


def test_a_folder_that_is_there_may_be_in_one_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    make_missing_folder(disk, "/state")

    def refused(folder: str) -> None:
        raise Unreadable(f"{folder}: permission denied")

    monkeypatch.setattr(disk, "sync_folder", refused)
    make_missing_folder(disk, "/state")
    with pytest.raises(Unreadable):
        make_missing_folder(disk, "/another")


def test_a_file_is_not_taken_for_the_folder_that_is_missing(file: str) -> None:
    with pytest.raises(Unreadable, match="exists"):
        make_missing_folder(OsWritableDisk(), file)


def test_names_are_sorted(tmp_path: Path) -> None:
    for name in ("b", "a", "C", ".d"):
        (tmp_path / name).touch()
    assert OsDisk().names(str(tmp_path)) == [".d", "C", "a", "b"]


def test_a_folder_is_told_from_a_file(file: str) -> None:
    assert OsDisk().is_folder(str(Path(file).parent))
    assert not OsDisk().is_folder(file)
    assert not OsDisk().is_folder(file + "-missing")


@settings(deadline=None)
@given(start=st.integers(0, 130), end=st.one_of(st.none(), st.integers(0, 130)))
def test_a_range_of_a_file_is_read_and_less_where_it_ends_sooner(file: str, start: int, end: int | None) -> None:
    assert OsDisk().read(file, start, end) == (CONTENT[start:] if end is None else CONTENT[start:end])


def test_a_file_s_size_is_its_bytes(file: str) -> None:
    assert OsDisk().size(file) == len(CONTENT)


def test_a_file_s_time_is_in_whole_milliseconds(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.utime(tmp_path / "file", ns=(0, 1_234_567_899_999))
    assert OsDisk().modified_ms(str(tmp_path / "file")) == 1_234_567


def test_the_space_of_a_volume_is_what_df_tells(tmp_path: Path) -> None:
    told = subprocess.check_output(["df", "--block-size=1", "--output=size", tmp_path], text=True).split()[-1]
    found = OsDisk().space(str(tmp_path))
    assert found.total == int(told)
    assert 0 <= found.usable <= found.total


@pytest.mark.parametrize("verb", [OsDisk.names, OsDisk.size, OsDisk.space, OsDisk.modified_ms, OsDisk.read])
@pytest.mark.parametrize("below", ["missing", "missing/file", "file/below"])
def test_what_is_not_there_is_not_found(tmp_path: Path, verb: object, below: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotFound):
        verb(OsDisk(), str(tmp_path / below))  # type: ignore[operator]


@pytest.mark.parametrize(("path", "folder"), [("/a/b", "/a"), ("a/b", "a"), ("/a", "/"), ("a", ".")])
def test_the_folder_that_a_path_is_in_is_named_also_where_the_path_does_not_name_it(path: str, folder: str) -> None:
    assert parent_of(path) == folder


class TestOsWritableDisk(DiskConformance):
    @pytest.fixture
    def disk(self) -> OsWritableDisk:
        return OsWritableDisk()

    @pytest.fixture
    def folder(self, tmp_path: Path) -> str:
        return str(tmp_path)

    def test_more_files_than_stay_open_are_written(self, disk: OsWritableDisk, folder: str) -> None:
        files = [f"{folder}/{i}" for i in range(OPEN_FILES_MAX + 5)]
        for data in (b"a", b"b"):
            for file in files:
                disk.write(file, 0 if data == b"a" else 1, data)
        assert {disk.read(file) for file in files} == {b"ab"}


def in_another_process(file: str) -> "subprocess.Popen[str]":
    """A process that tries the lock, says whether it has it, and keeps it until its input ends."""
    code = "import sys, local_log.os_disk as o; d = o.OsWritableDisk(); print(d.lock(sys.argv[1]), flush=True); input()"
    return subprocess.Popen([sys.executable, "-c", code, file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_lock_is_had_by_one_process_at_a_time(tmp_path: Path) -> None:
    file, disk = str(tmp_path / ".lock"), OsWritableDisk()
    assert disk.lock(file)
    with in_another_process(file) as other:
        assert said(other) == "False"
        other.communicate("\n")
    disk.unlock(file)
    assert not Path(file).exists()
    with in_another_process(file) as other:
        assert said(other) == "True"
        assert not disk.lock(file)
        other.kill()
    assert disk.lock(file)
    disk.unlock(file)


def test_a_lock_is_had_once_in_a_process_and_a_second_try_does_not_lose_it(tmp_path: Path) -> None:
    file, disk = str(tmp_path / ".lock"), OsWritableDisk()
    assert disk.lock(file)
    assert not disk.lock(file)
    assert not OsWritableDisk().lock(str(tmp_path / "." / ".lock"))
    OsWritableDisk().unlock(file)
    with in_another_process(file) as other:
        assert said(other) == "False"
        other.communicate("\n")
    disk.unlock(file)
    assert OsWritableDisk().lock(file)


def test_a_lock_whose_file_was_taken_away_is_let_go_without_harm_to_the_next(tmp_path: Path) -> None:
    file, disk, other = str(tmp_path / ".lock"), OsWritableDisk(), OsWritableDisk()
    assert disk.lock(file)
    Path(file).unlink()
    assert other.lock(file)
    disk.unlock(file)
    assert Path(file).exists()
    assert not OsWritableDisk().lock(file)
    other.unlock(file)


def test_a_folder_has_one_real_path(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    disk = OsWritableDisk()
    assert disk.real_path(f"{tmp_path}/link/.") == disk.real_path(str(tmp_path))


def test_threads_that_take_each_others_descriptors_away_write_to_their_own_files(tmp_path: Path) -> None:
    disk = OsWritableDisk(open_files_max=3)  # few, so that they are always closed under somebody's hands

    def fill(name: int) -> None:
        for at in range(200):
            disk.write(f"{tmp_path}/{name}", at, b"%d" % name)
            if at % 50 == 0:
                disk.sync(f"{tmp_path}/{name}")
                disk.release(str(tmp_path))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(fill, range(8)))
    assert [(tmp_path / str(name)).read_bytes() for name in range(8)] == [b"%d" % name * 200 for name in range(8)]


@pytest.mark.parametrize("gone", ["rename", "delete"])
def test_a_reader_at_the_last_moment_keeps_no_writer_from_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gone: str
) -> None:
    file, disk = str(tmp_path / "log"), OsWritableDisk()
    disk.write(file, 0, b"old")
    called = "replace" if gone == "rename" else "unlink"
    real = getattr(os, called)

    def read_first(*paths: str) -> None:
        assert disk.read(file) == b"old"
        real(*paths)

    monkeypatch.setattr(os, called, read_first)
    disk.rename(file, f"{file}.deleted") if gone == "rename" else disk.delete(file)
    monkeypatch.undo()
    disk.write(file, 0, b"new")
    assert Path(file).read_bytes() == b"new"
