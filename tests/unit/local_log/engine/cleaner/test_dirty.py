"""What is to be cleaned next, and whether it is time to."""

from dataclasses import replace
from pathlib import Path

import pytest
from hand_made import TRANSACTIONAL, batch, record
from logs_at_work import Log, settings
from small_logs import NOW, Clock

from local_log.engine.cleaner import dirty_part


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path, settings(cleanup_policy="compact", max_compaction_lag_ms=5_000), Clock())


def put(log: Log, time: int = NOW, attributes: int = 0, **producer: int) -> None:
    """A segment of one batch; the one after it becomes active."""
    made = batch(
        record(key=b"key"),
        base_offset=log.log.log_end_offset,
        base_timestamp=time,
        max_timestamp=time,
        attributes=attributes,
        **producer,
    )
    log.follow(made)
    log.log.roll()
    log.log.update_high_watermark(log.log.log_end_offset)


def test_all_below_the_active_segment_is_dirty_until_a_round_is_over(log: Log) -> None:
    for _ in range(4):
        put(log)
    found = dirty_part(log.log, None, NOW)
    assert (found.first_dirty_offset, found.first_uncleanable_offset, found.dirty_ratio) == (0, 4, 1.0)
    assert dirty_part(log.log, 3, NOW).dirty_ratio == 0.25
    assert dirty_part(log.log, 4, NOW).dirty_ratio == 0.0
    assert dirty_part(log.log, 3, NOW).is_due(0.24)
    assert not dirty_part(log.log, 3, NOW).is_due(0.25)


def test_an_empty_log_is_not_dirty(log: Log) -> None:
    found = dirty_part(log.log, None, NOW)
    assert (found.dirty_ratio, found.is_due(0.0)) == (0.0, False)


@pytest.mark.parametrize("checkpointed", [0, 5])
def test_a_checkpoint_outside_the_log_is_invalid_and_all_is_dirty(log: Log, checkpointed: int) -> None:
    for _ in range(4):
        put(log)
    log.log.maybe_increment_log_start_offset(1)
    found = dirty_part(log.log, checkpointed, NOW)
    assert (found.checkpoint_is_invalid, found.first_dirty_offset) == (True, 1)


def test_young_segments_and_those_after_them_wait_for_the_least_lag(log: Log) -> None:
    for time in (NOW, NOW + 100, NOW):
        put(log, time)
    log.log.folder.config = replace(log.log.folder.config, min_compaction_lag_ms=500)
    assert dirty_part(log.log, None, NOW + 600).first_uncleanable_offset == 3
    assert dirty_part(log.log, None, NOW + 599).first_uncleanable_offset == 1
    assert dirty_part(log.log, None, NOW + 499).first_uncleanable_offset == 0


def test_an_open_transaction_ends_the_dirty_part(log: Log) -> None:
    put(log)
    put(log, attributes=TRANSACTIONAL, producer_id=1, producer_epoch=0, base_sequence=0)
    put(log)
    assert dirty_part(log.log, None, NOW).first_uncleanable_offset == 1


def test_records_that_have_waited_too_long_make_a_round_due_whatever_the_ratio(log: Log) -> None:
    for _ in range(4):
        put(log)
    at_limit, beyond = (dirty_part(log.log, 3, NOW + waited) for waited in (5_000, 5_001))
    assert (at_limit.overdue_ms, at_limit.is_due(0.5)) == (0, False)
    assert (beyond.overdue_ms, beyond.is_due(0.5)) == (1, True)
