"""The door to the file system."""

from pathlib import Path

import pytest
from disk_promises import DiskConformance
from hypothesis import given, settings
from hypothesis import strategies as st

from local_log.errors import NotFound
from local_log.storage import OsDisk, OsWritableDisk, parent_of

CONTENT = bytes(range(100))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("storage") / "file"
    path.write_bytes(CONTENT)
    return str(path)


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


@pytest.mark.parametrize("verb", [OsDisk.names, OsDisk.size, OsDisk.read])
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
        files = [f"{folder}/{i}" for i in range(disk.OPEN_FILES_MAX + 5)]
        for data in (b"a", b"b"):
            for file in files:
                disk.write(file, 0 if data == b"a" else 1, data)
        assert {disk.read(file) for file in files} == {b"ab"}
