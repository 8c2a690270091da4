"""One segment's files: truncated, renamed, deleted, preallocated and closed."""

from pathlib import Path

from lone_segments import found_offset, segment
from small_logs import INT32_MAX, Clock, append, base_offsets, records, small_config

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
