"""Keys and values of the topic `__transaction_state`."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, int8, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class TransactionLogKey:
    """The key of a transactional id."""

    transactional_id: str = string()


@dataclass(frozen=True, slots=True)
class PartitionsSchema:
    """Partitions of a topic that a transaction has."""

    topic: str = string()
    partition_ids: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class TransactionLogValue:
    """The state of a transactional id."""

    producer_id: int = int64()
    previous_producer_id: int = int64("1+", default=-1, tag=0)
    next_producer_id: int = int64("1+", default=-1, tag=1)
    producer_epoch: int = int16()
    transaction_timeout_ms: int = int32()
    transaction_status: int = int8()
    transaction_partitions: tuple[PartitionsSchema, ...] | None = array(PartitionsSchema, nullable="0+")
    transaction_last_update_timestamp_ms: int = int64()
    transaction_start_timestamp_ms: int = int64()
    client_transaction_version: int = int16("1+", tag=2)
