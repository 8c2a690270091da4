"""Keys and values of `__consumer_offsets` that keep consumer groups. Kafka 4.3 reads partition metadata, but writes none."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, STRING, array, binary, int8, int32, int64, nested, string, uuid


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadataKey:
    """The key of a group's epoch."""

    group_id: str = string()


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadataValue:
    """A group's epoch, and a hash of the topics that it subscribes."""

    epoch: int = int32()
    metadata_hash: int = int64(tag=0)


@dataclass(frozen=True, slots=True)
class ConsumerGroupPartitionMetadataKey:
    """The key of the topics that a group subscribes, before Kafka 4.1."""

    group_id: str = string()


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """The racks of a partition."""

    partition: int = int32()
    racks: tuple[str, ...] = array(STRING)


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic that a group subscribes."""

    topic_id: str = uuid()
    topic_name: str = string()
    num_partitions: int = int32()
    partition_metadata: tuple[PartitionMetadata, ...] = array(PartitionMetadata)


@dataclass(frozen=True, slots=True)
class ConsumerGroupPartitionMetadataValue:
    """The topics that a group subscribes."""

    topics: tuple[TopicMetadata, ...] = array(TopicMetadata)


@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberMetadataKey:
    """The key of what a member says of itself."""

    group_id: str = string()
    member_id: str = string()


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    """A protocol of a classic member."""

    name: str = string()
    metadata: bytes = binary()


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """What a classic member in a consumer group says of itself."""

    session_timeout_ms: int = int32()
    supported_protocols: tuple[ClassicProtocol, ...] = array(ClassicProtocol)


@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberMetadataValue:
    """What a member says of itself."""

    instance_id: str | None = string(nullable="0+")
    rack_id: str | None = string(nullable="0+")
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: tuple[str, ...] = array(STRING)
    subscribed_topic_regex: str | None = string(nullable="0+")
    rebalance_timeout_ms: int = int32(default=-1)
    server_assignor: str | None = string(nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = nested(ClassicMemberMetadata, nullable="0+", tag=0)
    """Null for a member of the consumer protocol. Kafka's class takes a field that is left out for an empty one, and so do we."""


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMetadataKey:
    """The key of the epoch of a group's target assignment."""

    group_id: str = string()


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMetadataValue:
    """The group's epoch that the target assignment is made for, and when it was made."""

    assignment_epoch: int = int32()
    assignment_timestamp: int = int64(tag=0)


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMemberKey:
    """The key of a member's target assignment."""

    group_id: str = string()
    member_id: str = string()


@dataclass(frozen=True, slots=True)
class TargetTopicPartitions:
    """Partitions of a topic."""

    topic_id: str = uuid()
    partitions: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions that a member is to have."""

    topic_partitions: tuple[TargetTopicPartitions, ...] = array(TargetTopicPartitions)


@dataclass(frozen=True, slots=True)
class ConsumerGroupCurrentMemberAssignmentKey:
    """The key of a member's current assignment."""

    group_id: str = string()
    member_id: str = string()


@dataclass(frozen=True, slots=True)
class CurrentTopicPartitions:
    """Partitions of a topic, each with the epoch in which the member got it."""

    topic_id: str = uuid()
    partitions: tuple[int, ...] = array(INT32)
    assignment_epochs: tuple[int, ...] | None = array(INT32, nullable="0+", default=None, tag=0)


@dataclass(frozen=True, slots=True)
class ConsumerGroupCurrentMemberAssignmentValue:
    """The partitions that a member has, and those that it is to give up."""

    member_epoch: int = int32()
    previous_member_epoch: int = int32()
    state: int = int8()
    assigned_partitions: tuple[CurrentTopicPartitions, ...] = array(CurrentTopicPartitions)
    partitions_pending_revocation: tuple[CurrentTopicPartitions, ...] = array(CurrentTopicPartitions)


@dataclass(frozen=True, slots=True)
class ConsumerGroupRegularExpressionKey:
    """The key of a regular expression that members subscribe."""

    group_id: str = string()
    regular_expression: str = string()


@dataclass(frozen=True, slots=True)
class ConsumerGroupRegularExpressionValue:
    """The topics that a regular expression names, as of a version of the cluster's metadata and a time."""

    topics: tuple[str, ...] = array(STRING)
    version: int = int64()
    timestamp: int = int64()
