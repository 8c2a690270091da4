"""One segment that is written to: what is found in it, what its indexes get, and when it is rolled."""

from pathlib import Path

import pytest
from hand_made import batch, record
from lone_segments import found_offset, segment
from small_logs import INT32_MAX, NOW, Clock, append, records, small_config

from local_log.engine.folder import LogFolder
from local_log.engine.index_file import OffsetOverflow
from local_log.engine.list_offsets import find_by_timestamp
from local_log.engine.local_log import LocalLog
from local_log.engine.memory_records import BatchFacts
from local_log.engine.offsets import OffsetMetadata
from local_log.engine.segment import Segment
from local_log.engine.segments import Segments
from local_log.os_disk import OsWritableDisk


def log_of(one: Segment, folder: Path, end: int) -> LocalLog:
    segments = Segments()
    segments.add(one)
    return LocalLog(LogFolder(OsWritableDisk(), str(folder), small_config(), Clock(), lambda: 0.0), segments, 0, end)


# Appended and found


@pytest.mark.parametrize(
    ("base_offset", "last_offset"),
    [
        (0, -1 << 31),
        (0, 1 << 31),
        (1, 0),
        (100, 10),
        (1 << 31, 0),
        (1 << 31, 1 << 32),
    ],
)
def test_an_append_out_of_the_base_offset_s_reach_is_refused_before_it_is_written(
    tmp_path: Path, base_offset: int, last_offset: int
) -> None:
    one = segment(tmp_path, base_offset)
    with pytest.raises(OffsetOverflow) as e:
        one.append(last_offset, records(0), [BatchFacts(last_offset, NOW, len(records(0)))])
    assert (e.value.base_offset, e.value.offset, one.size) == (base_offset, last_offset, 0)


def test_the_furthest_offset_that_a_segment_takes_is_2_31_minus_1_above_its_base(tmp_path: Path) -> None:
    one = segment(tmp_path, 7)
    append(one, records(7 + INT32_MAX))
    assert (one.read_next_offset(), one.has_overflow()) == (8 + INT32_MAX, False)


def test_in_an_empty_segment_nothing_is_found(tmp_path: Path) -> None:
    assert segment(tmp_path).translate(40) is None


def test_below_the_first_batch_the_first_is_found(tmp_path: Path) -> None:
    one = segment(tmp_path)
    append(one, records(50, 4))
    assert one.translate(41) == (50, 0, one.size)


def test_in_the_middle_of_a_batch_its_base_offset_is_found(tmp_path: Path) -> None:
    one = segment(tmp_path)
    append(one, records(50, 4), records(54, 3))
    assert [found_offset(one, offset) for offset in range(50, 57)] == [50, 50, 50, 50, 54, 54, 54]


def test_behind_the_last_offset_nothing_is_found(tmp_path: Path) -> None:
    one = segment(tmp_path)
    append(one, records(50, 2))
    assert (found_offset(one, 51), found_offset(one, 52), found_offset(one, 9000)) == (50, None, None)


def test_in_a_gap_the_batch_behind_it_is_found(tmp_path: Path) -> None:
    one = segment(tmp_path)
    append(one, records(50, 2), records(60, 2))
    assert one.translate(55) == (60, len(records(50, 2)), len(records(60, 2)))


@pytest.mark.parametrize("one_batch_at_least", [False, True])
def test_a_read_whose_end_lies_at_an_unknown_place_gives_a_place_and_no_bytes(tmp_path: Path, one_batch_at_least: bool) -> None:
    one = segment(tmp_path)
    append(one, records(50), records(51))
    log, size = log_of(one, tmp_path, 52), len(records(50))
    end = OffsetMetadata(60)
    for offset, position in ((50, 0), (51, size)):
        fetched = log.read(offset, 1, end, one_batch_at_least=one_batch_at_least)
        assert (fetched.start, fetched.records) == (OffsetMetadata(offset, 40, position), b"")
        assert not fetched.first_batch_is_cut
    assert log.read(52, 1, end, one_batch_at_least=one_batch_at_least).start == log.end


