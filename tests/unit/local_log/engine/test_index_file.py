"""The offset index and the time index as a segment writes them: what is looked up, cut, preallocated and refused."""

import random  # noqa: TID251  # seeded
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from local_log.engine.index_file import IndexFull, InvalidOffset, OffsetIndexFile, OffsetOverflow, TimeIndexFile
from local_log.errors import Corrupt, Invalid
from local_log.formats.indexes.offset import ENTRY as OFFSET_ENTRY
from local_log.formats.indexes.offset import read_offset_index
from local_log.formats.indexes.time import ENTRY as TIME_ENTRY
from local_log.formats.indexes.time import read_time_index
from local_log.os_disk import OsWritableDisk

BASE = 700
ROOM = 24


def offset_index(folder: Path, size_max: int = ROOM * 8) -> OffsetIndexFile:
    return OffsetIndexFile(OsWritableDisk(), str(folder / "00000000000000000700.index"), BASE, size_max)


def time_index(folder: Path, size_max: int = ROOM * 12) -> TimeIndexFile:
    return TimeIndexFile(OsWritableDisk(), str(folder / "00000000000000000700.timeindex"), BASE, size_max)


def filled(index: TimeIndexFile, entries: int) -> TimeIndexFile:
    """An entry every 5 ms and every 3 offsets."""
    for i in range(1, entries + 1):
        index.maybe_append(5 * i, BASE + 3 * i)
    return index


# Offsets


@pytest.mark.parametrize("seed", range(5))
def test_any_offset_is_looked_up_at_the_greatest_entry_that_is_not_above_it(tmp_path: Path, seed: int) -> None:
    r = random.Random(seed)
    index = offset_index(tmp_path, 2500 * 8)
    entries: dict[int, int] = {}
    offset, position = BASE, 0
    for _ in range(2500):  # more than the end that is searched first
        offset, position = offset + r.randrange(1, 12), position + r.randrange(1, 12)
        index.append(offset, position)
        entries[offset] = position
    last = (BASE, 0)
    for asked in range(BASE, offset + 20):
        last = (asked, entries[asked]) if asked in entries else last
        assert index.lookup(asked) == last


@pytest.mark.parametrize("seed", range(5))
def test_an_index_that_grows_and_is_cut_between_look_ups_is_looked_up_as_it_is(tmp_path: Path, seed: int) -> None:
    r = random.Random(seed)
    index = offset_index(tmp_path, 400 * 8)
    entries = [(BASE, 0)]
    for _ in range(300):
        if r.random() < 0.05:
            offset = r.randint(BASE + 1, entries[-1][0] + 1)
            index.truncate_to(offset)
            entries = [entry for entry in entries if entry[0] < offset]
        for _ in range(r.randrange(4)):
            if not index.is_full:
                entries.append((max(entries[-1][0], BASE) + r.randrange(1, 9), entries[-1][1] + r.randrange(1, 9)))
                index.append(*entries[-1])
        asked = r.randrange(BASE, entries[-1][0] + 9)
        at = max(i for i, (offset, _) in enumerate(entries) if offset <= asked)
        assert index.lookup(asked) == entries[at]
        following = entries[at + 1][1] if at + 1 < len(entries) and (entries[at][0] != asked or not at) else 0
        assert index.positions_around(asked) == (entries[at][1], following)


def test_an_index_whose_entries_do_not_increase_is_searched_in_kafka_s_order(tmp_path: Path) -> None:
    rows = np.array([(1, 10), (5, 20), (5, 30), (3, 40), (9, 50)], OFFSET_ENTRY)
    (tmp_path / "00000000000000000700.index").write_bytes(rows.tobytes())
    index = offset_index(tmp_path)
    assert [index.lookup(BASE + offset) for offset in range(10)] == [
        (BASE, 0), (BASE + 1, 10), (BASE + 1, 10), (BASE + 1, 10), (BASE + 1, 10), (BASE + 5, 30), (BASE + 3, 40),
        (BASE + 3, 40), (BASE + 3, 40), (BASE + 9, 50),
    ]  # fmt: skip


