"""DescribeProducers (61): the producers of partitions and their open transactions."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class TopicRequest:
    """A topic, and which of its partitions to look into."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class DescribeProducersRequest:
    """Asks for the producers of partitions."""

    topics: tuple[TopicRequest, ...] = array(TopicRequest)


@dataclass(frozen=True, slots=True)
class ProducerState:
    """A producer's epoch, its last sequence and time, and where its open transaction begins, -1 without one."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


@dataclass(frozen=True, slots=True)
class PartitionResponse:
    """A partition's producers."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: tuple[ProducerState, ...] = array(ProducerState)


@dataclass(frozen=True, slots=True)
class TopicResponse:
    """The answers for a topic's partitions."""

    name: str = string()
    partitions: tuple[PartitionResponse, ...] = array(PartitionResponse)


@dataclass(frozen=True, slots=True)
class DescribeProducersResponse:
    """The producers, by topic and partition."""

    throttle_time_ms: int = int32()
    topics: tuple[TopicResponse, ...] = array(TopicResponse)
