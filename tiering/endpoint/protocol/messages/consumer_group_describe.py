"""ConsumerGroupDescribe (69): consumer groups with their members and what these have."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, STRING, array, boolean, int8, int16, int32, nested, string, uuid


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeRequest:
    """Asks for groups."""

    group_ids: tuple[str, ...] = array(STRING)
    include_authorized_operations: bool = boolean()


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Partitions of a topic."""

    topic_id: str = uuid()
    topic_name: str = string()
    partitions: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The partitions of a member."""

    topic_partitions: tuple[TopicPartitions, ...] = array(TopicPartitions)


@dataclass(frozen=True, slots=True)
class Member:
    """A member, what it has and what it is to have."""

    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array(STRING)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    assignment: Assignment = nested(Assignment)
    target_assignment: Assignment = nested(Assignment)
    member_type: int = int8("1+", default=-1)


@dataclass(frozen=True, slots=True)
class DescribedConsumerGroup:
    """A group, or why it is not described."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: tuple[Member, ...] = array(Member)
    authorized_operations: int = int32(default=-(1 << 31))


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeResponse:
    """The groups in the order in which they were asked for, but for those that may not be told."""

    throttle_time_ms: int = int32()
    groups: tuple[DescribedConsumerGroup, ...] = array(DescribedConsumerGroup)
