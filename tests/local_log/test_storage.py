"""The door to the file system."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_log.errors import NotFound
from local_log.storage import OsDisk

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
