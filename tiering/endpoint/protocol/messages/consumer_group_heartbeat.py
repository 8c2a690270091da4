"""ConsumerGroupHeartbeat (68): a member of a consumer group joins, is heard of, or leaves, and is told its partitions."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, STRING, array, int16, int32, nested, string, uuid


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Partitions of a topic."""

    topic_id: str = uuid()
    partitions: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatRequest:
    """What a member says of itself; null, or -1, is what has not changed since it said it last."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: tuple[str, ...] | None = array(STRING, nullable="0+", default=None)
    subscribed_topic_regex: str | None = string("1+", nullable="1+", default=None)
    server_assignor: str | None = string(nullable="0+", default=None)
    topic_partitions: tuple[TopicPartitions, ...] | None = array(TopicPartitions, nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions that a member may read at once."""

    topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and its partitions if they have changed."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: Assignment | None = nested(Assignment, nullable="0+", default=None)
