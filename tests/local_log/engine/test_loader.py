"""A log's folder opened: what a crash left is brought in order, and what was lost is found again in the log itself."""

import random  # noqa: TID251  # seeded
from collections.abc import Callable
from pathlib import Path

import pytest
from small_logs import (
    INT32_MAX,
    NOW,
    Clock,
    LogReads,
    base_offsets,
    follow,
    marker,
    old_compressed,
    old_records,
    opened,
    produced,
    records,
    suffixed,
)

from local_log.engine.split import split_overflowed
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Invalid
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.txn_index import AbortedTxn

Make = Callable[[int], bytes]

ONE = len(records(0))
"""Bytes of a batch."""


def file_of(folder: Path, base_offset: int, of: str) -> Path:
    return folder / f"{base_offset:020d}{of}"


def bases(log: UnifiedLog) -> list[int]:
    return list(log.local.segments.base_offsets)


def found_at(log: UnifiedLog, time: int) -> int | None:
    found = log.offset_for(time)
    return None if found is None else found.offset


def a_segment_each(log: UnifiedLog, count: int) -> None:
    """Appends `count` batches of one record and rolls after each."""
    for _ in range(count):
        follow(log, records(log.log_end_offset))
        log.roll()


# Clean or not


def test_segments_are_recovered_unless_the_shutdown_was_clean(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, records(0), records(1), records(2))
    log.close()
    file = file_of(tmp_path, 0, ".log")
    damaged = bytearray(file.read_bytes())
    damaged[-1] ^= 1
    file.write_bytes(damaged)

    log = opened(tmp_path, clean=True)
    assert (log.log_end_offset, log.recovery_point) == (3, 3)
    log.close()
    assert file.read_bytes() == damaged
    log = opened(tmp_path)
    assert (log.log_end_offset, log.recovery_point) == (2, 0)
    log.close()
    assert file.read_bytes() == damaged[: 2 * ONE]


def test_after_a_clean_shutdown_the_whole_log_counts_as_flushed(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=5 * ONE)
    follow(log, *(records(i) for i in range(23)))
    log.close()
    disk = LogReads()
    log = opened(tmp_path, disk=disk, clean=True, segment_bytes=5 * ONE)
    assert (log.log_end_offset, log.recovery_point) == (23, 23)
    assert disk.read_bases == {20}  # for its end alone


def test_recovery_finds_the_end_and_the_same_index_entries_and_moves_no_recovery_point(tmp_path: Path) -> None:
    settings = {"segment_bytes": 7 * ONE, "index_interval_bytes": 3 * ONE}
    log = opened(tmp_path, **settings)  # type: ignore[arg-type]
    follow(log, *(records(i, time=NOW + 10 * i) for i in range(100)))
    log.close()
    written = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    for point in (100, 10):
        log = opened(tmp_path, point=point, **settings)  # type: ignore[arg-type]
        assert (log.log_end_offset, log.recovery_point) == (100, point)
        assert log.local.segments.active.time_index.last_entry == (NOW + 990, 99)
        assert log.local.segments.active.offset_index.last_offset == 98
        log.flush()
        assert log.recovery_point == 100
        log.close()
        again = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
        assert {name: again[name] for name in written} == written


@pytest.mark.parametrize("make", [records, old_records])
def test_only_segments_from_the_recovery_point_on_are_read_where_there_are_snapshots(tmp_path: Path, make: Make) -> None:
    size = len(make(0))
    log = opened(tmp_path, segment_bytes=4 * size)
    follow(log, *(make(i) for i in range(39)))
    starts = bases(log)
    assert starts == list(range(0, 40, 4))
    log.close()
    point = starts[-4]

    log.producers.delete_snapshots_before(starts[-2])
    disk = LogReads()
    log = opened(tmp_path, disk=disk, point=point, segment_bytes=4 * size)
    assert disk.read_bases == set(starts)  # nobody says who wrote before the recovery point
    assert log.producers.snapshot_offsets == (*starts[-4:], 39)
    log.close()

    log.producers.delete_snapshots_before(point)
    disk = LogReads()
    log = opened(tmp_path, disk=disk, point=point + 1, segment_bytes=4 * size)
    assert disk.read_bases == set(starts[-4:])
    assert log.producers.snapshot_offsets == (*starts[-4:], 39)


