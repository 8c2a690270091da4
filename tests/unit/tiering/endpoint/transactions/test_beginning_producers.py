"""InitProducerId: who has a transactional id, since which epoch, and who is fenced."""

from dataclasses import replace

import pytest
from transactions_kept import PAYMENTS, V2, Transactions

from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.producer_id_manager import ProducerIdManager
from tiering.endpoint.transactions.transaction_metadata import EPOCH_MAX
from tiering.endpoint.transactions.transaction_states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionState,
)

LAST = EPOCH_MAX - 1
FENCED, CONCURRENT = ErrorCode.PRODUCER_FENCED, ErrorCode.CONCURRENT_TRANSACTIONS


@pytest.fixture
def at() -> Transactions:
    return Transactions()


def test_a_producer_without_a_transactional_id_is_given_a_new_id_each_time(at: Transactions) -> None:
    assert [at.coordinator.new_producer_id() for _ in range(3)] == [(0, 0), (1, 0), (2, 0)]
    assert at.log.kept == []


def test_an_empty_transactional_id_is_refused(at: Transactions) -> None:
    assert at.init("") == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_that_is_not_allowed_is_refused(at: Transactions, timeout_ms: int) -> None:
    assert at.init(timeout_ms=timeout_ms) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert at.log.kept == []


def test_a_new_transactional_id_gets_an_id_with_epoch_0_which_is_kept(at: Transactions) -> None:
    assert at.init() == (0, 0)
    assert at.init("other") == (1, 0)
    at.started()
    assert at.of().state is EMPTY
    assert at.init() == (0, 1)


def test_a_beginning_that_cannot_be_kept_has_not_happened(at: Transactions) -> None:
    at.log.is_broken = True
    assert at.init() == ErrorCode.NOT_COORDINATOR
    at.log.is_broken = False
    assert at.init() == (1, 0)
    assert "cannot be kept" in at.said[0]


def test_without_an_id_to_give_producers_are_told_to_ask_again(at: Transactions) -> None:
    at.files.is_broken = True
    assert at.init() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert at.said == ["no producer id can be given: the disk is gone"]


@pytest.mark.parametrize("state", [EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT])
def test_each_beginning_has_a_new_epoch_and_fences_the_one_before(at: Transactions, state: TransactionState) -> None:
    first = at.init()
    at.set(replace(at.of(), state=state))
    second = at.init(timeout_ms=7)
    assert (first, second, at.of().timeout_ms) == ((0, 0), (0, 1), 7)
    assert at.add(first) == FENCED
    assert at.add(second) is None


@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
def test_while_markers_are_missing_a_producer_waits(at: Transactions, state: TransactionState) -> None:
    at.init()
    at.set(replace(at.of(), state=state))
    assert at.init() == CONCURRENT


def test_an_open_transaction_is_aborted_and_the_producer_asks_again(at: Transactions) -> None:
    first = at.init()
    at.add(first)
    assert at.init() == CONCURRENT
    assert at.outcomes() == [(0, 1, False)]
    assert at.of().state is COMPLETE_ABORT
    assert at.end(first, commit=True) == FENCED
    assert at.init() == (0, 2)


def test_an_open_transaction_whose_abort_cannot_be_kept_stays_open_with_its_epoch(at: Transactions) -> None:
    at.add(at.init())
    at.log.is_broken = True
    for _ in range(3):
        assert at.init() == ErrorCode.NOT_COORDINATOR
    assert (at.of().state, at.of().producer_epoch) == (ONGOING, 0)
    at.log.is_broken = False
    assert at.init() == CONCURRENT
    assert at.outcomes() == [(0, 1, False)]


def test_one_that_says_who_it_is_goes_on_with_the_next_epoch(at: Transactions) -> None:
    first = at.init()
    assert at.init(expected=first) == (0, 1)


def test_one_that_asks_again_is_given_the_same(at: Transactions) -> None:
    first = at.init()
    assert [at.init(expected=first), at.init(expected=first)] == [(0, 1), (0, 1)]


def test_after_another_has_begun_the_former_is_fenced(at: Transactions) -> None:
    first = at.init()
    second = at.init(expected=first)
    at.init()
    assert [at.init(expected=first), at.init(expected=second)] == [FENCED, FENCED]


