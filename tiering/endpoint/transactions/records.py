"""The records of `__transaction_state`, as bytes and as values.

    key    int16 0 | TransactionLogKey
    value  int16 version | TransactionLogValue; null deletes the key

Version 1, which is written, has tagged fields. Source: Kafka's TransactionLog, TransactionLogKey.json and -Value.json.
"""

from itertools import groupby
from struct import Struct
from typing import Any, Final

from local_log.errors import Corrupt
from local_log.formats.filenames import TopicPartition
from local_log.formats.primitives import need
from tiering.endpoint.coordinator.records import Record
from tiering.endpoint.protocol.reading import read_message
from tiering.endpoint.protocol.writing import Output, writer
from tiering.endpoint.transactions.record_messages import PartitionsSchema, TransactionLogKey, TransactionLogValue
from tiering.endpoint.transactions.transaction_metadata import TransactionMetadata
from tiering.endpoint.transactions.transaction_states import EMPTY, TransactionState

_OF_TRANSACTIONS: Final = 0
_LAST, _FLEXIBLE = 1, 1
_NUMBER = Struct(">h")


def transaction_record(metadata: TransactionMetadata) -> Record:
    """Keeps a transactional id."""
    partitions = None if metadata.state is EMPTY else _by_topic(metadata.partitions)
    value = TransactionLogValue(
        metadata.producer_id,
        metadata.previous_producer_id,
        metadata.next_producer_id,
        metadata.producer_epoch,
        metadata.timeout_ms,
        metadata.state,
        partitions,
        metadata.last_update_ms,
        metadata.start_ms,
        metadata.client_version,
    )
    return Record(_key(metadata.transactional_id), _written(value, _LAST))


def transaction_tombstone(transactional_id: str) -> Record:
    """Forgets a transactional id."""
    return Record(_key(transactional_id), None)


def read_transactional_id(data: bytes) -> str | None:
    """The transactional id of a key, None for one of another kind of record. Raises Corrupt."""
    record_type, pos = _number(data, "a key")
    if record_type != _OF_TRANSACTIONS:
        return None
    key: TransactionLogKey = read_message(TransactionLogKey, 0, data, pos, flexible=False)
    return key.transactional_id


def read_metadata(transactional_id: str, data: bytes) -> TransactionMetadata:
    """The value of a transactional id. Raises Corrupt, also for a version or a state that Kafka 4.3 does not have."""
    version, pos = _number(data, "a value")
    if not 0 <= version <= _LAST:
        raise Corrupt(f"version {version} of the state of a transaction; versions 0 to {_LAST} are known")
    value: TransactionLogValue = read_message(TransactionLogValue, version, data, pos, flexible=version >= _FLEXIBLE)
    if value.transaction_status not in set(TransactionState):
        raise Corrupt(f"state {value.transaction_status} of a transaction; {list(map(int, TransactionState))} are known")
    state = TransactionState(value.transaction_status)
    found = () if state is EMPTY else value.transaction_partitions or ()
    return TransactionMetadata(
        transactional_id,
        value.producer_id,
        value.transaction_timeout_ms,
        value.transaction_last_update_timestamp_ms,
        value.previous_producer_id,
        value.next_producer_id,
        value.producer_epoch,
        state=state,
        partitions=frozenset(TopicPartition(of.topic, number) for of in found for number in of.partition_ids),
        start_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
    )


def _by_topic(partitions: frozenset[TopicPartition]) -> tuple[PartitionsSchema, ...]:
    topics = groupby(sorted(partitions), key=lambda partition: partition.topic)
    return tuple(PartitionsSchema(topic, tuple(one.partition for one in of)) for topic, of in topics)


def _number(data: bytes, what: str) -> tuple[int, int]:
    need(data, 0, _NUMBER.size, what)
    return _NUMBER.unpack_from(data)[0], _NUMBER.size


def _key(transactional_id: str) -> bytes:
    return _written(TransactionLogKey(transactional_id), _OF_TRANSACTIONS)


def _written(message: TransactionLogKey | TransactionLogValue, number: int) -> bytes:
    out = Output()
    out.buffer += _NUMBER.pack(number)
    of: Any = type(message)
    writer(of, number, flexible=of is TransactionLogValue and number >= _FLEXIBLE)(out, message)
    return b"".join(out.finish()[0])
