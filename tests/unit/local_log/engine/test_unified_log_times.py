"""What ListOffsets is answered: the offset of a time, and the offsets that have names."""

from pathlib import Path

import pytest
from logs_at_work import Log, batch_of, settings
from small_logs import NOW

from local_log.errors import Invalid
from local_log.formats.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    TimestampOffset,
)
from local_log.formats.record import NO_EPOCH, NO_TIMESTAMP


def opened(folder: Path, *, tiered: bool = False) -> Log:
    return Log(folder, settings(segment_bytes=200, index_interval_bytes=1, remote_storage_enable=tiered))


def two_epochs(at: Log) -> None:
    """A record of epoch 0 at NOW and one of epoch 1 a millisecond later."""
    at.log.append_as_leader(batch_of("0123456789", time=NOW), 0)
    at.log.append_as_leader(batch_of("0123456789", time=NOW + 1), 1)


def named(offset: int, epoch: int = NO_EPOCH) -> TimestampOffset:
    return TimestampOffset(offset, NO_TIMESTAMP, epoch)


def test_an_answer_says_in_which_leader_epoch_the_record_was_written(tmp_path: Path) -> None:
    at = opened(tmp_path)
    assert at.log.offset_for(0) is None
    two_epochs(at)
    assert at.log.offset_for(NOW) == TimestampOffset(0, NOW, 0)
    assert at.log.offset_for(NOW + 1) == TimestampOffset(1, NOW + 1, 1)
    assert at.log.offset_for(NOW + 2) is None
    assert at.log.offset_for(EARLIEST) == at.log.offset_for(EARLIEST_LOCAL) == named(0, 0)
    assert at.log.offset_for(LATEST) == named(2, 1)
    # A new leader counts from the moment that its epoch begins, before it has written anything.
    at.log.epochs.assign(2, 2)
    assert at.log.offset_for(LATEST) == named(2, 2)


def test_the_record_with_the_greatest_timestamp_is_found_between_older_ones(tmp_path: Path) -> None:
    at = opened(tmp_path)
    assert at.log.offset_for(0) is None
    for time in (NOW, NOW + 1, NOW):
        at.log.append_as_leader(batch_of("0123456789", time=time), 0)
    assert at.log.offset_for(MAX_TIMESTAMP) == TimestampOffset(1, NOW + 1, 0)


def test_a_tiered_log_answers_with_what_is_not_only_in_the_archive(tmp_path: Path) -> None:
    at = opened(tmp_path, tiered=True)
    assert at.log.offset_for(0) is None
    two_epochs(at)
    at.log.local_log_start_offset = 1
    at.log.publish()
    assert at.log.offset_for(NOW) == at.log.offset_for(NOW + 1) == TimestampOffset(1, NOW + 1, 1)
    assert at.log.offset_for(EARLIEST) == named(0, 0)
    assert at.log.offset_for(EARLIEST_LOCAL) == named(1, 1)
    assert at.log.offset_for(LATEST) == named(2, 1)
    at.log.epochs.assign(2, 2)
    assert at.log.offset_for(LATEST) == named(2, 2)


def test_a_log_that_is_not_tiered_has_no_last_archived_offset(tmp_path: Path) -> None:
    at = opened(tmp_path)
    for _ in range(2):
        assert at.log.offset_for(LATEST_TIERED) == at.log.offset_for(EARLIEST_PENDING_UPLOAD) == named(-1)
        two_epochs(at)


def test_a_tiered_log_knows_the_last_offset_in_the_archive_and_the_first_that_is_not(tmp_path: Path) -> None:
    at = opened(tmp_path, tiered=True)
    assert at.log.offset_for(EARLIEST_LOCAL) == named(0)
    two_epochs(at)
    assert (at.log.offset_for(LATEST_TIERED), at.log.offset_for(EARLIEST_PENDING_UPLOAD)) == (named(-1), named(0, 0))
    at.log.local_log_start_offset = 1
    at.log.publish()
    at.log.highest_offset_in_archive = 0
    assert at.log.offset_for(EARLIEST) == named(0, 0)
    assert at.log.offset_for(LATEST_TIERED) == named(0, 0)
    assert at.log.offset_for(EARLIEST_LOCAL) == at.log.offset_for(EARLIEST_PENDING_UPLOAD) == named(1, 1)
    assert at.log.offset_for(LATEST) == named(2, 1)


def test_a_name_that_there_is_not_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="timestamp -7"):
        opened(tmp_path).log.offset_for(-7)