def test_one_that_names_another_id_is_fenced(at: Transactions) -> None:
    at.init()
    assert at.init(expected=(77, 0)) == FENCED


def test_one_whose_transactional_id_is_not_known_is_given_a_new_id(at: Transactions) -> None:
    assert at.init(expected=(77, 5)) == (0, 0)


def test_where_the_epochs_end_a_new_id_begins(at: Transactions) -> None:
    at.init()
    at.set(replace(at.of(), producer_epoch=LAST))
    assert at.init() == (1, 0)
    assert at.of().previous_producer_id == 0


def test_one_that_names_its_last_epoch_is_given_a_new_id_and_the_same_when_it_asks_again(at: Transactions) -> None:
    at.init()
    at.set(replace(at.of(), producer_epoch=LAST))
    assert [at.init(expected=(0, LAST)), at.init(expected=(0, LAST))] == [(1, 0), (1, 0)]
    assert at.init() == (1, 1)
    assert at.init(expected=(0, LAST)) == FENCED


def test_one_that_names_an_earlier_epoch_where_the_epochs_end_is_fenced(at: Transactions) -> None:
    at.init()
    at.set(replace(at.of(), producer_epoch=LAST))
    assert at.init(expected=(0, LAST - 1)) == FENCED


def test_an_open_transaction_of_the_last_epoch_is_fenced_with_the_one_that_is_left_for_it(at: Transactions) -> None:
    at.init()
    at.set(replace(at.of(), producer_epoch=LAST))
    at.add((0, LAST))
    assert at.init() == CONCURRENT
    assert at.outcomes() == [(0, EPOCH_MAX, False)]
    assert (at.of().producer_id, at.of().producer_epoch) == (1, 0)
    assert at.end((0, LAST), commit=False, version=V2) == (1, 0), "who aborts it late is told as whom it goes on"
    assert at.init() == (1, 1)


def test_one_that_names_its_last_epoch_after_its_transaction_was_aborted_goes_on_with_a_new_id(at: Transactions) -> None:
    at.init(timeout_ms=1)
    at.set(replace(at.of(), producer_epoch=LAST))
    at.add((0, LAST))
    at.later(10_000)
    assert at.init(expected=(0, LAST)) == (1, 0)
    assert at.init() == (1, 1)
    assert at.init(expected=(0, LAST)) == FENCED


def test_an_open_transaction_of_the_greatest_epoch_is_aborted_with_it(at: Transactions) -> None:
    at.init()
    at.set(replace(at.of(), producer_epoch=EPOCH_MAX, state=ONGOING, partitions=frozenset({PAYMENTS})))
    assert at.init() == CONCURRENT
    assert at.outcomes(PAYMENTS) == [(0, EPOCH_MAX, False)]
    assert at.init() == (1, 1)


def test_an_open_transaction_is_not_aborted_while_there_is_no_id_to_go_on_with(at: Transactions) -> None:
    at.init()
    at.set(replace(at.of(), producer_epoch=LAST, timeout_ms=1))
    at.add((0, LAST))
    at.coordinator.producer_ids = ProducerIdManager.of(at.files, ())
    at.files.is_broken = True
    assert at.init() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    at.later(10_000)
    assert (at.of().state, at.outcomes()) == (ONGOING, [])
    at.files.is_broken = False
    at.later(10_000)
    assert at.outcomes() == [(0, EPOCH_MAX, False)]


def test_beyond_the_memory_that_is_allowed_nothing_more_is_taken() -> None:
    at = Transactions(bytes_max=5_000)
    assert [at.init(str(n)) for n in range(3)] == [(0, 0), (1, 0), (2, 0)]
    assert at.init("3") == ErrorCode.POLICY_VIOLATION
    assert at.init("2") == (2, 1)
    many = (replace(PAYMENTS, partition=number) for number in range(30))
    assert at.add((0, 0), *many, own_id="0", version=V2) == ErrorCode.POLICY_VIOLATION
    assert at.of("0").state is EMPTY
    assert "endpoint.transactions.max.bytes" in at.said[0]


def test_a_coordinator_that_has_stopped_refuses_all(at: Transactions) -> None:
    first = at.init()
    at.coordinator.stop()
    answers = [at.init(), at.add(first), at.verify(first), at.end(first, commit=True)]
    assert answers == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 4
