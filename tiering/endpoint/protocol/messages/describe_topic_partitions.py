"""DescribeTopicPartitions (75): topics, a page at a time."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, boolean, int16, int32, nested, string, uuid


@dataclass(frozen=True, slots=True)
class TopicRequest:
    """A topic by name."""

    name: str = string()


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where the next page begins."""

    topic_name: str = string()
    partition_index: int = int32()


@dataclass(frozen=True, slots=True)
class DescribeTopicPartitionsRequest:
    """Asks for topics a page of partitions at a time; for all if it names none."""

    topics: tuple[TopicRequest, ...] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = nested(Cursor, nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class DescribeTopicPartitionsResponsePartition:
    """A partition, its leader and replicas."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1)
    replica_nodes: tuple[int, ...] = array(INT32)
    isr_nodes: tuple[int, ...] = array(INT32)
    eligible_leader_replicas: tuple[int, ...] | None = array(INT32, nullable="0+", default=None)
    last_known_elr: tuple[int, ...] | None = array(INT32, nullable="0+", default=None)
    offline_replicas: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class DescribeTopicPartitionsResponseTopic:
    """A topic and its partitions on this page."""

    error_code: int = int16()
    name: str | None = string(nullable="0+")
    topic_id: str = uuid()
    is_internal: bool = boolean()
    partitions: tuple[DescribeTopicPartitionsResponsePartition, ...] = array(DescribeTopicPartitionsResponsePartition)
    topic_authorized_operations: int = int32(default=-2147483648)


@dataclass(frozen=True, slots=True)
class DescribeTopicPartitionsResponse:
    """A page of topics."""

    throttle_time_ms: int = int32()
    topics: tuple[DescribeTopicPartitionsResponseTopic, ...] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = nested(Cursor, nullable="0+", default=None)
