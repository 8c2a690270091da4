"""What time does to transactions: open ones are aborted, and ids that nobody uses are forgotten."""

from dataclasses import replace

import pytest
from transactions_kept import ORDERS, MemoryLog, Transactions, states

from tiering.endpoint.coordinator.records import Record
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.transaction_coordinator import NAMED_MAX, RETRY_MS
from tiering.endpoint.transactions.transaction_states import (
    COMPLETE_ABORT,
    DEAD,
    IDLE,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_EPOCH_FENCE,
    TransactionState,
)

HOUR_MS, WEEK_MS = 3_600_000, 604_800_000


@pytest.fixture
def at() -> Transactions:
    return Transactions()


def test_a_transaction_that_is_open_for_longer_than_its_producer_asked_for_is_aborted_with_a_new_epoch(at: Transactions) -> None:
    producer, patient = at.init(timeout_ms=15_000), at.init("patient", timeout_ms=900_000)
    at.add(producer)
    at.add(patient, own_id="patient")
    at.later(10_000)
    assert at.of().state is ONGOING
    at.later(10_000)
    assert at.of().state is COMPLETE_ABORT
    assert at.outcomes() == [(0, 1, False)]
    assert at.of("patient").state is ONGOING
    assert at.end(producer, commit=True) == at.add(producer) == ErrorCode.PRODUCER_FENCED
    assert at.init(expected=producer) == (0, 1), "who says that it is the one that was fenced goes on after its own abort"


@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS])
def test_missing_markers_are_written_as_soon_as_before_when_the_wall_clock_is_set(at: Transactions, by_ms: int) -> None:
    producer = at.init()
    at.add(producer)
    at.markers.refuses[ORDERS] = ErrorCode.KAFKA_STORAGE_ERROR
    at.end(producer, commit=False)
    del at.markers.refuses[ORDERS]
    at.clock.set_by_ms = by_ms
    at.later(RETRY_MS - 1)
    assert at.outcomes() == []
    at.later(1)
    assert at.outcomes() == [(0, 0, False)]


def test_neither_idle_ids_nor_decided_transactions_time_out(at: Transactions) -> None:
    producer = at.init(timeout_ms=1)
    at.init("idle", timeout_ms=1)
    at.add(producer)
    at.markers.refuses[ORDERS] = ErrorCode.KAFKA_STORAGE_ERROR
    at.end(producer, commit=False)
    kept = len(at.log.kept)
    at.later(20_000)
    assert (at.of().state, at.of().producer_epoch, len(at.log.kept)) == (PREPARE_ABORT, 0, kept)


def test_an_abort_that_cannot_be_kept_is_tried_again_without_another_epoch(at: Transactions) -> None:
    at.add(at.init(timeout_ms=1))
    at.log.is_broken = True
    at.later(10_000)
    at.later(10_000)
    assert (at.of().state, at.of().producer_epoch) == (ONGOING, 0)
    at.log.is_broken = False
    at.later(10_000)
    assert (at.of().state, at.of().producer_epoch) == (COMPLETE_ABORT, 1)


class OneIdFails(MemoryLog):
    """`is_broken` refuses the transactional id `bad`."""

    def append(self, transactional_id: str, record: Record, now_ms: int) -> None:
        before, self.is_broken = self.is_broken, self.is_broken and transactional_id == "bad"
        try:
            super().append(transactional_id, record, now_ms)
        finally:
            self.is_broken = before


def test_a_transaction_that_cannot_be_aborted_is_named_and_keeps_no_other_from_it(at: Transactions) -> None:
    at.log = OneIdFails()
    at.started()
    for own_id in ("bad", "good"):
        at.add(at.init(own_id, timeout_ms=1), own_id=own_id)
    at.log.is_broken = True
    at.later(10_000)
    assert states(at.coordinator.all()) == {"bad": "Ongoing", "good": "CompleteAbort"}
    assert at.said[-1] == "1 transactions whose time is up cannot be aborted, those of bad"
    at.log.is_broken = False
    at.later(10_000)
    assert states(at.coordinator.all()) == {"bad": "CompleteAbort", "good": "CompleteAbort"}


