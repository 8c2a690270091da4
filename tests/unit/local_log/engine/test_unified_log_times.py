"""What ListOffsets is answered: the offset of a time, and the offsets that have names."""

import random  # noqa: TID251  # seeded
from pathlib import Path

import pytest
from hand_made import APPEND_TIME, GZIP, batch, record
from logs_at_work import Log, batch_of, settings
from small_logs import NOW

from local_log.errors import Corrupt, Invalid
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


@pytest.mark.parametrize("seed", range(8))
def test_a_time_is_found_where_a_scan_of_all_records_finds_it(tmp_path: Path, seed: int) -> None:
    r = random.Random(seed)
    at = Log(tmp_path, settings(segment_bytes=100_000, index_interval_bytes=r.choice([1, 500, 4096])))
    records: list[tuple[int, int]] = []
    for _ in range(60):
        count, time, offset = r.choice([1, 2, 9]), NOW + r.randrange(500), at.log.log_end_offset + r.choice([0, 0, 3])
        times = [time + r.randrange(-20, 20) for _ in range(count)]
        is_append_time = r.random() < 0.1
        made = batch(
            *(record(i, timestamp_delta=t - time, value=r.randbytes(r.choice([5, 100, 3000]))) for i, t in enumerate(times)),
            base_offset=offset,
            attributes=r.choice([0, 0, 0, GZIP]) | (APPEND_TIME if is_append_time else 0),
            base_timestamp=time,
            max_timestamp=max(times),
            epoch=0,
        )
        at.follow(made)
        records += [(offset + i, max(times) if is_append_time else t) for i, t in enumerate(times)]
    at.log.update_high_watermark(at.log.log_end_offset)
    at.log.maybe_increment_log_start_offset(r.choice([0, 0, 7]))
    start = at.log.log_start_offset
    for asked in range(NOW - 30, NOW + 550, 7):
        expected = next((TimestampOffset(o, t, 0) for o, t in records if t >= asked and o >= start), None)
        assert at.log.offset_for(asked) == expected


def test_a_batch_that_does_not_have_its_checksum_is_corrupt_where_a_time_is_looked_for(tmp_path: Path) -> None:
    at = Log(tmp_path)
    at.follow(batch_of("a", time=NOW), batch_of("b", offset=1, time=NOW + 1))
    file = tmp_path / f"{0:020}.log"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert at.log.offset_for(NOW) == TimestampOffset(0, NOW, 0)
    with pytest.raises(Corrupt, match=f"byte {len(data) // 2}"):
        at.log.offset_for(NOW + 1)
