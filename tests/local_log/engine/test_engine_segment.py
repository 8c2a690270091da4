"""One segment that is written to: found in, rolled, truncated, preallocated, renamed, recovered and split."""

import os
import random  # noqa: TID251  # seeded
from collections.abc import Callable
from pathlib import Path

import pytest
from hand_made import batch, record
from small_logs import (
    INT32_MAX,
    NOW,
    Clock,
    append,
    base_offsets,
    marker,
    old_records,
    produced,
    records,
    small_config,
)

from local_log.engine.config import LogConfig
from local_log.engine.epochs import LeaderEpochs
from local_log.engine.folder import LogFolder
from local_log.engine.index_file import OffsetOverflow
from local_log.engine.list_offsets import find_by_timestamp
from local_log.engine.producer_state_manager import ProducerStateManager
from local_log.engine.producers import Producer
from local_log.engine.recovery import recover
from local_log.engine.segment import BatchFacts, Segment
from local_log.engine.segmented_log import OffsetMetadata, SegmentedLog
from local_log.engine.segments import Segments
from local_log.engine.split import split_overflowed
from local_log.errors import Invalid
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.txn_index import AbortedTxn
from local_log.storage import OsWritableDisk


def segment(folder: Path, base_offset: int = 40, config: LogConfig | None = None, clock: Clock | None = None) -> Segment:
    return Segment(OsWritableDisk(), str(folder), base_offset, config or small_config(), clock or Clock())


def log_of(one: Segment, folder: Path, end: int) -> SegmentedLog:
    segments = Segments()
    segments.add(one)
    return SegmentedLog(LogFolder(OsWritableDisk(), str(folder), small_config(), Clock(), lambda: 0.0), segments, 0, end)


def found_offset(one: Segment, offset: int) -> int | None:
    found = one.translate(offset)
    return None if found is None else found.offset


def recovered(one: Segment, folder: Path, producers: ProducerStateManager | None = None) -> int:
    disk = OsWritableDisk()
    return recover(one, producers or ProducerStateManager(disk, str(folder), Clock()), LeaderEpochs(disk, str(folder)))


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


# Truncated


def test_batches_are_truncated_one_by_one_and_appended_again(tmp_path: Path) -> None:
    one = segment(tmp_path)
    for offset in range(40, 70):
        append(one, records(offset), records(offset + 1))
        assert (found_offset(one, offset), found_offset(one, offset + 1)) == (offset, offset + 1)
        assert one.truncate_to(offset + 1) == len(records(0))
        assert (found_offset(one, offset), found_offset(one, offset + 1)) == (offset, None)
    assert base_offsets([one]) == list(range(40, 70))


def test_truncating_an_empty_segment_gives_its_indexes_their_room_back(tmp_path: Path) -> None:
    clock = Clock()
    config = small_config(segment_ms=300_000)
    one = segment(tmp_path, 0, config, clock)
    assert not one.offset_index.is_full
    assert not one.time_index.is_full
    one.close()
    assert (tmp_path / "00000000000000000000.index").stat().st_size == 0
    assert (tmp_path / "00000000000000000000.timeindex").stat().st_size == 0

    again = segment(tmp_path, 0, config, clock)
    assert again.should_roll(1024, -1, 100, config, clock())  # for its full indexes alone
    clock.sleep(500)
    again.truncate_to(57)
    assert not again.should_roll(1024, -1, 100, config, clock())
    clock.sleep(300_001)
    assert not again.should_roll(1024, -1, 100, config, clock())
    assert again.should_roll(1024, -1, INT32_MAX + 200, config, clock())


def test_after_a_cut_the_greatest_time_and_the_next_offset_are_those_of_what_is_left(tmp_path: Path) -> None:
    one = segment(tmp_path, config=small_config(index_interval_bytes=2 * len(records(0)) - 1))
    for offset in range(40, 70):
        append(one, records(offset, time=offset * 10))
    assert one.read_next_offset() == 70
    assert len(one.time_index) == 14
    one.truncate_to(41)
    assert (len(one.time_index), one.largest_timestamp, one.read_next_offset()) == (0, 400, 41)


