"""ListOffsets (2): offsets by time. Version 0, which Kafka 4 no longer has, is as in 3.9."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT64, array, int8, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class ListOffsetsPartition:
    """A partition and a timestamp in ms, or a special one. Version 0 asks for several offsets before it."""

    partition_index: int = int32()
    current_leader_epoch: int = int32("4+", default=-1)
    timestamp: int = int64()
    max_num_offsets: int = int32("0", default=1)


@dataclass(frozen=True, slots=True)
class ListOffsetsTopic:
    """A topic, and which of its partitions to look into."""

    name: str = string()
    partitions: tuple[ListOffsetsPartition, ...] = array(ListOffsetsPartition)


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest:
    """Asks for offsets by time."""

    replica_id: int = int32()
    isolation_level: int = int8("2+")
    topics: tuple[ListOffsetsTopic, ...] = array(ListOffsetsTopic)
    timeout_ms: int = int32("10+")


@dataclass(frozen=True, slots=True)
class ListOffsetsPartitionResponse:
    """The offset with its time and leader epoch; in version 0 the offsets."""

    partition_index: int = int32()
    error_code: int = int16()
    old_style_offsets: tuple[int, ...] = array(INT64, "0")
    timestamp: int = int64("1+", default=-1)
    offset: int = int64("1+", default=-1)
    leader_epoch: int = int32("4+", default=-1)


@dataclass(frozen=True, slots=True)
class ListOffsetsTopicResponse:
    """The answers for a topic's partitions."""

    name: str = string()
    partitions: tuple[ListOffsetsPartitionResponse, ...] = array(ListOffsetsPartitionResponse)


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse:
    """The offsets, by topic and partition."""

    throttle_time_ms: int = int32("2+")
    topics: tuple[ListOffsetsTopicResponse, ...] = array(ListOffsetsTopicResponse)