def test_of_many_transactions_that_cannot_be_aborted_one_message_names_some(at: Transactions) -> None:
    names = [f"id-{number:02}" for number in range(NAMED_MAX + 1)]
    for own_id in names:
        at.add(at.init(own_id, timeout_ms=1), own_id=own_id)
    at.log.is_broken = True
    at.later(10_000)
    named = ", ".join(names[:-1])
    assert at.said[-1] == f"21 transactions whose time is up cannot be aborted, those of {named}, …"
    assert len(set(at.said)) == 2


def test_what_was_open_before_a_restart_times_out_after_it(at: Transactions) -> None:
    at.add(at.init(timeout_ms=15_000))
    at.later(10_000)
    at.started()
    at.later(10_000)
    assert at.of().state is COMPLETE_ABORT


def test_ids_that_nobody_uses_are_forgotten_and_stay_so(at: Transactions) -> None:
    at.init("idle")
    at.init("used")
    at.later(WEEK_MS - HOUR_MS)
    at.init("used")
    at.add(at.init("open"), own_id="open")
    at.later(2 * HOUR_MS)
    assert states(at.coordinator.all()) == {"used": "Empty", "open": "CompleteAbort"}
    at.started()
    assert states(at.coordinator.all()) == {"used": "Empty", "open": "CompleteAbort"}
    assert at.init("idle") == (1000, 0), "its former id is not given again"


def test_ids_that_cannot_be_forgotten_are_forgotten_later(at: Transactions) -> None:
    at.init()
    at.log.is_broken = True
    at.later(WEEK_MS)
    assert states(at.coordinator.all()) == {"shop": "Empty"}
    assert "cannot be forgotten" in at.said[-1]
    at.log.is_broken = False
    at.later(HOUR_MS)
    assert states(at.coordinator.all()) == {}


def test_markers_that_fail_are_not_tried_more_often_than_once_a_second(at: Transactions) -> None:
    producer = at.init()
    at.add(producer)
    at.markers.refuses[ORDERS] = ErrorCode.KAFKA_STORAGE_ERROR
    at.end(producer, commit=True)
    assert not at.coordinator.is_due()
    at.clock.now += RETRY_MS
    assert at.coordinator.is_due()


def test_ids_of_every_idle_state_expire_and_no_others(at: Transactions) -> None:
    for state in TransactionState:
        if state not in (DEAD, PREPARE_EPOCH_FENCE):
            at.init(state.title, timeout_ms=900_000)
            partitions = frozenset() if state in IDLE else frozenset({ORDERS})
            at.set(replace(at.of(state.title), state=state, partitions=partitions, start_ms=at.clock.now_ms() + WEEK_MS))
    at.markers.refuses[ORDERS] = ErrorCode.KAFKA_STORAGE_ERROR
    at.later(WEEK_MS)
    assert set(states(at.coordinator.all())) == {"Ongoing", "PrepareCommit", "PrepareAbort"}


def test_a_bug_in_one_task_is_told_and_keeps_no_other_from_being_done(at: Transactions) -> None:
    producer = at.init()
    at.add(producer)
    at.markers.refuses[ORDERS] = ErrorCode.KAFKA_STORAGE_ERROR
    at.end(producer, commit=True)
    written, at.markers.written = at.markers.written, {ORDERS: None}  # type: ignore[dict-item]
    at.markers.refuses.clear()
    at.later(RETRY_MS)
    assert at.said == ["a bug: AttributeError: 'NoneType' object has no attribute 'append'; please report it"]
    at.markers.written = written
    at.later(RETRY_MS)
    assert states(at.coordinator.all()) == {"shop": "CompleteCommit"}