def test_before_the_first_entry_and_in_an_empty_index_an_offset_is_looked_up_at_the_log_s_start(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    assert index.lookup(BASE) == index.lookup(BASE + 99) == (BASE, 0)
    for i in range(index.entries_max):
        index.append(BASE + 2 + i, 10 + i)
    assert index.lookup(BASE + 1) == (BASE, 0)
    assert index.lookup(BASE + 2) == (BASE + 2, 10)
    assert index.lookup(BASE + 10_000) == index.lookup(BASE + 1 + ROOM) == (BASE + 1 + ROOM, 9 + ROOM)


def test_offset_entries_are_given_by_their_number(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    for i in range(ROOM):
        index.append(BASE + 2 * i, 7 * i)
    assert [index.entry(i) for i in range(ROOM)] == [(BASE + 2 * i, 7 * i) for i in range(ROOM)]


def test_an_offset_entry_that_is_not_there_is_refused(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    with pytest.raises(Invalid, match="entry 0"):
        index.entry(0)
    index.append(BASE, 0)
    with pytest.raises(Invalid, match="entry 1"):
        index.entry(1)


def test_a_full_offset_index_takes_no_entry(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    for i in range(ROOM):
        assert not index.is_full
        index.append(BASE + 1 + i, i)
    assert index.is_full
    with pytest.raises(IndexFull):
        index.append(BASE + 1 + ROOM, ROOM)
    with pytest.raises(IndexFull):
        index.extend(np.array([BASE + 1 + ROOM]), np.array([ROOM]))
    assert len(index) == ROOM


@pytest.mark.parametrize("offset", [BASE + 10, BASE + 9])
def test_an_offset_entry_has_to_be_above_the_one_before(tmp_path: Path, offset: int) -> None:
    index = offset_index(tmp_path)
    index.append(BASE + 10, 100)
    with pytest.raises(InvalidOffset):
        index.append(offset, 101)
    assert len(index) == 1


@pytest.mark.parametrize("offset", [BASE - 1, BASE + (1 << 31)])
def test_an_offset_out_of_the_base_offset_s_reach_is_no_entry(tmp_path: Path, offset: int) -> None:
    with pytest.raises(OffsetOverflow):
        offset_index(tmp_path).append(offset, 1)
    with pytest.raises(OffsetOverflow):
        time_index(tmp_path).maybe_append(1, offset)


def test_the_first_entry_at_or_behind_a_position_bounds_the_offsets_before_it(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    assert index.upper_bound(4) is None
    for i, position in enumerate([5, 20, 31, 58]):
        index.append(BASE + 10 * i, position)
    asked = {4: 0, 6: 1, 20: 1, 21: 2, 31: 2, 32: 3, 58: 3}
    assert {position: index.upper_bound(position) for position in asked} == {p: BASE + 10 * i for p, i in asked.items()}
    assert index.upper_bound(59) is None


def test_a_position_that_is_the_first_entry_s_is_bounded_by_the_second(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    index.append(BASE + 10, 5)
    assert index.upper_bound(5) is None
    index.append(BASE + 20, 20)
    assert index.upper_bound(5) == BASE + 20


def test_an_offset_index_opened_again_goes_on_where_it_ended(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    index.append(BASE + 4, 3)
    index.append(BASE + 9, 6)
    index.trim()
    again = offset_index(tmp_path)
    assert (len(again), again.last_offset) == (2, BASE + 9)
    assert [again.lookup(BASE + 4), again.lookup(BASE + 9)] == [(BASE + 4, 3), (BASE + 9, 6)]
    assert again.is_full  # there is no room but for what it has
    with pytest.raises(IndexFull):
        again.append(BASE + 10, 9)
    assert again.resize(ROOM * 8)
    again.append(BASE + 10, 9)
    assert again.last_offset == BASE + 10


@pytest.mark.parametrize(("offset", "kept"), [(99, 9), (10, 9), (9, 8), (5, 4), (1, 0), (0, 0)])
def test_an_offset_index_is_cut_before_an_offset_and_takes_entries_from_there_on(tmp_path: Path, offset: int, kept: int) -> None:
    index = offset_index(tmp_path)
    for i in range(1, 10):
        index.append(BASE + i, 10 * i)
    index.truncate_to(BASE + offset)
    assert (len(index), index.last_offset) == (kept, BASE + kept)
    assert index.lookup(BASE + 99) == (BASE + kept, 10 * kept)
    index.append(BASE + kept + 1, 10 * kept + 1)
    assert index.lookup(BASE + 99) == (BASE + kept + 1, 10 * kept + 1)


def test_a_cut_between_offset_entries_keeps_the_lower_one(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    index.append(BASE + 10, 1)
    index.append(BASE + 20, 2)
    index.truncate_to(BASE + 15)
    assert [index.entry(i) for i in range(len(index))] == [(BASE + 10, 1)]


def test_an_entry_of_the_base_offset_itself_is_sound(tmp_path: Path) -> None:
    index = offset_index(tmp_path)
    index.append(BASE, 0)
    index.trim()
    again = offset_index(tmp_path)
    assert (len(again), again.last_offset) == (1, BASE)
    np.testing.assert_array_equal(read_offset_index(Path(index.file).read_bytes(), BASE).offsets, [])  # as a tail of zeros is
    index.resize(16)
    index.append(BASE + 1, 4)
    index.sync()
    np.testing.assert_array_equal(read_offset_index(Path(index.file).read_bytes(), BASE).offsets, [BASE, BASE + 1])


# Times


def test_a_time_is_looked_up_at_the_latest_entry_that_is_not_later(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    assert index.lookup(50) == (-1, BASE)
    filled(index, ROOM - 1)
    asked = {4: (-1, BASE), 5: (5, BASE + 3), 14: (10, BASE + 6), 15: (15, BASE + 9), 10_000: (115, BASE + 69)}
    assert {time: index.lookup(time) for time in asked} == asked


def test_time_entries_are_given_by_their_number(tmp_path: Path) -> None:
    index = filled(time_index(tmp_path), 4)
    assert [index.entry(i) for i in range(4)] == [(5, BASE + 3), (10, BASE + 6), (15, BASE + 9), (20, BASE + 12)]


def test_a_time_entry_that_is_not_there_is_refused(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    with pytest.raises(Invalid, match="entry 0"):
        index.entry(0)
    with pytest.raises(Invalid, match="entry 2"):
        filled(index, 2).entry(2)


@pytest.mark.parametrize(("offset", "kept"), [(BASE + 3, 0), (BASE, 0), (BASE + 4, 1), (BASE + 6, 1), (BASE + 99, 4)])
def test_a_time_index_is_cut_before_an_offset(tmp_path: Path, offset: int, kept: int) -> None:
    index = filled(time_index(tmp_path), 4)
    index.truncate_to(offset)
    assert len(index) == kept
    assert index.last_entry == ((5 * kept, BASE + 3 * kept) if kept else (-1, BASE))


def test_a_time_index_that_is_reset_is_empty_and_has_all_its_room(tmp_path: Path) -> None:
    index = filled(time_index(tmp_path), 4)
    index.trim()
    index.reset()
    assert (len(index), index.entries_max, Path(index.file).stat().st_size) == (0, ROOM, ROOM * 12)
    filled(index, ROOM - 1)


def test_entries_that_are_cut_off_are_not_kept_in_memory(tmp_path: Path) -> None:
    Path(offset_index(tmp_path).file).write_bytes(bytes(8 << 20))
    tracemalloc.start()
    index = offset_index(tmp_path)
    index.reset()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert (len(index), held < 1 << 20) == (0, True)


def test_a_time_index_keeps_its_last_slot_and_takes_nothing_that_goes_back(tmp_path: Path) -> None:
    index = filled(time_index(tmp_path), ROOM - 1)
    with pytest.raises(IndexFull):
        index.maybe_append(9_000, BASE + 200)
    with pytest.raises(InvalidOffset):
        index.maybe_append(9_000, BASE + 3, uses_last_slot=True)
    with pytest.raises(Invalid, match="time"):
        index.maybe_append(1, BASE + 200, uses_last_slot=True)
    index.maybe_append(9_000, BASE + 200, uses_last_slot=True)
    assert index.last_entry == (9_000, BASE + 200)
    with pytest.raises(IndexFull):
        index.maybe_append(9_001, BASE + 201, uses_last_slot=True)


def test_a_time_that_is_not_later_adds_no_entry(tmp_path: Path) -> None:
    index = filled(time_index(tmp_path), 2)
    index.maybe_append(10, BASE + 6)
    index.maybe_append(10, BASE + 60)
    assert (len(index), index.last_entry) == (2, (10, BASE + 6))


@pytest.mark.parametrize("column", ["timestamp", "offset"])
def test_a_time_index_that_goes_back_is_refused_where_a_segment_is_checked(tmp_path: Path, column: str) -> None:
    index = filled(time_index(tmp_path), 5)
    index.trim()
    data = Path(index.file).read_bytes()
    assert len(read_time_index(data, BASE).offsets) == 5
    rows = np.frombuffer(data, TIME_ENTRY).copy()
    rows[column] = rows[column][::-1].copy()
    with pytest.raises(Corrupt):
        read_time_index(rows.tobytes(), BASE)
    with pytest.raises(Corrupt):
        read_time_index(data[:-1], BASE)


def test_a_time_index_is_full_one_entry_before_its_end(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    assert not index.is_full
    assert not filled(index, ROOM - 2).is_full
    index.maybe_append(1_000, BASE + 500)
    assert index.is_full


def test_a_time_index_s_last_entry_is_no_time_at_the_base_offset_until_there_is_one(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    assert index.last_entry == (-1, BASE)
    index.maybe_append(3, BASE + 8)
    assert index.last_entry == (3, BASE + 8)


def test_an_index_is_resized_only_where_its_size_changes(tmp_path: Path) -> None:
    index = filled(time_index(tmp_path), 3)
    assert not index.resize(ROOM * 12)
    assert not index.resize(ROOM * 12 + 11)  # whole entries only
    assert index.resize(ROOM // 2 * 12)
    assert index.resize(ROOM * 24)
    assert index.entries_max == ROOM * 2
    assert index.last_entry == (15, BASE + 9)
    with pytest.raises(Invalid, match="do not fit"):
        index.resize(24)


def test_entries_have_kafka_s_sizes() -> None:
    assert (OffsetIndexFile.ENTRY.size, TimeIndexFile.ENTRY.size) == (8, 12)
    assert (OFFSET_ENTRY.itemsize, TIME_ENTRY.itemsize) == (8, 12)


def test_a_time_entry_is_a_timestamp_and_an_offset_above_the_base(tmp_path: Path) -> None:
    index = time_index(tmp_path)
    index.maybe_append(0x0102030405060708, BASE + 0x0A0B0C0D)
    index.sync()
    assert Path(index.file).read_bytes()[:12].hex(" ", -4) == "01020304 05060708 0a0b0c0d"


def test_what_was_preallocated_is_zeros_that_trimming_cuts(tmp_path: Path) -> None:
    index = offset_index(tmp_path, 100)
    assert Path(index.file).read_bytes() == bytes(96)
    index.append(BASE + 1, 1)
    index.trim()
    assert Path(index.file).read_bytes() == bytes.fromhex("00000001 00000001")


def test_an_index_without_room_for_one_entry_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="no room"):
        offset_index(tmp_path, 7)
