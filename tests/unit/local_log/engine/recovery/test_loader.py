"""A log's folder opened: after a clean stop or not, with leftovers and damage that are brought in order."""

import random  # noqa: TID251  # seeded
from pathlib import Path

import pytest
from small_logs import (
    NOW,
    ONE,
    Clock,
    LogReads,
    Make,
    a_segment_each,
    base_offsets,
    bases,
    file_of,
    follow,
    old_records,
    opened,
    records,
    suffixed,
)

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


def test_a_segment_whose_offsets_fall_is_cut_there_and_what_follows_dropped(tmp_path: Path) -> None:
    log = opened(tmp_path)
    a_segment_each(log, 2)
    log.close()
    sound = records(1) + records(2) + records(3)
    file_of(tmp_path, 1, ".log").write_bytes(sound + records(2))
    log = opened(tmp_path)
    assert (bases(log), log.log_end_offset) == ([0, 1], 4)
    assert file_of(tmp_path, 1, ".log").read_bytes() == sound
    assert suffixed(tmp_path, ".log.deleted") == [2]


def test_a_batch_of_which_the_first_block_was_lost_takes_none_before_it_with_it(tmp_path: Path) -> None:
    log = opened(tmp_path)
    for _ in range(3):
        log.append_as_leader(records(0), 0)
    log.close()
    file = file_of(tmp_path, 0, ".log")
    sound = file.read_bytes()
    for lost in (8, 9, 12):  # no checksum covers these bytes of the next batch
        file.write_bytes(sound + bytes(lost) + records(3)[lost:])
        log = opened(tmp_path)
        assert log.log_end_offset == 3
        log.close()
        assert file.read_bytes() == sound


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
