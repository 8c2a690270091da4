"""AddPartitionsToTxn and EndTxn: what is in a transaction, how it ends, and what is answered when it is asked again."""

from dataclasses import replace

import pytest
from transactions_kept import ORDERS, PAYMENTS, V1, V2, Transactions

from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.transaction_coordinator import RETRY_MS
from tiering.endpoint.transactions.transaction_metadata import EPOCH_MAX
from tiering.endpoint.transactions.transaction_states import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    ENDS,
    IDLE,
    ON_END_AGAIN_V2,
    ON_END_V1,
    ON_END_V2,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
    PREVIOUS,
    TransactionState,
)

LAST = EPOCH_MAX - 1
FENCED, CONCURRENT, WRONG = ErrorCode.PRODUCER_FENCED, ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
BOTH = pytest.mark.parametrize("commit", [True, False])


@pytest.fixture
def at() -> Transactions:
    return Transactions()


def test_the_tables_name_every_state_that_a_request_can_meet() -> None:
    assert set(PREVIOUS) == set(TransactionState)
    for table in (ON_END_V1, ON_END_V2, ON_END_AGAIN_V2):
        assert set(table) == set(TransactionState) - {DEAD, PREPARE_EPOCH_FENCE}
    assert {ENDS[PREPARE_COMMIT], ENDS[PREPARE_ABORT], EMPTY} == IDLE


@pytest.mark.parametrize("version", [V1, V2])
@BOTH
def test_every_partition_of_a_transaction_has_its_marker_when_it_has_ended(at: Transactions, version: int, commit: bool) -> None:
    producer = at.init()
    at.add(producer, ORDERS, version=version)
    at.add(producer, PAYMENTS, version=version)
    epoch = 1 if version == V2 else 0
    assert at.end(producer, commit=commit, version=version) == (0, epoch)
    assert at.outcomes(ORDERS) == at.outcomes(PAYMENTS) == [(0, epoch, commit)]
    assert at.of().state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT)
    assert at.of().partitions == frozenset()
    marker = at.markers.written[ORDERS][0]
    assert (marker.coordinator_epoch, marker.transaction_version) == (3, version)


def test_partitions_that_a_transaction_has_are_not_kept_again(at: Transactions) -> None:
    producer = at.init()
    at.add(producer, ORDERS, PAYMENTS)
    kept = len(at.log.kept)
    assert at.add(producer, ORDERS) is None
    assert len(at.log.kept) == kept


def test_a_transaction_begins_with_its_first_partition(at: Transactions) -> None:
    producer = at.init()
    at.clock.now += 5
    at.add(producer, ORDERS)
    start_ms = at.of().start_ms
    at.clock.now += 5
    at.add(producer, PAYMENTS)
    assert at.of().start_ms == start_ms == at.of().last_update_ms - 5
    at.end(producer, commit=True)
    at.add(producer, ORDERS)
    assert at.of().partitions == {ORDERS}
    assert at.of().start_ms == start_ms + 5


def test_partitions_that_cannot_be_kept_are_not_added(at: Transactions) -> None:
    producer = at.init()
    at.log.is_broken = True
    assert at.add(producer) == ErrorCode.NOT_COORDINATOR
    assert at.of().state is EMPTY


@pytest.mark.parametrize("version", [V1, V2])
def test_a_transactional_id_that_is_empty_or_not_known_and_other_producers_are_refused(at: Transactions, version: int) -> None:
    producer = at.init()
    empty = at.add(producer, own_id=""), at.verify(producer, own_id=""), at.end(producer, own_id="", commit=True, version=version)
    assert empty == (ErrorCode.INVALID_REQUEST,) * 3
    for own_id, asked, code in [("x", (0, 0), MAPPING), ("shop", (9, 0), MAPPING), ("shop", (0, 5), FENCED)]:
        assert at.add(asked, own_id=own_id, version=version) == code
        assert at.verify(asked, own_id=own_id) == code
        assert at.end(asked, own_id=own_id, commit=True, version=version) == code