def test_after_a_cut_between_index_entries_the_batches_behind_the_last_one_say_the_greatest_time(tmp_path: Path) -> None:
    one = segment(tmp_path, config=small_config(index_interval_bytes=3 * len(records(0)) - 1))
    times = [10, 20, 30, 90, 40, 50, 60, 70]
    for i, time in enumerate(times):
        append(one, records(40 + i, time=time))
    assert one.time_index.last_entry == (90, 43)
    one.truncate_to(43)
    assert one.max_timestamp == (30, 42)


def test_a_segment_truncated_to_nothing_is_as_new_and_takes_the_same_offsets_again(tmp_path: Path) -> None:
    clock = Clock()
    config = small_config(segment_ms=400)
    one = segment(tmp_path, config=config, clock=clock)
    append(one, records(40, 2, time=-1))
    clock.sleep(500)
    assert one.should_roll(1, -1, 42, config, clock())
    one.truncate_to(0)
    assert (one.size, one.translate(0)) == (0, None)
    append(one, records(40, 2, time=-1))
    assert not one.should_roll(1, -1, 42, config, clock())
    clock.sleep(401)
    assert one.should_roll(1, -1, 42, config, clock())


def test_a_cut_in_a_gap_drops_what_is_behind_the_gap(tmp_path: Path) -> None:
    one = segment(tmp_path)
    append(one, records(40), records(43))
    one.truncate_to(41)
    assert base_offsets([one]) == [40]
    assert len(one.offset_index) == 0


# Files


def test_renaming_makes_no_index_files_and_they_are_made_under_the_new_name_when_asked_for(tmp_path: Path) -> None:
    one = segment(tmp_path)
    stem = "00000000000000000040"
    assert [f.name for f in tmp_path.iterdir()] == [f"{stem}.log"]
    one.rename(".deleted")
    assert [f.name for f in tmp_path.iterdir()] == [f"{stem}.log.deleted"]
    assert one.log_file == str(tmp_path / f"{stem}.log.deleted")
    assert (len(one.offset_index), len(one.time_index)) == (0, 0)
    assert sorted(f.name for f in tmp_path.iterdir()) == [f"{stem}{of}.deleted" for of in (".index", ".log", ".timeindex")]


def test_deleting_a_segment_removes_those_of_its_files_that_are_there(tmp_path: Path) -> None:
    one = segment(tmp_path)
    append(one, records(40), records(41))
    (tmp_path / "00000000000000000040.timeindex").unlink()
    one.delete()
    assert list(tmp_path.iterdir()) == []
    one.delete()


def test_a_preallocated_segment_is_written_to_and_read_from_its_start(tmp_path: Path) -> None:
    one = segment(tmp_path, config=small_config(preallocate=True, segment_bytes=1 << 16))
    assert (one.size, Path(one.log_file).stat().st_size) == (0, 1 << 16)
    append(one, records(50, 2), records(60, 2))
    found = one.translate(55)
    assert found is not None
    assert one.read(found.position, found.size) == records(60, 2)
    assert Path(one.log_file).stat().st_size == 1 << 16


def test_closing_a_preallocated_segment_cuts_what_was_not_used(tmp_path: Path) -> None:
    config = small_config(preallocate=True, segment_bytes=1 << 16)
    one = segment(tmp_path, config=config)
    append(one, records(50, 2), records(60, 2))
    one.close()
    assert Path(one.log_file).read_bytes() == records(50, 2) + records(60, 2)
    again = segment(tmp_path, config=config)
    assert again.size == len(records(50, 2) + records(60, 2))
    assert Path(again.log_file).stat().st_size == again.size
    assert found_offset(again, 55) == 60


# Recovered


