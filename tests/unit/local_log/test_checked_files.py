import os
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path
from random import Random  # noqa: TID251  # seeded

import pytest
from hand_made import batch, message, record

from local_log import checked_files
from local_log.batch_file import BatchFile
from local_log.checked_files import CheckedFiles, Located, sealed_range
from local_log.errors import Conflict, Corrupt
from local_log.file_range import FileState, OpenedFile
from local_log.os_disk import OsDisk

END = 1 << 40


def batch_of(base: int, size: int = 20, records: int = 1) -> bytes:
    """Offsets from `base` on."""
    return batch(*(record(n, value=bytes([n % 256]) * size) for n in range(records)), base_offset=base)


class Counting:
    """An open file that adds up what is read of it."""

    def __init__(self, log: "Log", opened: OpenedFile) -> None:
        self.log, self.opened = log, opened
        self.fileno, self.state = opened.fileno, opened.state

    def read(self, start: int, end: int) -> bytes:
        self.log.reads += end - start
        return self.opened.read(start, end)

    read_large = read


class Log:
    """A log in one file: batches with gaps between some of their offsets."""

    def __init__(self, path: Path, random: Random, count: int, size: int) -> None:
        self.path = path
        self.batches: list[tuple[int, int, bytes]] = []
        self.end = 0
        self.reads = 0
        path.write_bytes(b"")
        self.append(random, count, size)

    def append(self, random: Random, count: int, size: int) -> None:
        for _ in range(count):
            base, records = self.end + random.choice((0, 0, 3)), random.randint(1, 3)
            self.batches.append((base, base + records - 1, batch_of(base, random.randrange(size), records)))
            self.end = base + records
        with self.path.open("ab") as file:
            file.write(b"".join(body for _, _, body in self.batches[-count:]))

    def file(self, end_offset: int = END, next_offset: int | None = None) -> BatchFile:
        starts = [0, *accumulate(len(body) for _, _, body in self.batches)]
        opened = OsDisk().open(str(self.path))

        def position_of(offset: int) -> int:
            """As an index with every third batch gives it."""
            found = bisect_right([base for base, _, _ in self.batches], offset) - 1
            return starts[max(found, 0) // 3 * 3]

        return BatchFile("log", Counting(self, opened), position_of, end_offset, next_offset)

    def expected(self, offset: int, max_bytes: int, end_offset: int, *, one: bool) -> bytes:
        wanted = [body for base, last, body in self.batches if last >= offset and base < end_offset]
        fit = sum(size <= max_bytes for size in accumulate(map(len, wanted)))
        return b"".join(wanted[: max(fit, int(one))])

    def next_of(self, found: bytes, offset: int) -> int:
        return max((last + 1 for _, last, body in self.batches if last >= offset and body in found), default=offset)


def bytes_of(found: Located) -> bytes:
    return b"" if found.range is None else found.range.read()


@pytest.fixture
def small_spans(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checked_files, "SPAN_BYTES", 400)


@pytest.mark.usefixtures("small_spans")
@pytest.mark.parametrize("seed", range(30))
def test_any_reads_of_a_log_that_grows_give_its_batches(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    log, checked = Log(tmp_path / "log", random, 40, 300), CheckedFiles()
    offset = 0
    for _ in range(60):
        if random.random() < 0.1:
            log.append(random, random.randint(1, 5), 300)
        offset = random.choice((offset, random.randrange(log.end + 1)))
        max_bytes, one = random.choice((0, 1, 150, 500, 1_000, 5_000, 1 << 20)), random.random() < 0.8
        end = random.choice((END, END, random.choice(log.batches)[0]))
        found = checked.locate(log.file(end), offset, max_bytes, one_at_least=one)
        expected = log.expected(offset, max_bytes, end, one=one)
        assert bytes_of(found) == expected
        if expected:
            assert found.next_offset == log.next_of(expected, offset)
        rest = log.expected(found.next_offset, 1 << 40, end, one=True)
        assert not (rest and found.is_over)
        assert rest or checked.locate(log.file(end), found.next_offset, 1, one_at_least=True).is_over
        offset = found.next_offset


@pytest.mark.usefixtures("small_spans")
def test_what_was_checked_is_not_read_again(tmp_path: Path) -> None:
    log, checked = Log(tmp_path / "log", Random(1), 50, 300), CheckedFiles()
    for _ in range(2):
        before, offset, found = log.reads, 0, b""
        while offset < log.end:
            located = checked.locate(log.file(), offset, 1_000, one_at_least=True)
            offset, found = located.next_offset, found + bytes_of(located)
        assert found == log.path.read_bytes()
    read = log.reads - before - len(found)  # those that the test has read itself
    assert read < len(found) / 10


@pytest.mark.usefixtures("small_spans")
@pytest.mark.parametrize("seed", range(5))
def test_what_was_checked_is_found_at_once_and_nothing_else_is(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    log, checked, twice = Log(tmp_path / "log", random, 40, 300), CheckedFiles(), 0
    for _ in range(100):
        offset, max_bytes = random.randrange(log.end), random.choice((1, 500, 5_000))
        at_once = checked.locate_checked(log.file(), offset, max_bytes, one_at_least=True)
        found = checked.locate(log.file(), offset, max_bytes, one_at_least=True)
        assert at_once is None or bytes_of(at_once) == bytes_of(found)
        twice += at_once is not None
    assert 10 < twice < 100
    assert checked.locate_checked(log.file(), 0, 1 << 20, one_at_least=True) is not None
    log.append(random, 1, 300)
    assert checked.locate_checked(log.file(), 0, 1, one_at_least=True) is None


def test_a_batch_among_others_is_found_without_a_read_of_these_for_as_long_as_its_place_is_kept(tmp_path: Path) -> None:
    logs = [Log(tmp_path / f"log{n}", Random(n), 60, 300) for n in range(2)]
    checked = CheckedFiles(batches_max=100)

    def one_of_each_read(log: Log) -> int:
        before, found = log.reads, b""
        for base, _, body in log.batches:
            found += bytes_of(checked.locate(log.file(), base, 1, one_at_least=True))
            log.reads -= len(body)  # those that the test has read itself
        assert found == log.path.read_bytes()
        return log.reads - before

    size = logs[0].path.stat().st_size
    assert size < one_of_each_read(logs[0]) < 4 * size, "checked, and its batches found"
    assert one_of_each_read(logs[0]) < size / 2, "a few bytes of each"
    one_of_each_read(logs[1])  # the places of more batches are not kept
    assert size < one_of_each_read(logs[0]) < 2 * size, "its batches are found again, and not checked"


def test_the_places_of_batches_are_forgotten_with_what_was_checked(tmp_path: Path) -> None:
    path, checked = tmp_path / "log", CheckedFiles()
    path.write_bytes(batch_of(0) + batch_of(1, 30) + batch_of(2))
    file = BatchFile("log", OsDisk().open(str(path)), lambda _: 0, END, None)
    assert bytes_of(checked.locate(file, 0, 1 << 20, one_at_least=True)) == path.read_bytes()
    assert bytes_of(checked.locate(file, 1, 1, one_at_least=True)) == batch_of(1, 30)
    with path.open("r+b") as at:
        at.truncate(len(batch_of(0)))
        at.seek(len(batch_of(0)))
        at.write(batch_of(1, 10) + batch_of(2, 70))
    assert checked.locate_checked(file, 1, 1, one_at_least=True) is None
    assert bytes_of(checked.locate(file, 1, 1, one_at_least=True)) == batch_of(1, 10)
    found = checked.locate_checked(file, 2, 1, one_at_least=True)
    assert found is not None
    assert bytes_of(found) == batch_of(2, 70)


def test_a_batch_that_is_larger_than_a_span_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(batch_of(0, 500_000) + batch_of(1))
    opened = OsDisk().open(str(tmp_path / "log"))
    file = BatchFile("log", opened, lambda _: 0, END, None)
    checked = CheckedFiles()
    assert len(bytes_of(checked.locate(file, 0, 1, one_at_least=True))) > 500_000
    assert bytes_of(checked.locate(file, 1, 1 << 20, one_at_least=True)) == batch_of(1)
    assert checked.locate(file, 0, 1, one_at_least=False) == Located(None, 0, is_over=False)


def test_a_damaged_batch_ends_a_range_and_is_told_where_it_is_first(tmp_path: Path) -> None:
    whole = bytearray(batch_of(0) + batch_of(1) + batch_of(2))
    size = len(whole) // 3
    whole[size + 70] ^= 1
    (tmp_path / "log").write_bytes(whole)
    file, checked = BatchFile("log", OsDisk().open(str(tmp_path / "log")), lambda o: o * size, END, 3), CheckedFiles()
    for _ in range(2):
        found = checked.locate(file, 0, 1 << 20, one_at_least=True)
        assert (bytes_of(found), found.next_offset, found.is_over) == (bytes(whole[:size]), 1, False)
        with pytest.raises(Corrupt) as e:
            checked.locate(file, 1, 1 << 20, one_at_least=True)
        assert (e.value.file, e.value.position) == ("log", size)
    assert bytes_of(checked.locate(file, 2, 1, one_at_least=True)) == batch_of(2)


def test_a_file_that_is_written_otherwise_than_by_appends_is_checked_anew(tmp_path: Path) -> None:
    path, checked = tmp_path / "log", CheckedFiles()
    path.write_bytes(batch_of(0) + batch_of(1))
    file = BatchFile("log", OsDisk().open(str(path)), lambda _: 0, END, None)
    assert bytes_of(checked.locate(file, 0, 1 << 20, one_at_least=True)) == path.read_bytes()
    damaged = bytearray(path.read_bytes())
    damaged[70] ^= 1
    with path.open("r+b") as at:
        at.write(damaged)
    os.utime(path, ns=(0, 0))  # the clock of files may not have moved
    with pytest.raises(Corrupt):
        checked.locate(file, 0, 1 << 20, one_at_least=True)


def test_a_log_that_is_truncated_and_written_again_is_read_as_it_is_now(tmp_path: Path) -> None:
    path, checked = tmp_path / "log", CheckedFiles()
    first, one, other = batch_of(0), batch_of(1, 30), batch_of(1, 40) + batch_of(2)
    path.write_bytes(first + one)
    file = BatchFile("log", OsDisk().open(str(path)), lambda _: 0, END, None)
    before = checked.locate(file, 0, 1 << 20, one_at_least=True)
    kept = checked.locate(file, 0, 1, one_at_least=True)
    assert bytes_of(before) == first + one
    with path.open("r+b") as at:
        at.truncate(len(first))
    assert before.range is not None
    with pytest.raises(Conflict, match="truncated meanwhile"):
        before.range.check()
    with path.open("ab") as at:
        at.write(other)
    with pytest.raises(Conflict):
        before.range.read()
    assert bytes_of(kept) == first
    assert bytes_of(checked.locate(file, 1, 1 << 20, one_at_least=True)) == other


def test_a_truncation_while_a_log_is_looked_at_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(batch_of(0) + batch_of(1))
    opened = OsDisk().open(str(path))

    class Truncated:
        fileno = opened.fileno

        def state(self) -> FileState:
            state = opened.state()
            os.truncate(path, 100)
            return state

        def read(self, start: int, end: int) -> bytes:
            return opened.read(start, end)

        read_large = read

    with pytest.raises(Conflict, match="log was truncated while it was read"):
        CheckedFiles().locate(BatchFile("log", Truncated(), lambda _: 0, END, 2), 1, 1 << 20, one_at_least=True)


def test_a_range_whose_last_batch_was_cut_off_before_it_was_noted_is_no_more_what_it_was(tmp_path: Path) -> None:
    path, checked = tmp_path / "log", CheckedFiles()
    path.write_bytes(batch_of(0) + batch_of(1))
    opened = OsDisk().open(str(path))
    file = BatchFile("log", opened, lambda _: 0, END, 2)
    checked.locate(file, 0, 1 << 20, one_at_least=True)

    class Truncated:
        fileno, read, read_large = opened.fileno, opened.read, opened.read_large

        def state(self) -> FileState:
            state = opened.state()
            os.truncate(path, len(batch_of(0)))
            return state

    found = checked.locate_checked(file._replace(opened=Truncated()), 0, 1 << 20, one_at_least=True)
    assert found is not None
    assert found.range is not None
    for one in (found.range, sealed_range(opened, 0, found.range.size, len(batch_of(0)), b"")):
        with pytest.raises(Conflict, match="truncated meanwhile"):
            one.check()


def test_an_inactive_file_has_whole_batches_to_its_end_and_the_newest_may_be_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(batch_of(0) + batch_of(1)[:-1])
    opened = OsDisk().open(str(path))

    def located(offset: int, next_offset: int | None, size: int | None = None) -> Located:
        file = BatchFile("log", opened, lambda _: 0, END, next_offset, size)
        return CheckedFiles().locate(file, offset, 1 << 20, one_at_least=True)

    assert located(0, None).is_over
    assert not located(0, 2).is_over
    with pytest.raises(Corrupt, match="no whole batch"):
        located(1, 2)
    with pytest.raises(Corrupt, match="ends here, where it should have 1000 bytes"):
        located(0, 2, 1000)
    assert bytes_of(located(0, 1, len(batch_of(0)))) == batch_of(0)


def test_files_that_nobody_reads_are_forgotten_when_there_are_too_many_spans(tmp_path: Path) -> None:
    checked = CheckedFiles(spans_max=2)
    logs = [Log(tmp_path / f"log{n}", Random(n), 3, 9) for n in range(4)]
    for log in logs:
        checked.locate(log.file(), 0, 1 << 20, one_at_least=True)
    reads = [log.reads for log in logs]
    for log in reversed(logs):
        checked.locate(log.file(), 0, 1 << 20, one_at_least=True)
    again = [log.reads - before > 100 for log, before in zip(logs, reads, strict=True)]
    assert again == [True, True, False, False]


def test_a_file_whose_ranges_are_found_at_once_is_not_forgotten_before_others(tmp_path: Path) -> None:
    checked = CheckedFiles(spans_max=2)
    logs = [Log(tmp_path / f"log{n}", Random(n), 3, 9) for n in range(4)]
    for log in logs:
        checked.locate(log.file(), 0, 1 << 20, one_at_least=True)
        assert checked.locate_checked(logs[0].file(), 0, 1 << 20, one_at_least=True) is not None
    found = [checked.locate_checked(log.file(), 0, 1 << 20, one_at_least=True) is not None for log in logs]
    assert found == [True, False, False, True]


def test_messages_and_batches_are_ranges_together(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(message(0) + batch_of(1) + batch_of(2))
    file, checked = BatchFile("log", OsDisk().open(str(path)), lambda _: 0, END, None), CheckedFiles()
    for _ in range(2):
        assert bytes_of(checked.locate(file, 0, 1 << 20, one_at_least=True)) == path.read_bytes()
        assert bytes_of(checked.locate(file, 1, 1, one_at_least=True)) == batch_of(1)
