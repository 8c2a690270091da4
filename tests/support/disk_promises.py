"""What every disk promises to those who write, as one class that the operating system's and the simulated one run."""

from collections.abc import Callable

import pytest

from local_log.disk import WritableDisk, replace_file
from local_log.errors import NotFound, Unreadable


class DiskConformance:
    """The promises of `local_log.disk.WritableDisk`, as far as a process can see them: no crash happens here."""

    @pytest.fixture
    def disk(self) -> WritableDisk:
        raise NotImplementedError

    @pytest.fixture
    def folder(self) -> str:
        """An empty folder on the disk."""
        raise NotImplementedError

    # bytes

    def test_what_was_written_is_read(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/f", 0, b"abcdef")
        disk.write(f"{folder}/f", 2, b"XY")
        assert disk.read(f"{folder}/f") == b"abXYef"
        assert disk.read(f"{folder}/f", 1, 4) == b"bXY"
        assert disk.read(f"{folder}/f", 4, 99) == b"ef"
        assert disk.read(f"{folder}/f", 99) == b""
        assert disk.read(f"{folder}/f", 3, 1) == b""
        for start, end in ((1, 4), (4, 99), (99, 100), (3, 1)):
            assert disk.read_large(f"{folder}/f", start, end) == disk.read(f"{folder}/f", start, end)
        assert disk.size(f"{folder}/f") == 6

    def test_a_file_s_state_changes_when_it_is_written_to_or_another_one_takes_its_name(
        self, disk: WritableDisk, folder: str
    ) -> None:
        disk.write(f"{folder}/f", 0, b"abcdef")
        disk.write(f"{folder}/g", 0, b"abcdef")
        for file in ("f", "g"):
            disk.set_modified_ms(f"{folder}/{file}", 5_000)
        before = disk.state(f"{folder}/f")
        assert disk.state(f"{folder}/f") == before
        assert before.size == 6
        disk.set_modified_ms(f"{folder}/f", 6_000)
        assert disk.state(f"{folder}/f") != before
        disk.set_modified_ms(f"{folder}/f", 5_000)
        disk.write(f"{folder}/f", 6, b"g")
        assert disk.state(f"{folder}/f").size == 7
        disk.rename(f"{folder}/g", f"{folder}/f")
        assert disk.state(f"{folder}/f") != before
        disk.delete(f"{folder}/f")
        with pytest.raises(NotFound):
            disk.state(f"{folder}/f")

    def test_a_gap_before_what_is_written_is_zeros(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/f", 10_000, b"end")
        assert disk.read(f"{folder}/f") == bytes(10_000) + b"end"

    def test_writing_nothing_makes_an_empty_file_and_lengthens_none(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/f", 0, b"")
        assert disk.is_file(f"{folder}/f")
        disk.write(f"{folder}/f", 100, b"")
        assert disk.size(f"{folder}/f") == 0

    def test_what_is_written_over_several_blocks_is_read_whole(self, disk: WritableDisk, folder: str) -> None:
        data = bytes(range(256)) * 100
        disk.write(f"{folder}/f", 1_000, data)
        assert disk.read(f"{folder}/f", 1_000) == data

    def test_a_file_is_cut_and_lengthened_with_zeros(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/f", 0, b"abcdef")
        disk.truncate(f"{folder}/f", 2)
        assert disk.read(f"{folder}/f") == b"ab"
        disk.truncate(f"{folder}/f", 4)
        assert disk.read(f"{folder}/f") == b"ab\0\0"

    def test_writing_where_no_folder_is_finds_none(self, disk: WritableDisk, folder: str) -> None:
        with pytest.raises(NotFound):
            disk.write(f"{folder}/missing/f", 0, b"x")

    def test_a_folder_is_not_written_to(self, disk: WritableDisk, folder: str) -> None:
        with pytest.raises(Unreadable):
            disk.write(folder, 0, b"x")

    # names

    def test_a_folder_s_volume_has_a_size_and_a_missing_folder_none(self, disk: WritableDisk, folder: str) -> None:
        found = disk.space(folder)
        assert 0 <= found.usable <= found.total
        with pytest.raises(NotFound):
            disk.space(f"{folder}/missing")

    def test_names_are_sorted(self, disk: WritableDisk, folder: str) -> None:
        for name in ("b", "a", "C"):
            disk.write(f"{folder}/{name}", 0, b"")
        assert disk.names(folder) == ["C", "a", "b"]

    def test_files_and_folders_are_told_apart(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/f", 0, b"")
        assert (disk.exists(folder), disk.is_folder(folder), disk.is_file(folder)) == (True, True, False)
        assert (disk.exists(f"{folder}/f"), disk.is_folder(f"{folder}/f"), disk.is_file(f"{folder}/f")) == (True, False, True)
        disk.make_folder(f"{folder}/d")
        assert (disk.files(folder), disk.names(folder)) == (["f"], ["d", "f"])
        for missing in (f"{folder}/g", f"{folder}/f/g"):
            assert (disk.exists(missing), disk.is_folder(missing), disk.is_file(missing)) == (False, False, False)

    def test_a_writer_puts_bytes_into_its_file_as_write_does(self, disk: WritableDisk, folder: str) -> None:
        write = disk.writer(f"{folder}/a")
        write(0, b"abc")
        disk.write(f"{folder}/a", 3, b"def")
        write(1, b"BC")
        write(8, b"!")
        assert disk.read(f"{folder}/a") == b"aBCdef\0\0!"

    def test_a_renamed_file_is_there_under_its_new_name_only(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/a", 0, b"a")
        disk.rename(f"{folder}/a", f"{folder}/b")
        assert disk.names(folder) == ["b"]
        assert disk.read(f"{folder}/b") == b"a"

    def test_a_renamed_file_replaces_one_of_that_name(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/a", 0, b"a")
        disk.write(f"{folder}/b", 0, b"older")
        disk.rename(f"{folder}/a", f"{folder}/b")
        assert disk.read(f"{folder}/b") == b"a"

    def test_a_name_that_has_become_free_is_of_a_new_file(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/a", 0, b"first")
        disk.rename(f"{folder}/a", f"{folder}/b")
        disk.write(f"{folder}/a", 0, b"2nd")
        disk.write(f"{folder}/b", 5, b"!")
        assert disk.read(f"{folder}/a") == b"2nd"
        assert disk.read(f"{folder}/b") == b"first!"
        disk.delete(f"{folder}/a")
        disk.write(f"{folder}/a", 1, b"c")
        assert disk.read(f"{folder}/a") == b"\0c"

    def test_deleting_says_whether_there_was_a_file(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/a", 0, b"a")
        assert disk.delete(f"{folder}/a")
        assert not disk.delete(f"{folder}/a")
        assert not disk.exists(f"{folder}/a")

    def test_a_folder_is_made_with_those_above_it_and_made_again(self, disk: WritableDisk, folder: str) -> None:
        for _ in range(2):
            disk.make_folder(f"{folder}/x/y")
            assert disk.is_folder(f"{folder}/x/y")

    def test_a_folder_takes_no_file_s_place(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/f", 0, b"")
        with pytest.raises((Unreadable, NotFound)):
            disk.make_folder(f"{folder}/f/g")

    def test_a_renamed_folder_takes_its_files_along(self, disk: WritableDisk, folder: str) -> None:
        disk.make_folder(f"{folder}/x")
        disk.write(f"{folder}/x/f", 0, b"f")
        disk.rename(f"{folder}/x", f"{folder}/y")
        disk.write(f"{folder}/y/f", 1, b"g")
        assert disk.read(f"{folder}/y/f") == b"fg"
        assert not disk.exists(f"{folder}/x")

    def test_a_deleted_folder_takes_its_files_along(self, disk: WritableDisk, folder: str) -> None:
        disk.make_folder(f"{folder}/x/y")
        disk.write(f"{folder}/x/f", 0, b"f")
        disk.write(f"{folder}/x/y/f", 0, b"f")
        disk.delete_folder(f"{folder}/x")
        assert disk.names(folder) == []

    # the rest

    @pytest.mark.parametrize(
        "verb",
        [
            lambda disk, path: disk.names(path),
            lambda disk, path: disk.size(path),
            lambda disk, path: disk.read(path),
            lambda disk, path: disk.truncate(path, 0),
            lambda disk, path: disk.rename(path, f"{path}-to"),
            lambda disk, path: disk.delete_folder(path),
            lambda disk, path: disk.sync(path),
            lambda disk, path: disk.sync_folder(path),
            lambda disk, path: disk.modified_ms(path),
            lambda disk, path: disk.set_modified_ms(path, 0),
        ],
    )
    def test_what_is_not_there_is_not_found(
        self, disk: WritableDisk, folder: str, verb: Callable[[WritableDisk, str], object]
    ) -> None:
        with pytest.raises(NotFound):
            verb(disk, f"{folder}/missing")

    def test_syncing_and_letting_go_change_nothing_that_is_read(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/f", 0, b"before")
        disk.sync(f"{folder}/f")
        disk.sync_folder(folder)
        disk.release(folder)
        disk.write(f"{folder}/f", 6, b", after")
        assert disk.read(f"{folder}/f") == b"before, after"

    def test_the_time_of_the_last_write_can_be_stated(self, disk: WritableDisk, folder: str) -> None:
        disk.write(f"{folder}/f", 0, b"")
        disk.set_modified_ms(f"{folder}/f", 1_234_567)
        assert disk.modified_ms(f"{folder}/f") == 1_234_567

    def test_a_lock_makes_its_file(self, disk: WritableDisk, folder: str) -> None:
        assert disk.lock(f"{folder}/.lock")
        assert disk.is_file(f"{folder}/.lock")

    def test_a_replaced_file_has_its_new_content_and_nothing_stays_beside_it(self, disk: WritableDisk, folder: str) -> None:
        for content in (b"long content", b"short"):
            replace_file(disk, f"{folder}/f", content)
            assert disk.read(f"{folder}/f") == content
        assert disk.names(folder) == ["f"]