# Producers


def test_a_truncation_reads_nothing_for_producers_where_there_are_none(tmp_path: Path) -> None:
    disk = LogReads()
    log = opened(tmp_path, disk=disk)
    assert log.producers.snapshot_offsets == ()
    a_segment_each(log, 3)
    follow(log, records(3), records(4))
    log.producers.delete_snapshots_before(100)
    disk.read_bases.clear()
    log.truncate_to(4)
    assert disk.read_bases == {3}
    assert log.producers.map_end_offset == 4


def test_a_truncation_reads_the_log_again_where_there_are_producers_and_no_snapshots(tmp_path: Path) -> None:
    disk = LogReads()
    log = opened(tmp_path, disk=disk)
    for i in range(3):
        follow(log, produced(i, 8, i))
        log.roll()
    follow(log, records(3), produced(4, 8, 3))
    log.producers.delete_snapshots_before(100)
    disk.read_bases.clear()
    log.truncate_to(4)
    assert disk.read_bases == {0, 1, 2, 3}
    assert log.producers.producers[8].last_sequence == 2


@pytest.mark.parametrize("make", [records, old_records])
def test_after_a_clean_shutdown_without_snapshots_the_log_is_not_read_for_producers(tmp_path: Path, make: Make) -> None:
    log = opened(tmp_path)
    for i in range(3):
        follow(log, make(i))
        log.roll()
    follow(log, make(3))
    log.close()
    for file in tmp_path.glob("*.snapshot"):
        file.unlink()
    disk = LogReads()
    log = opened(tmp_path, disk=disk, clean=True)
    assert disk.read_bases == {3}
    assert log.producers.snapshot_offsets == (2, 3, 4)  # so that the next start finds some
    assert (log.producers.map_end_offset, log.producers.is_empty) == (4, True)


def test_a_marker_of_an_older_coordinator_is_taken_when_it_is_read_again(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, marker(0, 8, commit=False, coordinator_epoch=5, time=NOW - 9))
    follow(log, marker(1, 8, commit=False, coordinator_epoch=4, time=NOW - 3))
    log.close()
    for file in tmp_path.glob("*.snapshot"):
        file.unlink()
    producer = opened(tmp_path).producers.producers[8]
    assert (producer.last_timestamp, producer.coordinator_epoch) == (NOW - 3, 4)


def test_producers_below_a_start_in_the_middle_of_a_segment_are_still_known(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, produced(0, 8, 0), produced(1, 9, 0))
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(1)
    assert sorted(log.producers.producers) == [8, 9]
    log.close()
    log = opened(tmp_path, start=1)
    assert log.log_start_offset == 1
    assert sorted(log.producers.producers) == [8, 9]
    assert log.producers.producers[9].last_sequence == 0


def test_producers_of_a_deleted_segment_are_forgotten_at_the_next_start(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, produced(0, 8, 0))
    log.roll()
    follow(log, produced(1, 9, 0))
    log.update_high_watermark(2)
    log.maybe_increment_log_start_offset(1)
    first = log.local.segments.first
    log.local.remove([first])
    log.folder.delete_snapshots_later(log.producers, [first])
    assert sorted(log.producers.producers) == [8, 9]
    log.close()
    log = opened(tmp_path, start=1)
    assert bases(log) == [1]
    assert list(log.producers.producers) == [9]
    assert log.producers.producers[9].last_sequence == 0


