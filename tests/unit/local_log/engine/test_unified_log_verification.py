"""A transaction's first batch comes with what its coordinator has confirmed, where a log asks for that."""

from pathlib import Path

import pytest
from logs_at_work import Log, batch_of
from small_logs import marker

from local_log.engine.errors import InvalidProducerEpoch, InvalidTxnState
from local_log.engine.producers.state import Origin, Verification


@pytest.fixture
def at(tmp_path: Path) -> Log:
    at = Log(tmp_path / "t-0")
    at.log.producers.verifies_transactions = True
    return at


def asked(at: Log, sequence: int = 0, *, epoch: int = 0) -> Verification | None:
    return at.log.ask_verification(1, sequence, epoch, supports_epoch_bump=False)


def append(at: Log, sequence: int, verification: Verification | None = None, *, epoch: int = 0) -> None:
    records = batch_of("v", producer=1, epoch=epoch, sequence=sequence, transactional=True)
    at.log.append_as_leader(records, 0, verification=verification)


def end(at: Log, *, epoch: int = 0) -> None:
    at.log.append_as_leader(marker(0, 1, commit=False, epoch=epoch), 0, Origin.COORDINATOR)


def test_a_log_that_verifies_no_transactions_needs_no_confirmation(at: Log) -> None:
    at.log.producers.verifies_transactions = False
    assert asked(at) is None
    append(at, 0)


def test_a_transaction_that_nobody_has_asked_for_does_not_start(at: Log) -> None:
    with pytest.raises(InvalidTxnState):
        append(at, 0)
    assert at.log.log_end_offset == 0


def test_a_transaction_that_has_only_been_asked_for_does_not_start(at: Log) -> None:
    asked(at)
    with pytest.raises(InvalidTxnState):
        append(at, 0)


def test_a_confirmed_transaction_starts_and_its_other_batches_need_nothing_more(at: Log) -> None:
    append(at, 0, asked(at))
    assert at.log.producers.verifications == {}
    append(at, 1)
    assert asked(at, 2) is None
    append(at, 2)
    assert at.log.producers.producers[1].txn_first_offset == 0


def test_a_confirmation_that_comes_after_the_transactions_end_starts_no_other(at: Log) -> None:
    late = asked(at)
    end(at)
    with pytest.raises(InvalidTxnState):
        append(at, 0, late)
    assert asked(at) is not late
    with pytest.raises(InvalidTxnState):
        append(at, 0, late)


def test_a_batch_that_was_refused_may_come_again_with_the_same_confirmation(at: Log) -> None:
    verification = asked(at)
    with pytest.raises(InvalidTxnState):
        append(at, 0)
    append(at, 0, verification)
    assert at.log.log_end_offset == 1


def test_an_older_producer_is_told_so_when_it_asks_and_when_it_appends(at: Log) -> None:
    end(at, epoch=3)
    with pytest.raises(InvalidProducerEpoch):
        asked(at, epoch=2)
    with pytest.raises(InvalidProducerEpoch):
        append(at, 0, epoch=2)


def test_a_marker_and_a_batch_outside_of_transactions_need_no_confirmation(at: Log) -> None:
    end(at)
    at.log.append_as_leader(batch_of("v", producer=1, sequence=0), 0)
    assert at.log.log_end_offset == 2


def test_a_follower_takes_what_its_leader_had_confirmed(at: Log) -> None:
    at.follow(batch_of("v", producer=1, sequence=0, transactional=True))
    assert at.log.log_end_offset == 1


def test_a_log_that_does_not_verify_takes_any_transaction(tmp_path: Path) -> None:
    at = Log(tmp_path / "t-0")
    append(at, 0)
    assert at.log.producers.producers[1].txn_first_offset == 0
