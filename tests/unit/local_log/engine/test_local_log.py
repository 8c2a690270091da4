"""A log as a row of segments: what is appended, rolled, truncated and read, and which files that leaves."""

from pathlib import Path

import pytest
from logs_at_work import batch_of, segmented, settings, values_of, write
from small_logs import NOW, Clock

from local_log.engine.local_log import LocalLog
from local_log.engine.offsets import OffsetMetadata
from local_log.errors import Invalid, OffsetOutOfRange
from local_log.formats.filenames import DELETED


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(tmp_path: Path, clock: Clock) -> LocalLog:
    return segmented(tmp_path, clock, settings(file_delete_delay_ms=1000))


def bases(log: LocalLog) -> list[int]:
    return list(log.segments.base_offsets)


def written(log: LocalLog, ends: int, *, each: int, then: int = 0) -> None:
    """One record a batch; a segment is begun after every `each` of the first `ends`, and `then` more follow."""
    for offset in range(ends):
        write(log, batch_of("a", offset=offset))
        if (offset + 1) % each == 0:
            log.roll(0)
    write(log, *(batch_of("a", offset=offset) for offset in range(ends, ends + then)))


def read(log: LocalLog, offset: int, size_max: int = 1 << 20) -> list[tuple[int, str]]:
    return values_of(log.read(offset, size_max, log.end).records)


def names(log: LocalLog) -> set[str]:
    return {file.name for file in Path(log.folder.path).iterdir()}


# Append and flush


def test_what_is_appended_is_read_and_moves_the_end_but_not_the_recovery_point(log: LocalLog) -> None:
    assert read(log, 0, 1) == []
    write(log, batch_of("ABC", "DE"))
    assert (log.log_end_offset, log.recovery_point) == (2, 0)
    assert read(log, 0) == [(0, "ABC"), (1, "DE")]


def test_a_flush_that_is_noted_moves_the_recovery_point_and_its_time(log: LocalLog, clock: Clock) -> None:
    assert (log.recovery_point, log.last_flush_ms) == (0, NOW)
    write(log, batch_of("a"))
    clock.sleep(1)
    following = log.roll(0).base_offset
    log.flush(following)
    log.mark_flushed(following)
    assert (log.recovery_point, log.last_flush_ms) == (1, NOW + 1)
    clock.sleep(1)
    log.mark_flushed(following)
    assert log.last_flush_ms == NOW + 1


def test_a_flush_does_not_mind_that_the_folder_has_been_renamed_meanwhile(log: LocalLog) -> None:
    write(log, batch_of("a"))
    following = log.roll(0).base_offset
    log.folder.path += "-gone"
    log.flush(following)


# Roll


def test_a_roll_begins_a_segment_at_the_logs_end(log: LocalLog) -> None:
    assert [log.roll(0).base_offset, bases(log), log.log_end_offset] == [0, [0], 0]
    write(log, batch_of("a"))
    assert [log.roll(0).base_offset, bases(log), log.log_end_offset] == [1, [0, 1], 1]
    write(log, batch_of("b", offset=1))
    assert [log.roll(1).base_offset, bases(log), log.log_end_offset] == [2, [0, 1, 2], 2]


def test_an_empty_last_segment_that_is_rolled_is_replaced_by_a_new_one(log: LocalLog) -> None:
    old = log.segments.active
    log.roll(0)
    assert bases(log) == [0]
    assert log.segments.active is not old
    assert old.suffix == DELETED
    assert {"00000000000000000000.log", "00000000000000000000.log.deleted"} <= names(log)


def test_a_segment_that_was_replaced_while_empty_is_appended_to_and_read_like_any(log: LocalLog) -> None:
    log.roll(0)
    write(log, batch_of("v1"), batch_of("v2", offset=1, time=NOW + 10))
    assert (bases(log), log.log_end_offset) == ([0], 2)
    assert read(log, 0) == [(0, "v1"), (1, "v2")]
    log.roll(0)
    assert (bases(log), log.log_end_offset) == ([0, 2], 2)


def test_a_roll_below_the_last_segment_is_refused(log: LocalLog) -> None:
    write(log, batch_of("v1", "v2", "v3"))
    log.roll(0)
    log.move_end(1)
    with pytest.raises(Invalid, match="cannot roll at 1, below the last segment's 3"):
        log.roll(0)


def test_a_roll_where_a_segment_with_data_starts_is_refused(log: LocalLog) -> None:
    write(log, batch_of("v1"))
    log.move_end(0)
    with pytest.raises(Invalid, match="a segment of offset 0 is there already"):
        log.roll(0)


def test_files_that_lie_where_a_segment_is_rolled_are_deleted_first(log: LocalLog) -> None:
    write(log, batch_of("a"))
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        (Path(log.folder.path) / f"00000000000000000001{suffix}").write_bytes(b"stale")
    assert log.roll(0).size == 0
    assert "00000000000000000001.txnindex" not in names(log)


