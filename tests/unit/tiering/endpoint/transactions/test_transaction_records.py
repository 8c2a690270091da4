"""The records of `__transaction_state`: what is kept of a transactional id, and what of others is left alone or refused."""

import pytest
from transactions_kept import ORDERS, OWN_ID, PAYMENTS

from local_log.errors import Corrupt
from tiering.endpoint.coordinator.records import Record
from tiering.endpoint.transactions.records import (
    read_metadata,
    read_transactional_id,
    transaction_record,
    transaction_tombstone,
)
from tiering.endpoint.transactions.transaction_metadata import TransactionMetadata
from tiering.endpoint.transactions.transaction_states import EMPTY, ONGOING

OPEN = TransactionMetadata(OWN_ID, 7, 60_000, 20, 6, 8, 3, -1, ONGOING, frozenset({ORDERS, PAYMENTS}), 10, 2)


def test_a_record_keeps_all_but_the_epoch_before() -> None:
    record = transaction_record(OPEN)
    assert record.value is not None
    assert (read_transactional_id(record.key), read_metadata(OWN_ID, record.value)) == (OWN_ID, OPEN)
    empty = TransactionMetadata(OWN_ID, 7, 60_000, 20, producer_epoch=0, state=EMPTY)
    assert read_metadata(OWN_ID, transaction_record(empty).value or b"") == empty


def test_a_tombstone_has_the_same_key() -> None:
    assert transaction_tombstone(OWN_ID) == Record(transaction_record(OPEN).key, None)


def test_a_record_of_another_kind_is_left_alone() -> None:
    assert read_transactional_id(b"\x00\x01\x00\x01x") is None


def test_a_version_or_a_state_that_kafka_does_not_have_is_corrupt() -> None:
    value = transaction_record(OPEN).value or b""
    with pytest.raises(Corrupt, match="version 2 of the state of a transaction"):
        read_metadata(OWN_ID, b"\x00\x02" + value[2:])
    at = 2 + 8 + 2 + 4
    assert value[at] == ONGOING
    with pytest.raises(Corrupt, match="state 9 of a transaction"):
        read_metadata(OWN_ID, value[:at] + b"\x09" + value[at + 1 :])


def test_a_record_that_is_cut_anywhere_is_corrupt() -> None:
    record = transaction_record(OPEN)
    for size in range(len(record.value or b"")):
        with pytest.raises(Corrupt):
            read_metadata(OWN_ID, (record.value or b"")[:size])
    for size in range(len(record.key)):
        with pytest.raises(Corrupt):
            read_transactional_id(record.key[:size])
