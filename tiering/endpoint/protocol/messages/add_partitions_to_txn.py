"""AddPartitionsToTxn (24): the partitions that a transaction writes to. From version 4 on brokers ask, for several of them."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, boolean, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnTopic:
    """A topic's partitions."""

    name: str = string()
    partitions: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnTransaction:
    """A transaction. `verify_only` asks whether it has the partitions, and adds none."""

    transactional_id: str = string("4+")
    producer_id: int = int64("4+")
    producer_epoch: int = int16("4+")
    verify_only: bool = boolean("4+")
    topics: tuple[AddPartitionsToTxnTopic, ...] = array(AddPartitionsToTxnTopic, "4+")


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnRequest:
    """Adds partitions to transactions, of which versions before 4 have one."""

    transactions: tuple[AddPartitionsToTxnTransaction, ...] = array(AddPartitionsToTxnTransaction, "4+")
    v3_and_below_transactional_id: str = string("0-3")
    v3_and_below_producer_id: int = int64("0-3")
    v3_and_below_producer_epoch: int = int16("0-3")
    v3_and_below_topics: tuple[AddPartitionsToTxnTopic, ...] = array(AddPartitionsToTxnTopic, "0-3")


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnPartitionResult:
    """Whether the transaction has the partition."""

    partition_index: int = int32()
    partition_error_code: int = int16()


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnTopicResult:
    """The same of a topic's partitions."""

    name: str = string()
    results_by_partition: tuple[AddPartitionsToTxnPartitionResult, ...] = array(AddPartitionsToTxnPartitionResult)


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnResult:
    """The same of a transaction."""

    transactional_id: str = string("4+")
    topic_results: tuple[AddPartitionsToTxnTopicResult, ...] = array(AddPartitionsToTxnTopicResult, "4+")


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnResponse:
    """The outcome, by transaction, topic and partition."""

    throttle_time_ms: int = int32()
    error_code: int = int16("4+")
    results_by_transaction: tuple[AddPartitionsToTxnResult, ...] = array(AddPartitionsToTxnResult, "4+")
    results_by_topic_v3_and_below: tuple[AddPartitionsToTxnTopicResult, ...] = array(AddPartitionsToTxnTopicResult, "0-3")
