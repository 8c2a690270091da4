"""The offsets of a log: where it starts and ends, what is replicated, what is decided, and what truncation does to them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from logs_at_work import Log, batch_of, settings
from small_logs import NOW, marker

from local_log.engine.errors import UnexpectedAppendOffset
from local_log.engine.offsets import Isolation
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Invalid
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.filenames import SNAPSHOT, offset_file, offset_of_file

THREE = ("a", "b", "c")


@pytest.fixture
def at(tmp_path: Path) -> Log:
    return Log(tmp_path / "t-0")


def test_a_snapshots_offset_is_read_from_its_name() -> None:
    assert offset_of_file(offset_file(23_423_423, SNAPSHOT)) == 23_423_423


# High watermark


def test_the_high_watermark_stays_within_the_log_and_follows_truncation(at: Log) -> None:
    log = at.log
    seen = [log.high_watermark]

    def then(_: object) -> None:
        seen.append(log.high_watermark)

    then(log.append_as_leader(batch_of(*THREE), 0))
    then(log.maybe_increment_high_watermark(1))
    then(log.update_high_watermark(5))
    then(log.append_as_follower(batch_of(*THREE, offset=3), 0))
    then(log.update_high_watermark(6))
    then(log.truncate_to(3))
    then(log.append_as_leader(batch_of(*THREE), 0))
    assert seen == [0, 0, 1, 3, 3, 6, 3, 3]
    assert (log.log_start_offset, log.log_end_offset) == (0, 6)
    log.truncate_fully_and_start_at(4)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (4, 4, 4)


def test_the_high_watermark_is_not_raised_above_the_logs_end_or_down(at: Log) -> None:
    at.follow(batch_of(*THREE))
    with pytest.raises(Invalid, match="high watermark of 4 above the log's end 3"):
        at.log.maybe_increment_high_watermark(4)
    assert at.log.maybe_increment_high_watermark(2)
    assert not at.log.maybe_increment_high_watermark(1)
    assert at.log.high_watermark == 2


def test_the_high_watermark_does_not_fall_below_the_log_start_offset(at: Log) -> None:
    at.follow(batch_of(*THREE))
    at.log.update_high_watermark(3)
    at.log.maybe_increment_log_start_offset(2)
    assert at.log.update_high_watermark(1) == 2


# Transactions


def test_without_transactions_nothing_is_unstable(at: Log) -> None:
    at.log.append_as_leader(batch_of(*THREE), 0)
    at.log.update_high_watermark(2)
    assert at.log.producers.first_unstable_offset is None
    assert at.log.last_stable_offset == 2


def test_the_last_stable_offset_waits_for_the_end_of_a_transaction_and_for_its_replication(at: Log) -> None:
    log = at.log
    log.append_as_leader(batch_of("before"), 0)
    first = log.append_as_leader(batch_of(*THREE, producer=137, epoch=5, sequence=0, transactional=True), 0).first_offset
    log.append_as_leader(batch_of("d", producer=137, epoch=5, sequence=3, transactional=True), 0)
    log.update_high_watermark(log.log_end_offset)
    assert (first, log.last_stable_offset) == (1, 1)

    end = log.append_as_leader(marker(0, 137, commit=True, epoch=5), 0, Origin.COORDINATOR).last_offset
    assert log.last_stable_offset == 1
    log.update_high_watermark(end)
    assert log.last_stable_offset == 1
    log.update_high_watermark(end + 1)
    assert log.last_stable_offset == end + 1


def test_a_transaction_that_began_below_the_log_start_is_open_from_the_first_batch_on_that_is_left(at: Log) -> None:
    at.follow(batch_of("a", producer=1, sequence=0, transactional=True))
    at.log.update_high_watermark(1)
    at.log.maybe_increment_log_start_offset(1)
    assert at.log.last_stable_offset == 1
    at.follow(batch_of("b", offset=6))
    at.log.update_high_watermark(7)
    assert at.log.last_stable_offset == 6


def test_a_log_start_within_an_open_transactions_batch_leaves_the_last_stable_offset_at_that_batch(at: Log) -> None:
    """As in Kafka, below the log start offset."""
    at.follow(batch_of(*THREE, producer=1, sequence=0, transactional=True), batch_of("d", offset=3))
    at.log.update_high_watermark(4)
    at.log.maybe_increment_log_start_offset(2)
    assert at.log.last_stable_offset == 0
    assert at.log.read(2, 1000, Isolation.TXN_COMMITTED).records == b""


def test_a_transaction_that_was_open_before_a_restart_is_open_after_it(at: Log) -> None:
    at.follow(batch_of(*THREE), batch_of("d", "e", offset=3, producer=17, epoch=10, sequence=0, transactional=True))
    log = at.reopen()
    assert log.producers.first_unstable_offset == 3
    log.update_high_watermark(5)
    assert log.last_stable_offset == 3


@pytest.mark.parametrize("truncate", [UnifiedLog.truncate_to, UnifiedLog.truncate_fully_and_start_at])
def test_truncation_below_an_open_transaction_forgets_it_and_its_producer(
    at: Log, truncate: Callable[[UnifiedLog, int], object]
) -> None:
    at.follow(batch_of(*THREE), batch_of("d", "e", offset=3, producer=17, epoch=10, sequence=0, transactional=True))
    log = at.reopen()
    truncate(log, 0)
    assert (log.producers.first_unstable_offset, log.producers.producers) == (None, {})
    assert log.last_stable_offset == 0


def test_a_full_truncation_may_leave_a_log_start_offset_below_the_new_end(at: Log) -> None:
    at.follow(batch_of(*THREE), batch_of("d", "e", offset=3, producer=17, epoch=10, sequence=0, transactional=True))
    log = at.reopen()
    log.truncate_fully_and_start_at(2, log_start_offset=1)
    assert (log.log_start_offset, log.log_end_offset, at.bases) == (1, 2, [2])
    assert (log.producers.first_unstable_offset, log.producers.producers) == (None, {})


def test_a_transaction_that_had_ended_before_a_crash_is_read_again_as_ended(at: Log) -> None:
    at.follow(
        batch_of(*THREE, producer=137, epoch=5, sequence=0, transactional=True),
        marker(3, 137, commit=False, epoch=5),
    )
    at.log.update_high_watermark(4)
    assert at.log.last_stable_offset == 4
    log = at.reopen(clean=False)
    log.update_high_watermark(4)
    assert (log.producers.first_unstable_offset, log.last_stable_offset) == (None, 4)


# Appends


def test_an_append_says_what_offsets_it_was_given(at: Log) -> None:
    infos = [at.log.append_as_leader(batch_of(*THREE), 0) for _ in range(2)]
    at.log.roll()
    infos.append(at.log.append_as_leader(batch_of(*THREE), 0))
    assert [(info.first_offset, info.last_offset) for info in infos] == [(0, 2), (3, 5), (6, 8)]


def test_the_leader_of_a_raft_quorum_gives_its_batches_their_offsets_itself(at: Log) -> None:
    log = at.log
    log.append_as_leader(batch_of(*THREE), 0, Origin.RAFT_LEADER)
    assert (log.log_start_offset, log.log_end_offset) == (0, 3)
    with pytest.raises(UnexpectedAppendOffset):
        log.append_as_leader(batch_of(*THREE, offset=1), 0, Origin.RAFT_LEADER)
    log.append_as_leader(batch_of(*THREE, offset=3), 0, Origin.RAFT_LEADER)
    assert log.log_end_offset == 6


# Leader epochs


def test_a_follower_notes_the_leader_epochs_of_what_it_appends(at: Log) -> None:
    at.follow(*(batch_of("x", offset=offset, leader_epoch=42) for offset in range(50)))
    assert at.log.epochs.entries == [EpochEntry(42, 0)]


def test_truncation_drops_the_leader_epochs_that_started_behind_it(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=10 * len(batch_of("value"))))
    epochs = [0] * 10 + [1] * 6 + [2] * 4
    at.follow(*(batch_of("value", offset=offset, leader_epoch=epoch) for offset, epoch in enumerate(epochs)))
    assert (at.bases, at.log.log_end_offset) == ([0, 10], 20)
    left = []
    for offset in (20, 11, 10, 0):
        at.log.truncate_to(offset)
        left.append([entry.epoch for entry in at.log.epochs.entries])
    assert left == [[0, 1, 2], [0, 1], [0], []]


def test_truncation_at_or_behind_the_end_drops_an_epoch_in_which_nothing_was_written(at: Log) -> None:
    at.follow(batch_of("a", "b", offset=27, leader_epoch=19))
    for epoch, offset in ((20, 29), (24, 30)):
        at.log.epochs.assign(epoch, at.log.log_end_offset)
        assert at.log.epochs.entries[-1] == EpochEntry(epoch, 29)
        assert not at.log.truncate_to(offset)
        assert at.log.epochs.entries == [EpochEntry(19, 27)]
        assert at.log.log_end_offset == 29


# Where a log starts


def test_a_log_whose_files_were_deleted_begins_anew_at_its_start_offset(tmp_path: Path) -> None:
    log = Log(tmp_path, start=500).log
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (500, 500, 500)
    assert log.append_as_leader(batch_of("a"), 0).first_offset == 500


def test_empty_files_are_a_log_to_append_to(tmp_path: Path) -> None:
    for suffix in (".log", ".index"):
        (tmp_path / f"{0:020d}{suffix}").touch()
    at = Log(tmp_path)
    assert at.log.append_as_leader(batch_of("a", time=NOW), 0).first_offset == 0
    assert at.read(0) == [(0, "a")]


def test_settings_can_be_changed_while_a_log_is_open(at: Log) -> None:
    at.log.folder.config = settings(segment_bytes=len(batch_of("a")))
    at.log.append_as_leader(batch_of("a"), 0)
    at.log.append_as_leader(batch_of("a"), 0)
    assert at.bases == [0, 1]


# The only replica


def test_the_high_watermark_of_an_only_replica_is_its_end_after_every_append_roll_and_truncation(at: Log) -> None:
    log = at.log
    log.append_as_leader(batch_of(*THREE), 0)
    assert log.high_watermark == 0
    log.become_only_replica()
    seen = [log.high_watermark]
    steps: list[Callable[[], object]] = [
        lambda: log.append_as_leader(batch_of(*THREE), 0),
        lambda: at.follow(batch_of("one", offset=6), batch_of("by", offset=7), batch_of("one", offset=8)),
        log.roll,
        lambda: log.append_as_leader(batch_of("last"), 0),
        lambda: log.truncate_to(4),
        lambda: log.truncate_fully_and_start_at(20),
    ]
    for step in steps:
        step()
        assert log.high_watermark == log.log_end_offset
        seen.append(log.high_watermark)
    assert seen == [3, 6, 9, 9, 10, 4, 20]


def test_a_transaction_of_an_only_replica_is_stable_as_soon_as_its_marker_is_appended(at: Log) -> None:
    log = at.log
    log.become_only_replica()
    log.append_as_leader(batch_of("in", producer=7, sequence=0, transactional=True), 0)
    assert (log.last_stable_offset, log.high_watermark) == (0, 1)
    log.append_as_leader(marker(0, 7, commit=True), 0, Origin.COORDINATOR)
    assert (log.last_stable_offset, log.high_watermark) == (2, 2)