def test_a_read_of_fewer_bytes_than_a_batch_has_says_that_it_is_cut(tmp_path: Path) -> None:
    one = segment(tmp_path)
    append(one, records(50, 3), records(53))
    log = log_of(one, tmp_path, 54)
    assert log.read(50, 1, log.end).records == records(50, 3)[:1]
    assert log.read(50, 1, log.end).first_batch_is_cut
    assert log.read(50, 1, log.end, one_batch_at_least=True).records == records(50, 3)
    assert not log.read(50, 1, log.end, one_batch_at_least=True).first_batch_is_cut
    assert not log.read(50, 0, log.end).first_batch_is_cut
    inside = OffsetMetadata(52, 40, 0)  # a batch that is only in part below the end
    assert log.read(51, 1, inside).records == b""
    assert log.read(51, 1, inside).first_batch_is_cut


def test_a_record_is_found_by_its_time_whether_the_index_has_it_or_not(tmp_path: Path) -> None:
    one = segment(tmp_path, config=small_config(index_interval_bytes=2 * len(records(0)) - 1))
    for offset in range(40, 50):
        append(one, records(offset, time=offset * 10))
    assert 0 < len(one.time_index) < 9
    asked = {300: 40, 400: 40, 401: 41, 420: 42, 421: 43, 430: 43, 431: 44, 490: 49}
    for time, offset in asked.items():
        found = find_by_timestamp(one, time, 0)
        assert found is not None
        assert (found.offset, found.timestamp) == (offset, offset * 10)
    assert find_by_timestamp(one, 491, 0) is None
    assert one.largest_timestamp == 490


def test_the_next_offset_is_behind_the_last_batch(tmp_path: Path) -> None:
    one = segment(tmp_path)
    assert one.read_next_offset() == 40
    append(one, records(50, 3))
    assert one.read_next_offset() == 53
    append(one, records(58, 2))
    assert one.read_next_offset() == 60


# Indexed


def test_each_batch_of_an_append_may_get_an_index_entry(tmp_path: Path) -> None:
    one = segment(tmp_path, 0)
    append(one, records(0, time=1000), records(1, time=1001))
    append(one, records(2, time=1002))
    assert [one.offset_index.entry(i) for i in range(2)] == [(1, len(records(0))), (2, 2 * len(records(0)))]
    assert [one.time_index.entry(i) for i in range(2)] == [(1001, 1), (1002, 2)]
    assert len(one.offset_index) == len(one.time_index) == 2


def test_a_batch_that_is_not_later_gets_an_offset_entry_beside_the_latest_time_so_far(tmp_path: Path) -> None:
    one = segment(tmp_path, 0)
    append(one, records(0, time=1001), records(1, time=1000), records(2, time=1002))
    assert [one.offset_index.entry(i)[0] for i in range(2)] == [1, 2]
    assert [one.time_index.entry(i) for i in range(2)] == [(1001, 0), (1002, 2)]


def test_an_index_entry_needs_more_than_the_interval_since_the_last_one(tmp_path: Path) -> None:
    size = len(records(0))
    one = segment(tmp_path, 0, small_config(index_interval_bytes=2 * size))
    for offset in range(7):
        append(one, records(offset))
    assert [one.offset_index.entry(i) for i in range(len(one.offset_index))] == [(3, 3 * size), (6, 6 * size)]