@pytest.mark.parametrize("state", [PREPARE_COMMIT, PREPARE_ABORT])
def test_no_partition_is_added_while_markers_are_missing(at: Transactions, state: TransactionState) -> None:
    producer = at.init()
    at.set(replace(at.of(), state=state))
    assert at.add(producer) == at.verify(producer) == CONCURRENT


def test_a_transaction_is_asked_whether_it_has_partitions(at: Transactions) -> None:
    producer = at.init()
    at.add(producer, ORDERS)
    assert at.verify(producer, ORDERS, PAYMENTS) == {ORDERS: ErrorCode.NONE, PAYMENTS: ErrorCode.TRANSACTION_ABORTABLE}
    at.end(producer, commit=True)
    assert at.verify(producer, ORDERS) == {ORDERS: ErrorCode.TRANSACTION_ABORTABLE}


@BOTH
@pytest.mark.parametrize("state", sorted(ON_END_V1), ids=lambda state: state.title)
def test_an_end_without_new_epochs_is_answered_by_the_table(at: Transactions, state: TransactionState, commit: bool) -> None:
    producer = at.init()
    at.set(replace(at.of(), state=state))
    expected = ON_END_V1[state][0 if commit else 1]
    assert at.end(producer, commit=commit) == (expected or (0, 0))


@BOTH
@pytest.mark.parametrize("state", sorted(ON_END_V2), ids=lambda state: state.title)
def test_an_end_with_new_epochs_is_answered_by_the_tables(at: Transactions, state: TransactionState, commit: bool) -> None:
    at.init()
    at.set(replace(at.of(), state=state, producer_epoch=4, client_version=V2))
    again = ON_END_AGAIN_V2[state][0 if commit else 1]
    assert at.end((0, 3), commit=commit, version=V2) == (again or (0, 4))
    expected = ON_END_V2[state][0 if commit else 1]
    assert at.end((0, 4), commit=commit, version=V2) == (expected or (0, 5))


@pytest.mark.parametrize("state", sorted(IDLE), ids=lambda state: state.title)
def test_a_producer_that_is_uncertain_aborts_a_transaction_without_partitions(at: Transactions, state: TransactionState) -> None:
    producer = at.init()
    at.set(replace(at.of(), state=state))
    assert at.end(producer, commit=False, version=V2) == (0, 1)
    assert (at.of().state, at.of().start_ms) == (COMPLETE_ABORT, at.clock.now_ms())
    assert at.markers.written == {}


def test_with_new_epochs_a_late_batch_cannot_come_into_the_next_transaction(at: Transactions) -> None:
    producer = at.init()
    at.add(producer, version=V2)
    later = at.end(producer, commit=True, version=V2)
    assert at.add(producer, version=V2) == FENCED
    assert at.add(later, version=V2) is None


@BOTH
def test_where_the_epochs_end_the_producer_goes_on_with_a_new_id(at: Transactions, commit: bool) -> None:
    at.init()
    at.set(replace(at.of(), producer_epoch=LAST))
    at.add((0, LAST), version=V2)
    assert at.end((0, LAST), commit=commit, version=V2) == (1, 0)
    assert at.outcomes() == [(0, EPOCH_MAX, commit)]
    assert at.end((0, LAST), commit=commit, version=V2) == (1, 0)
    assert at.end((0, LAST), commit=not commit, version=V2) == WRONG
    assert at.add((0, LAST), version=V2) == MAPPING
    assert at.add((1, 0), version=V2) is None


def test_a_start_while_the_new_id_waits_for_markers_goes_on_with_it(at: Transactions) -> None:
    at.init()
    at.set(replace(at.of(), producer_epoch=LAST))
    at.add((0, LAST), version=V2)
    at.markers.refuses[ORDERS] = ErrorCode.KAFKA_STORAGE_ERROR
    assert at.end((0, LAST), commit=True, version=V2) == (1, 0)
    at.markers.refuses.clear()
    at.started()
    assert at.add((1, 0), version=V2) is None


