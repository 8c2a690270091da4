"""Offsets too far apart for one segment: appended, they begin another; found in one, they are split, over any crash."""

from pathlib import Path

import pytest
from small_logs import (
    INT32_MAX,
    ONE,
    base_offsets,
    bases,
    file_of,
    follow,
    old_compressed,
    old_records,
    opened,
    records,
    suffixed,
)

from local_log.engine.recovery.split import split_overflowed
from local_log.errors import Invalid


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