@pytest.mark.parametrize("size", [70, 100, 333, 2047, 2048, 2049, 5000])
def test_every_offset_is_found_whatever_the_batches_sizes(tmp_path: Path, size: int) -> None:
    one_of = segment(tmp_path, 0, small_config(index_interval_bytes=1 << 20))  # so that every look-up starts at the first byte
    batches = [batch(record(0, value=bytes(max(0, size - 70 + i % 9))), base_offset=i * 2) for i in range(120)]
    position = 0
    where = {}
    for i, one in enumerate(batches):
        one_of.append(i * 2, one, [BatchFacts(i * 2, 0, len(one))])
        where[i * 2] = position
        position += len(one)
    for offset, at in where.items():
        assert one_of.translate(offset) == (offset, at, len(batches[offset // 2]))
        if offset:
            assert one_of.translate(offset - 1) == (offset, at, len(batches[offset // 2]))
    assert one_of.translate(239) is None


@pytest.mark.parametrize("sizes", [(9_000,), (16_000, 100), (100, 100, 30_000), (3_000, 6_000), (4_000,) * 3 + (20_000,)])
def test_every_offset_is_found_by_an_index_entry_of_its_own_batch_or_one_before_it(
    tmp_path: Path, sizes: tuple[int, ...]
) -> None:
    one_of = segment(tmp_path, 0, small_config(index_interval_bytes=4_096))
    position, where = 0, {}
    for i in range(60):
        one = batch(record(0), record(2, value=bytes(sizes[i % len(sizes)])), base_offset=i * 5, last_delta=2)
        one_of.append(i * 5 + 2, one, [BatchFacts(i * 5 + 2, 0, len(one))])
        where[i * 5] = i * 5, position, len(one)
        position += len(one)
    for offset in range(60 * 5 - 2):
        assert one_of.translate(offset) == where[offset - offset % 5 + (5 if offset % 5 > 2 else 0)]
    assert one_of.translate(60 * 5 - 2) is None


def test_a_large_batch_is_found_by_one_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one_of = segment(tmp_path, 0, small_config(index_interval_bytes=4_096))
    for i in range(40):
        one = batch(record(0), record(1, value=bytes(16_000)), base_offset=i * 2)
        one_of.append(i * 2 + 1, one, [BatchFacts(i * 2 + 1, 0, len(one))])
    reads: list[tuple[int, int]] = []
    read_range = Segment._read_range
    monkeypatch.setattr(Segment, "_read_range", lambda self, a, b: reads.append((a, b)) or read_range(self, a, b))
    for offset in range(4, 78):
        assert found_offset(one_of, offset) == offset - offset % 2
    assert len(reads) == 74


# Rolled


def test_an_empty_segment_waits_from_when_it_was_made_and_another_from_its_first_batch(tmp_path: Path) -> None:
    clock = Clock()
    config = small_config(segment_ms=100)
    one = segment(tmp_path, 0, config, clock)
    clock.sleep(101)
    assert not one.should_roll(1, NOW + 50, 0, config, clock())  # with nothing in it there is nothing to roll
    append(one, records(0, time=5_000))
    assert not one.should_roll(1, 5_100, 1, config, clock())
    assert one.should_roll(1, 5_101, 1, config, clock())


@pytest.mark.parametrize("from_the_log", [False, True])
def test_a_segment_of_batches_without_times_waits_from_when_it_was_made(tmp_path: Path, from_the_log: bool) -> None:
    clock = Clock()
    config = small_config(segment_ms=100)
    one = segment(tmp_path, 0, config, clock)
    append(one, records(0, time=-1))
    if from_the_log:
        one.close()
        one = segment(tmp_path, 0, config, clock)
        one.resize_indexes(1200)
    clock.sleep(100)
    assert not one.should_roll(1, 9, 1, config, clock())
    clock.sleep(1)
    assert one.should_roll(1, 9, 1, config, clock())


def test_jitter_makes_a_segment_roll_sooner(tmp_path: Path) -> None:
    config = small_config(segment_ms=100)
    one = Segment(OsWritableDisk(), str(tmp_path), 0, config, Clock(), jitter_ms=30)
    append(one, records(0, time=1000))
    assert not one.should_roll(1, 1070, 1, config, NOW)
    assert one.should_roll(1, 1071, 1, config, NOW)


def test_a_full_index_or_an_append_too_large_or_too_far_rolls(tmp_path: Path) -> None:
    config = small_config(segment_index_bytes=24, segment_bytes=1000)
    one = segment(tmp_path, 0, config)
    append(one, records(0))
    assert not one.should_roll(1000 - one.size, NOW, 1, config, NOW)
    assert one.should_roll(1001 - one.size, NOW, 1, config, NOW)
    assert one.should_roll(1, NOW, INT32_MAX + 1, config, NOW)
    append(one, records(1, time=NOW + 1))  # the one time entry that there is room for but the last
    assert one.time_index.is_full
    assert not one.offset_index.is_full
    assert one.should_roll(1, NOW, 2, config, NOW)