# Truncate and delete


def test_truncation_deletes_later_segments_and_cuts_the_one_that_the_offset_lies_in(log: LocalLog) -> None:
    written(log, 12, each=3)
    assert bases(log) == [0, 3, 6, 9, 12]
    assert [s.base_offset for s in log.truncate_to(7)] == [9, 12]
    assert (bases(log), log.recovery_point, log.log_end_offset) == ([0, 3, 6], 7, 7)
    assert read(log, 6) == [(6, "a")]
    write(log, batch_of("b", offset=7))
    assert read(log, 7) == [(7, "b")]


def test_a_full_truncation_leaves_one_empty_segment_at_the_new_start(log: LocalLog) -> None:
    written(log, 8, each=2, then=5)
    assert bases(log) == [0, 2, 4, 6, 8]
    assert [s.base_offset for s in log.truncate_fully_and_start_at(10)] == [0, 2, 4, 6, 8]
    assert (bases(log), log.recovery_point, log.log_end_offset) == ([10], 8, 10)
    assert read(log, 10) == []


def test_a_segment_is_replaced_by_an_empty_one_that_starts_later(log: LocalLog) -> None:
    write(log, batch_of("a"))
    old = log.segments.active
    log.truncate_fully_and_start_at(1)
    assert (bases(log), log.recovery_point, log.log_end_offset) == ([1], 0, 1)
    assert old.suffix == DELETED
    assert read(log, 1) == []


def test_segments_that_are_let_go_keep_their_data_for_a_while_under_another_name(log: LocalLog, clock: Clock) -> None:
    written(log, 9, each=1)
    log.remove(list(log.segments))
    assert bases(log) == []
    assert {Path(name).suffix for name in names(log)} == {DELETED}
    log.folder.delete_due()
    assert names(log)
    clock.sleep(1000)
    log.folder.delete_due()
    assert names(log) == set()


def test_a_segments_files_can_be_deleted_at_once(log: LocalLog) -> None:
    written(log, 2, each=1)
    for segment in log.segments:
        segment.delete()
    assert names(log) == set()


# Read


def test_a_read_goes_no_further_than_the_end_that_it_is_given(log: LocalLog) -> None:
    written(log, 4, each=2, then=1)
    size = len(batch_of("a"))
    position_of_3, position_of_5 = OffsetMetadata(3, 2, size), OffsetMetadata(5, 4, size)

    def found(offset: int, end: OffsetMetadata) -> tuple[list[tuple[int, str]], OffsetMetadata]:
        fetched = log.read(offset, 1 << 20, end)
        return values_of(fetched.records), fetched.start

    assert found(3, OffsetMetadata(4, 4, 0)) == ([(3, "a")], position_of_3)
    assert found(4, OffsetMetadata(4, 4, 0)) == ([], OffsetMetadata(4, 4, 0))
    assert found(5, OffsetMetadata(4, 4, 0)) == ([], position_of_5)
    # Where it is not known where the end lies, or it lies before, nothing can be given.
    assert found(3, OffsetMetadata(4)) == ([], position_of_3)
    assert found(3, OffsetMetadata(4, 0, 40)) == ([], position_of_3)


def test_a_read_before_the_first_segment_or_behind_the_end_is_refused(log: LocalLog) -> None:
    log.truncate_fully_and_start_at(10)
    write(log, batch_of("a", offset=10))
    for offset in (9, 12):
        with pytest.raises(OffsetOutOfRange):
            read(log, offset)
    assert read(log, 11) == []


def test_the_last_segment_is_not_among_the_inactive_ones(log: LocalLog) -> None:
    written(log, 5, each=1)

    def inactive(start: int) -> list[int]:
        return [s.base_offset for s in log.segments.between(start, log.segments.active.base_offset)]

    assert inactive(0) == [0, 1, 2, 3, 4]
    assert inactive(2) == [2, 3, 4]
    assert inactive(5) == []


# Close


def test_a_closed_log_takes_no_appends(log: LocalLog) -> None:
    write(log, batch_of("a"))
    log.close()
    with pytest.raises(Invalid, match="the log is closed"):
        write(log, batch_of("b", offset=1))
    with pytest.raises(Invalid, match="the log is closed"):
        log.roll(0)


def test_a_log_can_be_closed_twice(log: LocalLog) -> None:
    log.close()
    log.close()


def test_new_settings_hold_from_the_next_append_on(log: LocalLog) -> None:
    log.folder.config = settings(segment_bytes=4096)
    write(log, batch_of("a"))
    assert log.roll(0).base_offset == 1
    assert log.folder.config.segment_bytes == 4096