def test_of_snapshots_that_belong_to_no_segment_only_the_newest_stays(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for i in range(2):
        follow(log, produced(i, 8, i))
        log.roll()
    follow(log, produced(2, 8, 2), produced(3, 8, 3))
    log.close()
    assert suffixed(tmp_path, ".snapshot") == [1, 2, 4]
    file_of(tmp_path, 3, ".snapshot").touch()
    log = opened(tmp_path)
    assert suffixed(tmp_path, ".snapshot") == [1, 2, 4]
    assert log.producers.producers[8].last_sequence == 3


# Indexes


def test_missing_indexes_are_made_anew(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=4 * ONE)
    follow(log, *(records(i, time=NOW + 10 * i) for i in range(30)))
    log.close()
    written = {f.name: f.read_bytes() for f in tmp_path.iterdir() if f.suffix.endswith("index")}
    for name in written:
        (tmp_path / name).unlink()
    log = opened(tmp_path, segment_bytes=4 * ONE)
    assert log.log_end_offset == 30
    for offset in range(30):
        assert log.read(offset, 1).start.offset == offset
        assert found_at(log, NOW + 10 * offset) == offset
    log.close()
    assert {name: (tmp_path / name).read_bytes() for name in written} == written


def test_a_segment_that_was_flushed_but_has_no_time_index_gets_an_empty_one(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=4 * len(old_records(0)))
    follow(log, *(old_records(i, time=NOW + 10 * i) for i in range(30)))
    log.close()
    for file in tmp_path.glob("*.timeindex"):
        file.unlink()
    log = opened(tmp_path, point=31, segment_bytes=4 * len(old_records(0)))
    closed = list(log.local.segments)[:-1]
    assert len(closed) == 7
    assert [len(s.time_index) for s in closed] == [0] * 7
    assert [file_of(tmp_path, s.base_offset, ".timeindex").stat().st_size for s in closed] == [0] * 7


def test_damaged_indexes_are_made_anew_after_a_crash(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=4 * ONE)
    follow(log, *(records(i, time=NOW + 10 * i) for i in range(30)))
    log.close()
    written = {f.name: f.read_bytes() for f in tmp_path.iterdir() if f.suffix.endswith("index")}
    for name in written:
        (tmp_path / name).write_bytes(b"  ")
    log = opened(tmp_path, segment_bytes=4 * ONE)
    assert log.log_end_offset == 30
    assert [found_at(log, NOW + 10 * i) for i in range(30)] == list(range(30))
    log.close()
    assert {name: (tmp_path / name).read_bytes() for name in written} == written


def test_index_files_without_a_log_are_removed_and_those_of_a_new_log_have_their_whole_size(tmp_path: Path) -> None:
    for of in (".index", ".timeindex", ".txnindex"):
        file_of(tmp_path, 0, of).touch()
        file_of(tmp_path, 5, of).touch()
    log = opened(tmp_path)
    assert [f.name for f in tmp_path.iterdir() if f.name.startswith(f"{5:020d}")] == []
    assert (len(log.local.segments.active.offset_index), len(log.local.segments.active.time_index)) == (0, 0)
    assert file_of(tmp_path, 0, ".index").stat().st_size == 1200
    assert file_of(tmp_path, 0, ".timeindex").stat().st_size == 1200
    follow(log, *(records(i) for i in range(10)))
    assert log.log_end_offset == 10


def test_an_index_of_transactions_from_before_its_segment_has_the_segment_recovered(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, records(0))
    log.roll()
    follow(log, produced(1, 8, 0, transactional=True), marker(2, 8, commit=False))
    log.close()
    index = file_of(tmp_path, 1, ".txnindex")
    written = index.read_bytes()
    index.write_bytes(written[:18] + bytes(8) + written[26:])
    opened(tmp_path, clean=True).close()
    assert index.read_bytes() == written


def test_an_empty_last_segment_has_no_index_files_until_it_is_flushed_or_opened_again(tmp_path: Path) -> None:
    def index_files(offset: int) -> list[bool]:
        return [file_of(tmp_path, offset, of).exists() for of in (".index", ".timeindex")]

    log = opened(tmp_path, segment_bytes=7 * ONE)
    follow(log, *(records(i) for i in range(20)))
    log.roll()
    log.flush()
    assert index_files(20) == [False, False]
    log.folder.disk.release(log.folder.path)  # as a crash would

    log = opened(tmp_path, point=20, segment_bytes=7 * ONE)
    assert (log.recovery_point, log.log_end_offset) == (20, 20)
    assert index_files(20) == [True, True]
    assert len(log.local.segments.active.time_index) == 0

    follow(log, *(records(20 + i) for i in range(20)))
    log.roll()
    assert index_files(40) == [False, False]
    log.flush(also_active=True)
    assert index_files(40) == [True, True]
    log = opened(tmp_path, point=40, segment_bytes=7 * ONE)
    assert (log.recovery_point, log.log_end_offset) == (40, 40)


# Leftovers and damage


def test_a_log_that_was_opened_again_is_truncated_across_segments(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=5 * ONE)
    follow(log, *(records(i) for i in range(40)))
    log.close()
    log = opened(tmp_path, segment_bytes=5 * ONE)
    assert len(log.local.segments) == 8
    log.truncate_to(3)
    assert (bases(log), log.log_end_offset) == ([0], 3)
    assert base_offsets(log.local.segments) == [0, 1, 2]


def test_what_was_to_be_deleted_in_a_while_is_deleted_at_the_next_start(tmp_path: Path) -> None:
    log = opened(tmp_path, segment_bytes=5 * ONE)
    follow(log, *(records(i) for i in range(40)))
    log.truncate_to(3)
    log.close()
    assert suffixed(tmp_path, ".log.deleted") == list(range(5, 40, 5))
    assert suffixed(tmp_path, ".snapshot.deleted") == list(range(5, 40, 5))
    log = opened(tmp_path, segment_bytes=5 * ONE)
    assert suffixed(tmp_path, ".deleted") == []
    assert (bases(log), log.log_end_offset) == ([0], 3)


@pytest.mark.parametrize("seed", range(8))
def test_garbage_behind_the_log_s_end_is_cut(tmp_path: Path, seed: int) -> None:
    r = random.Random(seed)
    log = opened(tmp_path, segment_bytes=14 * ONE)
    count = r.randrange(50, 80)
    follow(log, *(records(i, value=f"v{i}".encode()) for i in range(count)))
    active = log.local.segments.active.base_offset
    log.close()
    logs = {f.name: f.read_bytes() for f in tmp_path.glob("*.log")}
    for of in (".index", ".log"):
        file = file_of(tmp_path, active, of)
        file.write_bytes(file.read_bytes() + r.randbytes(r.randrange(1, 1024)))
    log = opened(tmp_path, point=30, segment_bytes=14 * ONE)
    assert log.log_end_offset == count
    assert base_offsets(log.local.segments) == list(range(count))
    log.close()
    assert {f.name: f.read_bytes() for f in tmp_path.glob("*.log")} == logs


def test_a_segment_of_sound_batches_whose_offsets_fall_is_emptied_and_what_follows_dropped(tmp_path: Path) -> None:
    log = opened(tmp_path)
    a_segment_each(log, 2)
    log.close()
    file_of(tmp_path, 1, ".log").write_bytes(records(1) + records(2) + records(3) + records(2))
    log = opened(tmp_path)
    assert (bases(log), log.log_end_offset) == ([0, 1], 1)
    assert file_of(tmp_path, 1, ".log").read_bytes() == b""
    assert suffixed(tmp_path, ".log.deleted") == [2]


def test_a_log_that_ends_before_its_start_begins_anew_there(tmp_path: Path) -> None:
    clock = Clock()
    log = opened(tmp_path, clock=clock)
    a_segment_each(log, 5)
    log.update_high_watermark(5)
    log.maybe_increment_log_start_offset(4)
    log.close()
    file_of(tmp_path, 1, ".log").write_bytes(b"no batch is in here, nor will be")
    log = opened(tmp_path, clock=clock, start=4)
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([4], 4, 4)
    assert suffixed(tmp_path, ".log.deleted") == [0, 1, 2, 3, 4, 5]
    clock.sleep(60_000)
    log.folder.delete_due()
    kept = [f"{4:020d}{of}" for of in (".index", ".log", ".timeindex")]
    assert sorted(f.name for f in tmp_path.iterdir()) == [*kept, "leader-epoch-checkpoint"]


def test_the_snapshots_of_a_log_that_ends_before_its_start_are_deleted_in_a_while_with_its_segments(tmp_path: Path) -> None:
    log = opened(tmp_path)
    a_segment_each(log, 3)
    follow(log, records(3))
    log.close()
    assert suffixed(tmp_path, ".snapshot") == [1, 2, 3, 4]
    log = opened(tmp_path, start=9, clean=True)
    assert bases(log) == [9]
    assert suffixed(tmp_path, ".log.deleted") == [0, 1, 2, 3]
    assert suffixed(tmp_path, ".snapshot.deleted") == [1, 2, 3]
    assert suffixed(tmp_path, ".snapshot") == list(log.producers.snapshot_offsets) == [9]
    assert log.epochs.entries == []


def test_what_is_deleted_later_after_a_recovery_is_not_what_was_written_since(tmp_path: Path) -> None:
    clock = Clock()
    log = opened(tmp_path, clock=clock)
    a_segment_each(log, 9)
    assert log.producers.snapshot_offsets == tuple(range(1, 10))
    log.update_high_watermark(9)
    log.maybe_increment_log_start_offset(4)
    log.close()
    file_of(tmp_path, 1, ".log").write_bytes(b"no batch is in here, nor will be")

    log = opened(tmp_path, clock=clock, start=4)
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([4], 4, 4)
    assert suffixed(tmp_path, ".snapshot") == list(log.producers.snapshot_offsets) == []

    a_segment_each(log, 5)
    assert bases(log) == [4, 5, 6, 7, 8, 9]
    clock.sleep(60_000)
    log.folder.delete_due()
    assert (log.log_start_offset, log.log_end_offset) == (4, 9)
    assert suffixed(tmp_path, ".snapshot") == list(log.producers.snapshot_offsets) == [5, 6, 7, 8, 9]
    assert suffixed(tmp_path, ".deleted") == []


# Leader epochs


def test_leader_epochs_that_were_lost_are_found_again_in_the_log(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, records(0, epoch=1), records(1, epoch=2), records(2, epoch=2), records(3, epoch=3))
    expected = [EpochEntry(1, 0), EpochEntry(2, 1), EpochEntry(3, 3)]
    assert log.epochs.entries == expected
    log.epochs.truncate_from_end(1)
    assert log.epochs.entries == expected[:1]
    log.close()
    assert opened(tmp_path, clean=True).epochs.entries == expected[:1]
    assert opened(tmp_path).epochs.entries == expected


def test_leader_epochs_outside_of_the_log_are_dropped(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, records(0, epoch=1), records(1, epoch=2), records(2, epoch=2), records(3, epoch=3))
    log.close()
    checkpoint = tmp_path / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n4\n1 0\n2 1\n3 3\n5 4\n")
    log = opened(tmp_path, start=2, clean=True)
    assert log.epochs.entries == [EpochEntry(2, 2), EpochEntry(3, 3)]


def test_a_message_of_an_older_format_ends_the_leader_epochs(tmp_path: Path) -> None:
    log = opened(tmp_path)
    follow(log, records(0, epoch=5))
    assert log.epochs.latest_epoch == 5
    follow(log, old_records(1))
    assert log.epochs.entries == []
    log.close()
    log = opened(tmp_path, clean=True)
    assert log.epochs.entries == []
    follow(log, old_records(2))
    assert log.epochs.entries == []


# Offsets too far apart for one segment


def test_a_batch_too_far_above_the_base_offset_begins_a_segment(tmp_path: Path) -> None:
    log = opened(tmp_path)
    far = INT32_MAX + 2
    follow(log, records(0))
    assert bases(log) == [0]
    follow(log, records(far))
    assert bases(log) == [0, far]
    assert file_of(tmp_path, far, ".snapshot").exists()
    follow(log, records(far + 1), records(far + 2))
    assert bases(log) == [0, far]
    log.close()
    log = opened(tmp_path, clean=True)
    assert log.local.segments.active.offset_index.last_offset == far + 2
    assert log.log_end_offset == far + 3


def test_a_batch_of_several_records_too_far_above_begins_a_segment_at_its_first(tmp_path: Path) -> None:
    log = opened(tmp_path)
    far = INT32_MAX + 2
    follow(log, records(0), records(far, 2))
    assert bases(log) == [0, far]
    assert file_of(tmp_path, far, ".snapshot").exists()
    follow(log, records(far + 2, 2), records(far + 4, 2))
    assert bases(log) == [0, far]
    log.close()
    log = opened(tmp_path)
    assert (bases(log), log.log_end_offset) == ([0, far], far + 6)


def test_a_message_set_too_far_above_begins_a_segment_at_the_lowest_offset_that_it_can_start_with(tmp_path: Path) -> None:
    log = opened(tmp_path)
    far = INT32_MAX + 2
    follow(log, old_records(0), old_compressed(far, 2))  # only the last offset, far + 1, is in the header
    assert bases(log) == [0, 3]
    assert file_of(tmp_path, 3, ".snapshot").exists()
    follow(log, old_compressed(far + 2, 2))
    assert bases(log) == [0, 3, far + 2]
    assert file_of(tmp_path, far + 2, ".snapshot").exists()
    follow(log, old_compressed(far + 4, 2))
    assert bases(log) == [0, 3, far + 2]
    log.close()
    assert opened(tmp_path).log_end_offset == far + 6


FAR = INT32_MAX + 1000
LOW, HIGH = records(0) + records(700), records(FAR) + records(FAR + 5)
AFTER = FAR + 6
OFFSETS = [0, 700, FAR, FAR + 5, AFTER]


def overflowed(folder: Path) -> None:
    """A segment with offsets that do not fit, as a broker before Kafka 1.1 could write it, and one behind it."""
    file_of(folder, 0, ".log").write_bytes(LOW + HIGH)
    file_of(folder, AFTER, ".log").write_bytes(records(AFTER))


def check_split(folder: Path) -> None:
    log = opened(folder)
    assert bases(log) == [0, FAR, AFTER]
    assert base_offsets(log.local.segments) == OFFSETS
    log.close()
    assert file_of(folder, 0, ".log").read_bytes() == LOW
    assert file_of(folder, FAR, ".log").read_bytes() == HIGH
    assert suffixed(folder, ".swap") == suffixed(folder, ".cleaned") == []


def test_recovery_splits_a_segment_whose_offsets_are_too_far_apart(tmp_path: Path) -> None:
    overflowed(tmp_path)
    check_split(tmp_path)
    log = opened(tmp_path)
    for segment in log.local.segments:
        with pytest.raises(Invalid, match="nothing to split"):
            split_overflowed(log.folder, log.local.segments, segment)


def test_new_segments_of_a_split_that_were_not_whole_are_dropped_and_it_is_done_again(tmp_path: Path) -> None:
    overflowed(tmp_path)
    file_of(tmp_path, 0, ".log.cleaned").write_bytes(LOW[:ONE])
    file_of(tmp_path, FAR, ".log.cleaned").touch()
    check_split(tmp_path)


def test_a_split_of_which_only_a_part_was_to_be_swapped_in_is_done_again(tmp_path: Path) -> None:
    overflowed(tmp_path)
    file_of(tmp_path, 0, ".log.cleaned").write_bytes(LOW)
    file_of(tmp_path, FAR, ".log.swap").touch()
    check_split(tmp_path)


def test_a_segment_of_whose_files_some_were_not_to_be_swapped_in_yet_is_dropped(tmp_path: Path) -> None:
    file_of(tmp_path, 0, ".log").write_bytes(LOW)
    file_of(tmp_path, 0, ".log.swap").write_bytes(LOW[:ONE])
    file_of(tmp_path, 0, ".index.cleaned").touch()
    log = opened(tmp_path)
    assert base_offsets(log.local.segments) == [0, 700]
    assert suffixed(tmp_path, ".swap") == suffixed(tmp_path, ".cleaned") == []


def test_a_split_that_was_to_be_swapped_in_whole_is_completed_and_the_old_segment_deleted(tmp_path: Path) -> None:
    overflowed(tmp_path)
    file_of(tmp_path, 0, ".log").write_bytes(b"of this nothing is looked at any more")
    file_of(tmp_path, 0, ".log.swap").write_bytes(LOW)
    file_of(tmp_path, FAR, ".log.swap").write_bytes(HIGH)
    check_split(tmp_path)


def test_a_split_whose_old_segment_is_gone_is_completed(tmp_path: Path) -> None:
    overflowed(tmp_path)
    file_of(tmp_path, 0, ".log").unlink()
    file_of(tmp_path, 0, ".log.swap").write_bytes(LOW)
    file_of(tmp_path, FAR, ".log.swap").write_bytes(HIGH)
    check_split(tmp_path)


def test_a_split_of_which_one_segment_was_not_swapped_in_is_completed(tmp_path: Path) -> None:
    overflowed(tmp_path)
    file_of(tmp_path, 0, ".log").write_bytes(LOW)
    file_of(tmp_path, 0, ".log.deleted").write_bytes(LOW + HIGH)
    file_of(tmp_path, FAR, ".log.swap").write_bytes(HIGH)
    check_split(tmp_path)


# Transactions


TRANSACTIONS = (
    *(("data", 1, 5), ("plain", 0, 3), ("data", 2, 2), ("data", 1, 4), ("data", 3, 3), ("plain", 0, 2), ("data", 1, 10)),
    *(("abort", 1, 1), ("data", 2, 6), ("data", 4, 3), ("plain", 0, 10), ("data", 3, 9), ("commit", 3, 1), ("data", 4, 8)),
    *(("data", 2, 7), ("abort", 2, 1), ("plain", 0, 10), ("data", 4, 4), ("commit", 4, 1)),
)
"""What is done, by whom, and how many records that are: two of four transactions that overlap are aborted."""
ABORTED = [AbortedTxn(0, 29, 1, 8), AbortedTxn(8, 74, 2, 36)]


def log_of_transactions(folder: Path) -> UnifiedLog:
    log = opened(folder, segment_bytes=5 * 128)
    sequences = dict.fromkeys(range(5), 0)
    for act, producer, count in TRANSACTIONS:
        end = log.log_end_offset
        if act == "plain":
            follow(log, records(end, count))
        elif act == "data":
            follow(log, produced(end, producer, sequences[producer], count, transactional=True))
            sequences[producer] += count
        else:
            follow(log, marker(end, producer, commit=act == "commit"))
    assert len(log.local.segments) > 3
    assert aborted(log) == ABORTED
    return log


def aborted(log: UnifiedLog) -> list[AbortedTxn]:
    return [txn for segment in log.local.segments for txn in segment.txn_index.all()]


def test_aborted_transactions_are_found_again_in_the_log(tmp_path: Path) -> None:
    log_of_transactions(tmp_path).close()
    for file in (*tmp_path.glob("*.index"), *tmp_path.glob("*.txnindex")):
        file.unlink()
    assert aborted(opened(tmp_path)) == ABORTED


@pytest.mark.parametrize("has_snapshots", [True, False])
def test_aborted_transactions_of_the_last_segments_are_found_again_from_a_snapshot_or_from_the_log_s_start(
    tmp_path: Path, has_snapshots: bool
) -> None:
    log = log_of_transactions(tmp_path)
    with_aborted = [s.base_offset for s in log.local.segments if tuple(s.txn_index.all())]
    first, last = bases(log)[0], with_aborted[-1]
    assert first < with_aborted[0] < last
    log.close()
    file_of(tmp_path, last, ".index").unlink()
    file_of(tmp_path, last, ".txnindex").unlink()
    if not has_snapshots:
        for file in tmp_path.glob("*.snapshot"):
            file.unlink()
    disk = LogReads()
    log = opened(tmp_path, disk=disk, point=last)
    assert aborted(log) == ABORTED
    assert (first in disk.read_bases) is not has_snapshots


# Tiered


@pytest.mark.parametrize(("is_tiered", "start"), [(False, 5), (True, 0)])
def test_the_log_starts_at_its_first_segment_unless_the_earlier_ones_are_in_the_archive(
    tmp_path: Path, is_tiered: bool, start: int
) -> None:
    log = opened(tmp_path)
    a_segment_each(log, 9)
    log.local.remove([s for s in log.local.segments if s.base_offset < 5])
    log.close()
    log = opened(tmp_path, clean=True, remote_storage_enable=is_tiered)
    assert (bases(log)[0], log.log_start_offset, log.local_log_start_offset) == (5, start, 5)