@pytest.mark.parametrize("of", ["index", "timeindex"])
def test_recovery_makes_a_damaged_index_anew(tmp_path: Path, of: str) -> None:
    one = segment(tmp_path, 0)
    for offset in range(90):
        append(one, records(offset, time=10 * offset))
    one.close()
    sound = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    file = tmp_path / f"00000000000000000000.{of}"
    file.write_bytes(sound[file.name][:5] + random.Random(of).randbytes(len(sound[file.name]) - 5))
    again = segment(tmp_path, 0)
    assert recovered(again, tmp_path) == 0
    assert {name: (tmp_path / name).read_bytes() for name in sound} == sound
    for offset in range(90):
        assert found_offset(again, offset) == offset
        found = find_by_timestamp(again, 10 * offset, 0)
        assert found is not None
        assert found.offset == offset


def test_recovery_writes_down_who_aborted_what_also_where_a_transaction_started_before_the_segment(tmp_path: Path) -> None:
    one = segment(tmp_path, 100)
    append(
        one,
        produced(100, 5, 8, 2, transactional=True),
        produced(102, 6, 8, 2, transactional=True),
        records(104, 2),
        marker(106, 6, commit=False),
        marker(107, 5, commit=True),
    )
    producers = ProducerStateManager(OsWritableDisk(), str(tmp_path), Clock())
    recovered(one, tmp_path, producers)
    assert tuple(one.txn_index.all()) == (AbortedTxn(102, 106, 6, 100),)
    assert (producers.map_end_offset, producers.ongoing) == (108, {})

    producers = ProducerStateManager(OsWritableDisk(), str(tmp_path), Clock())
    producers.producers[6] = Producer(6, 0, txn_first_offset=75)
    producers.ongoing[75] = 6
    recovered(one, tmp_path, producers)
    assert tuple(one.txn_index.all()) == (AbortedTxn(75, 106, 6, 100),)
    assert producers.map_end_offset == 108


def test_recovery_finds_the_leader_epochs_again(tmp_path: Path) -> None:
    one = segment(tmp_path, 0)
    append(one, records(104, 2), records(106, 2, epoch=1), records(108, 2, epoch=1), records(110, 2, epoch=2))
    recovered(one, tmp_path)
    epochs = LeaderEpochs(OsWritableDisk(), str(tmp_path))
    assert epochs.entries == [EpochEntry(0, 104), EpochEntry(1, 106), EpochEntry(2, 110)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", [records, old_records])
def test_recovery_cuts_the_log_at_the_first_damaged_batch(tmp_path: Path, make: Callable[[int], bytes], seed: int) -> None:
    r = random.Random(seed)
    one = segment(tmp_path, 0)
    append(one, *(make(offset) for offset in range(20)))
    first_damaged = r.randrange(20)
    found = one.translate(first_damaged)
    assert found is not None
    position = found.position + r.randrange(15)
    data = Path(one.log_file).read_bytes()
    Path(one.log_file).write_bytes(data[:position] + r.randbytes(len(data) - position))
    again = segment(tmp_path, 0)
    assert recovered(again, tmp_path) == len(data) - found.position
    assert base_offsets([again]) == list(range(first_damaged))
    assert Path(one.log_file).read_bytes() == data[: found.position]


# Split


def test_a_segment_is_split_at_the_first_batch_whose_offsets_do_not_fit(tmp_path: Path) -> None:
    large = batch(record(value=bytes((1 << 20) + 1)), base_offset=500)
    fits = records(0) + large
    too_far = records(INT32_MAX + 5, 2)
    log_file = tmp_path / "00000000000000000000.log"
    log_file.write_bytes(fits + too_far)
    os.utime(log_file, (1_600_000_000, 1_600_000_000))
    folder = LogFolder(OsWritableDisk(), str(tmp_path), small_config(), Clock(), lambda: 0.0)
    segments = Segments()
    segments.add(segment(tmp_path, 0))
    assert segments.first.has_overflow()
    assert split_overflowed(folder, segments, segments.first) == []
    assert segments.base_offsets == (0, INT32_MAX + 5)
    assert [Path(s.log_file).read_bytes() for s in segments] == [fits, too_far]
    assert [s.suffix for s in segments] == ["", ""]
    assert [s.modified_ms for s in segments] == [1_600_000_000_000] * 2  # retention by time goes on where it was
    for one in segments:
        with pytest.raises(Invalid, match="nothing to split"):
            split_overflowed(folder, segments, one)


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
