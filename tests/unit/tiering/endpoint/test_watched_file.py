"""Files that are read again when they have changed."""

from pathlib import Path

import pytest
from archive_fakes import SleptClock

from local_log.errors import Conflict, Corrupt, LogError, NotFound
from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.watched_file import LOOK_MS, ChangingFile, WatchedFile, changing, replace_watched


def as_number(data: bytes) -> int:
    try:
        return int(data)
    except ValueError as e:
        raise Corrupt("no number") from e


def test_a_file_is_read_once_until_it_changes_also_if_it_cannot_be_used(tmp_path: Path) -> None:
    reads: list[bytes] = []

    def read(data: bytes) -> int:
        reads.append(data)
        return as_number(data)

    path = tmp_path / "number"
    file = ChangingFile(OsDisk(), str(path), read, bytes_max=4)
    with pytest.raises(NotFound):
        file.now()
    path.write_text("1")
    assert [file.now(), file.now()] == [1, 1]
    path.write_text("one")
    for _ in range(2):
        with pytest.raises(Corrupt, match=r"number.*no number"):
            file.now()
    path.write_text("10000")
    with pytest.raises(Corrupt, match="a file of 5 bytes, where 4 are the most"):
        file.now()
    path.write_text("22")
    assert file.now() == 22
    assert reads == [b"1", b"one", b"22"]


def test_the_error_of_a_file_does_not_grow_with_those_who_ask_for_it(tmp_path: Path) -> None:
    path = tmp_path / "number"
    path.write_text("one")
    file = ChangingFile(OsDisk(), str(path), as_number)
    sizes = list[int]()
    for _ in range(3):
        with pytest.raises(Corrupt) as raised:
            file.now()
        sizes.append(len(raised.traceback))
    assert sizes[1] == sizes[2]


def test_one_at_a_time_changes_a_file(tmp_path: Path) -> None:
    path, disk = tmp_path / "number", OsWritableDisk()
    with changing(disk, str(path)), pytest.raises(Conflict, match="number now; try again"), changing(disk, str(path)):
        pass
    with changing(disk, str(path)):
        path.write_text("1")
    assert [one.name for one in tmp_path.iterdir()] == ["number"]


def test_a_replaced_file_is_read_by_as_many_as_before(tmp_path: Path) -> None:
    disk, path = OsWritableDisk(), tmp_path / "rules"
    path.write_bytes(b"1")
    path.chmod(0o640)
    replace_watched(disk, str(path), b"2")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"2", 0o640)
    replace_watched(disk, str(path), b"3", 0o600)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"3", 0o600)


def test_rules_that_another_process_replaces_are_read_anew(tmp_path: Path) -> None:
    path, clock, taken = tmp_path / "rules", SleptClock(), list[int]()
    path.write_text("1")
    file = WatchedFile(OsDisk(), OsWritableDisk(), str(path), clock, lambda data: taken.append(as_number(data)), print)
    file.load()
    for number in (2, 3):
        (tmp_path / "other").write_text(str(number))
        (tmp_path / "other").rename(path)
        clock.now += LOOK_MS
        file.look()
        file.change(lambda: b"%d" % (10 * taken[-1]))
    assert taken == [1, 2, 20, 3, 30]


def test_what_is_wrong_with_rules_is_told_once_until_it_is_mended(tmp_path: Path) -> None:
    path, clock, taken, said = tmp_path / "rules", SleptClock(), list[int](), list[str]()
    path.write_text("1")
    file = WatchedFile(OsDisk(), OsWritableDisk(), str(path), clock, lambda data: taken.append(as_number(data)), said.append)
    file.load()
    for text in ("one", None, "2", "one"):
        if text is None:
            path.unlink()
        else:
            path.write_text(text)
        for _ in range(3):
            clock.now += LOOK_MS
            file.look()
    assert taken == [1, 2]
    assert ["no number" in one for one in said] == [True, False, True]
    with pytest.raises(LogError):
        file.load()