@BOTH
def test_a_producer_that_was_answered_waits_for_the_markers_whatever_it_asks_then(at: Transactions, commit: bool) -> None:
    for epoch, later in ((1, (0, 2)), (LAST, (1, 0))):
        at.init()
        at.set(replace(at.of(), producer_epoch=epoch))
        at.add((0, epoch), version=V2)
        at.markers.refuses[ORDERS] = ErrorCode.KAFKA_STORAGE_ERROR
        assert at.end((0, epoch), commit=commit, version=V2) == later
        assert at.add(later, version=V2) == CONCURRENT
        assert at.end(later, commit=False, version=V2) == at.end(later, commit=True, version=V2) == CONCURRENT
        assert at.init(expected=later) == CONCURRENT
        at.markers.refuses.clear()
        at.later(RETRY_MS)
        assert at.add(later, version=V2) is None
        assert at.end(later, commit=True, version=V2) == (later[0], later[1] + 1)


def test_without_new_epochs_the_last_one_is_kept(at: Transactions) -> None:
    at.init()
    at.set(replace(at.of(), producer_epoch=LAST))
    at.add((0, LAST))
    assert at.end((0, LAST), commit=True) == (0, LAST)


def test_an_outcome_that_cannot_be_kept_leaves_the_transaction_open(at: Transactions) -> None:
    producer = at.init()
    at.add(producer)
    at.log.is_broken = True
    assert at.end(producer, commit=True) == ErrorCode.NOT_COORDINATOR
    assert (at.of().state, at.outcomes()) == (ONGOING, [])
    at.log.is_broken = False
    assert at.end(producer, commit=False) == (0, 0)
    assert at.outcomes() == [(0, 0, False)]


def test_markers_that_cannot_be_written_are_written_later_and_only_those(at: Transactions) -> None:
    producer = at.init()
    at.add(producer, ORDERS, PAYMENTS)
    at.markers.refuses[PAYMENTS] = ErrorCode.KAFKA_STORAGE_ERROR
    assert at.end(producer, commit=True) == (0, 0)
    assert (at.of().state, at.of().partitions) == (PREPARE_COMMIT, {PAYMENTS})
    assert at.add(producer) == at.init() == at.end(producer, commit=True) == CONCURRENT
    assert at.end(producer, commit=False) == WRONG
    at.later(RETRY_MS)
    assert at.of().state is PREPARE_COMMIT
    at.markers.refuses.clear()
    at.later(RETRY_MS)
    assert at.of().state is COMPLETE_COMMIT
    assert [at.outcomes(ORDERS), at.outcomes(PAYMENTS)] == [[(0, 0, True)], [(0, 0, True)]]
    assert at.end(producer, commit=True) == (0, 0)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED],
)
def test_a_partition_that_was_deleted_meanwhile_or_has_seen_a_later_epoch_needs_no_marker(
    at: Transactions, code: ErrorCode
) -> None:
    producer = at.init()
    at.add(producer, ORDERS, PAYMENTS)
    at.markers.refuses[PAYMENTS] = code
    at.end(producer, commit=True)
    assert at.of().state is COMPLETE_COMMIT
    assert at.add(producer, ORDERS) is None


def test_an_end_that_cannot_be_kept_is_kept_later(at: Transactions) -> None:
    producer = at.init()
    at.add(producer)
    at.log.left = 1
    assert at.end(producer, commit=True) == (0, 0)
    assert at.of().state is PREPARE_COMMIT
    at.log.left = -1
    at.later(RETRY_MS)
    assert at.of().state is COMPLETE_COMMIT


@BOTH
def test_a_start_ends_the_transactions_whose_outcome_is_decided_and_no_others(at: Transactions, commit: bool) -> None:
    producer, other = at.init(), at.init("other")
    at.add(producer, ORDERS, PAYMENTS)
    at.add(other, ORDERS, own_id="other")
    at.markers.refuses[PAYMENTS] = ErrorCode.KAFKA_STORAGE_ERROR
    at.end(producer, commit=commit)
    at.markers.refuses.clear()
    at.started()
    assert at.of().state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT)
    assert at.outcomes(PAYMENTS) == [(0, 0, commit)]
    assert at.of("other").state is ONGOING
    assert at.end(other, own_id="other", commit=True) == other
