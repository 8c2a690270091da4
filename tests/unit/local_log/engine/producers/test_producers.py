"""What a producer may write next: sequence numbers, epochs, transactions and their coordinators."""

from pathlib import Path

import pytest
from producers_at_work import Producers, data, mark
from small_logs import NOW

from local_log.engine.errors import (
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from local_log.engine.producers.state import CompletedTxn, Origin
from local_log.formats.primitives import INT32_MAX
from local_log.formats.record import NO_SEQUENCE

EPOCH_MAX = 32767


@pytest.fixture
def log(tmp_path: Path) -> Producers:
    return Producers(tmp_path)


def raised_by(version: int, epoch: int) -> int:
    """The epoch that a marker has which ends a transaction of `epoch`: since version 2 each marker raises it."""
    return epoch + 1 if version >= 2 else epoch


# Sequence numbers


def test_a_producers_batches_follow_each_other_without_gap_or_repetition(log: Producers) -> None:
    log.write(0, 10)
    log.write(1, 11)
    for sequence in (1, 0, 3, 7):
        with pytest.raises(OutOfOrderSequenceNumber, match="expected 2"):
            log.write(sequence, 12)
    assert log[1].last_sequence == 1


def test_a_new_epoch_begins_at_sequence_0_and_shuts_the_old_one_out(log: Producers) -> None:
    log.write(0, 10)
    log.write(0, 11, epoch=1)
    assert (log[1].epoch, log[1].last_sequence) == (1, 0)
    with pytest.raises(InvalidProducerEpoch, match="epoch 0; 1 has been seen"):
        log.write(1, 12)


def test_a_new_epoch_that_begins_elsewhere_is_refused_and_one_that_begins_at_0_is_not(log: Producers) -> None:
    for sequence in range(3):
        log.write(sequence, sequence)
    with pytest.raises(OutOfOrderSequenceNumber, match="expected 0, since epoch 3 is new after 0"):
        log.write(3, 3, epoch=3)
    log.write(0, 3, epoch=3)
    assert (log[1].epoch, log[1].last_sequence) == (3, 0)


def test_the_greatest_sequence_number_is_followed_by_0(log: Producers) -> None:
    log.write(INT32_MAX, 700, origin=Origin.REPLICATION, epoch=4)
    log.write(0, 900, epoch=4)
    assert (log[1].epoch, log[1].batches[0].first_sequence, log[1].last_sequence) == (4, INT32_MAX, 0)


def test_the_greatest_sequence_number_is_not_followed_by_1(log: Producers) -> None:
    log.write(INT32_MAX, 700, origin=Origin.REPLICATION, epoch=4)
    with pytest.raises(OutOfOrderSequenceNumber):
        log.write(1, 900, epoch=4)


def test_a_batch_in_which_the_sequence_numbers_start_over_is_known_by_its_first_and_last(log: Producers) -> None:
    update = log.prepare(origin=Origin.REPLICATION)
    update.append(data(INT32_MAX - 2, 50, count=6, epoch=4, last_sequence=2))
    assert 1 not in log.state.producers
    log.state.update(update)
    (batch,) = log[1].batches
    assert (batch.first_sequence, batch.last_sequence, batch.first_offset, batch.last_offset) == (INT32_MAX - 2, 2, 50, 55)


def test_the_first_batch_of_a_log_that_is_read_again_may_have_any_sequence_number(log: Producers) -> None:
    log.write(16, 735, origin=Origin.REPLICATION, epoch=5)
    (batch,) = log[1].batches
    assert log[1].epoch == 5
    assert (batch.first_sequence, batch.last_sequence, batch.first_offset, batch.last_offset) == (16, 16, 735, 735)


def test_a_producer_that_nothing_is_known_of_may_go_on_with_any_sequence_number(log: Producers) -> None:
    log.write(77, 5)
    assert log[1].last_sequence == 77


def test_a_follower_takes_gaps_that_a_leader_refuses(log: Producers) -> None:
    log.write(0, 0)
    with pytest.raises(OutOfOrderSequenceNumber):
        log.write(3, 1)
    assert log[1].last_sequence == 0
    log.write(3, 1, origin=Origin.REPLICATION)
    assert log[1].last_sequence == 3


def test_the_sequence_numbers_of_a_coordinators_own_writes_are_not_looked_at(log: Producers) -> None:
    for offset in (99, 100, 101):
        log.write(NO_SEQUENCE, offset, origin=Origin.COORDINATOR, transactional=True)
    assert log[1].last_sequence == NO_SEQUENCE
    assert log.state.ongoing == {99: 1}


# Judged on a copy


def test_what_is_judged_changes_nothing_until_it_is_told(log: Producers) -> None:
    first = log.prepare()
    first.append(data(0, 15, count=6))
    assert 1 not in log.state.producers
    log.state.update(first)

    second = log.prepare()
    second.append(data(6, 26, count=5))
    assert [b.last_sequence for b in log[1].batches] == [5]
    log.state.update(second)
    assert [(b.first_sequence, b.last_sequence, b.last_offset) for b in log[1].batches] == [(0, 5, 20), (6, 10, 30)]


def test_an_update_tells_the_transaction_that_starts_and_the_one_that_ends(log: Producers) -> None:
    log.write(0, 9)
    update = log.prepare()
    update.append(data(1, 16, count=5, transactional=True))
    assert (update.started, update.updated.txn_first_offset) == ([16], 16)
    update.append(data(6, 26, count=5, transactional=True))
    assert (update.started, update.updated.txn_first_offset) == ([16], 16)

    assert update.end(mark(40, coordinator=15)) == CompletedTxn(1, 16, 40, is_aborted=False)
    assert update.updated.txn_first_offset is None
    assert update.updated.coordinator_epoch == 15
    assert [(b.first_sequence, b.last_offset) for b in update.updated.batches] == [(1, 20), (6, 30)]


def test_one_append_may_end_a_transaction_and_hold_empty_whole_and_open_ones(log: Producers) -> None:
    log.write(0, 16, count=5, transactional=True)
    update = log.prepare()
    ended = [update.end(mark(21)), update.end(mark(22)), update.end(mark(23, abort=True))]
    update.append(data(5, 24, count=4, transactional=True))
    ended += [update.end(mark(28, abort=True)), update.end(mark(29, abort=True))]
    update.append(data(9, 30, count=2, transactional=True))

    completed = [txn for txn in ended if txn is not None]
    assert completed == [CompletedTxn(1, 16, 21, is_aborted=False), CompletedTxn(1, 24, 28, is_aborted=True)]
    assert update.started == [24, 30]
    log.state.update(update)
    for txn in completed:
        log.state.complete(txn)
    log.state.on_high_watermark(32)
    assert log.state.first_unstable_offset == 30


# Markers


def test_a_marker_of_an_unknown_producer_leaves_its_epoch_to_go_by(log: Producers) -> None:
    assert log.end(27, epoch=2) is None
    assert (log[1].epoch, log[1].last_sequence) == (2, NO_SEQUENCE)
    with pytest.raises(InvalidProducerEpoch):
        log.write(0, 28, epoch=1)
    with pytest.raises(OutOfOrderSequenceNumber, match="expected 0"):
        log.write(17, 28, epoch=2)
    log.write(0, 28, epoch=2)
    assert (log[1].epoch, log[1].last_sequence) == (2, 0)


def test_a_marker_of_a_newer_epoch_ends_the_transaction_and_forgets_the_older_batches(log: Producers) -> None:
    log.write(0, 0)
    log.end(1, epoch=1, abort=True)
    assert (log[1].epoch, log[1].txn_first_offset, list(log[1].batches)) == (1, None, [])
    log.write(0, 2, epoch=1)
    assert [b.first_sequence for b in log[1].batches] == [0]


def test_after_a_marker_that_raised_the_epoch_the_sequence_starts_at_0(log: Producers) -> None:
    log.write(0, 0, transactional=True)
    log.write(1, 1, transactional=True)
    log.end(2, epoch=1, abort=True)
    for epoch in (1, 2):
        with pytest.raises(OutOfOrderSequenceNumber):
            log.write(2, 3, epoch=epoch, transactional=True)
    log.write(0, 3, epoch=1, transactional=True)
    assert (log[1].epoch, log[1].last_sequence) == (1, 0)


def test_a_batch_outside_of_its_producers_open_transaction_is_refused(log: Producers) -> None:
    log.write(0, 0, transactional=True)
    with pytest.raises(InvalidTxnState, match="transaction open from offset 0"):
        log.write(1, 1)


@pytest.mark.parametrize("version", [0, 2])
def test_a_marker_of_an_old_epoch_is_refused(log: Producers, version: int) -> None:
    log.write(0, 99, epoch=5, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        log.end(100, epoch=3, version=version)
    assert log.state.ongoing == {99: 1}


def test_a_marker_of_the_same_epoch_ends_a_transaction_until_version_2(log: Producers) -> None:
    log.write(0, 99, epoch=5, transactional=True)
    with pytest.raises(InvalidProducerEpoch):
        log.end(100, epoch=5, version=2)
    assert log.end(100, epoch=5, version=0) == CompletedTxn(1, 99, 100, is_aborted=False)


def test_a_marker_of_version_2_that_comes_again_is_taken_again(log: Producers) -> None:
    log.write(0, 99, transactional=True)
    log.end(100, epoch=1, version=2)
    assert (log[1].epoch, log[1].txn_first_offset) == (1, None)
    assert log.end(101, epoch=1, version=2) is None
    assert (log[1].epoch, log[1].txn_first_offset) == (1, None)


def test_a_marker_of_the_greatest_epoch_ends_a_transaction_since_no_greater_one_can(log: Producers) -> None:
    log.write(0, 99, epoch=EPOCH_MAX, transactional=True)
    assert log.end(100, epoch=EPOCH_MAX, version=2) == CompletedTxn(1, 99, 100, is_aborted=False)


def test_a_follower_takes_markers_of_old_epochs_and_old_coordinators(log: Producers) -> None:
    log.write(0, 99, epoch=5, transactional=True)
    log.end(100, epoch=5, coordinator=8)
    log.end(101, epoch=4, coordinator=7, origin=Origin.REPLICATION)
    assert (log[1].epoch, log[1].coordinator_epoch) == (4, 7)


@pytest.mark.parametrize("version", [0, 2])
def test_a_replaced_transaction_coordinator_is_shut_out(log: Producers, version: int) -> None:
    epoch = 5
    log.write(0, 99, epoch=epoch, transactional=True)
    for offset, coordinator in ((100, 1), (101, 1), (102, 2)):
        epoch = raised_by(version, epoch)
        log.end(offset, epoch=epoch, coordinator=coordinator, version=version)
        assert log[1].coordinator_epoch == coordinator
    with pytest.raises(TransactionCoordinatorFenced, match="coordinator epoch 1; 2 has been seen"):
        log.end(103, epoch=raised_by(version, epoch), coordinator=1, version=version)


# Verification: the coordinator is asked before a transaction's first batch is taken


def test_all_that_ask_for_one_producer_wait_for_the_same_answer(log: Producers) -> None:
    asked = log.state.verification(1, 0, 0, supports_epoch_bump=True)
    assert log.state.verification(1, 0, 0, supports_epoch_bump=True) is asked
    assert log.state.verifications == {1: asked}
    log.write(0, 0, transactional=True)
    log.state.verified(1, 0, is_marker=False)
    assert log.state.verifications == {}


def test_a_verification_keeps_the_lowest_sequence_number_of_the_newest_epoch(log: Producers) -> None:
    def asked(sequence: int, epoch: int) -> tuple[int, int]:
        entry = log.state.verification(1, sequence, epoch, supports_epoch_bump=True)
        assert log.state.verifications[1] is entry
        return entry.lowest_sequence, entry.epoch

    assert asked(1, 0) == (1, 0)
    assert asked(0, 0) == (0, 0)
    assert asked(5, 0) == (0, 0)
    assert asked(2, 1) == (2, 1)
    assert asked(0, 0) == (2, 1)


def test_a_batch_behind_the_one_that_was_verified_is_refused_and_the_verification_stays(log: Producers) -> None:
    asked = log.state.verification(1, 0, 0, supports_epoch_bump=False)
    with pytest.raises(OutOfOrderSequenceNumber, match="at most 0"):
        log.write(4, 0, transactional=True)
    assert log.state.verifications == {1: asked}


def test_a_marker_of_the_epoch_that_waits_leaves_its_verification(log: Producers) -> None:
    log.state.verification(1, 0, 7, supports_epoch_bump=True)
    log.state.verified(1, 7, is_marker=True)
    assert 1 in log.state.verifications
    log.state.verified(1, 6, is_marker=True)
    assert 1 not in log.state.verifications


def test_a_new_producer_of_transactions_of_version_2_starts_at_sequence_0(log: Producers) -> None:
    log.state.verification(1, 0, 0, supports_epoch_bump=True)
    with pytest.raises(OutOfOrderSequenceNumber, match="expected 0, since nothing is known"):
        log.write(5, 0)
    log.write(0, 0)
    assert log[1].last_sequence == 0


def test_a_new_producer_of_transactions_of_version_1_may_start_anywhere(log: Producers) -> None:
    log.state.verification(2, 5, 0, supports_epoch_bump=False)
    log.write(5, 0, producer=2)
    assert log[2].last_sequence == 5


def test_a_verification_is_given_up_once_it_is_as_old_as_an_idle_producer_may_be(log: Producers) -> None:
    asked = log.state.verification(1, 0, 0, supports_epoch_bump=True)
    log.clock.sleep(log.state.expiration_ms - 1)
    log.state.expire()
    assert log.state.verifications == {1: asked}
    log.clock.sleep(1)
    log.state.expire()
    assert log.state.verifications == {}
    assert asked.timestamp == NOW
