"""DescribeTransactions (65): the transactions of some transactional ids."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, STRING, array, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class DescribeTransactionsRequest:
    """Asks about transactional ids."""

    transactional_ids: tuple[str, ...] = array(STRING)


@dataclass(frozen=True, slots=True)
class TopicData:
    """Partitions of a topic that the transaction has; of one that ends, those that have no marker yet."""

    topic: str = string()
    partitions: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """The state of a transactional id."""

    error_code: int = int16()
    transactional_id: str = string()
    transaction_state: str = string()
    transaction_timeout_ms: int = int32()
    transaction_start_time_ms: int = int64()
    producer_id: int = int64()
    producer_epoch: int = int16()
    topics: tuple[TopicData, ...] = array(TopicData)


@dataclass(frozen=True, slots=True)
class DescribeTransactionsResponse:
    """Those that were asked for, in the same order."""

    throttle_time_ms: int = int32()
    transaction_states: tuple[DescribedTransaction, ...] = array(DescribedTransaction)
