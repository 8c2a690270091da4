"""OffsetFetch (9): offsets that groups have kept."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, boolean, int16, int32, int64, string, uuid


@dataclass(frozen=True, slots=True)
class OffsetFetchRequestTopic:
    """Partitions of a topic, before version 8."""

    name: str = string("0-7")
    partition_indexes: tuple[int, ...] = array(INT32, "0-7")


@dataclass(frozen=True, slots=True)
class OffsetFetchRequestTopics:
    """Partitions of a topic."""

    name: str = string("8-9")
    topic_id: str = uuid("10+")
    partition_indexes: tuple[int, ...] = array(INT32, "8+")


@dataclass(frozen=True, slots=True)
class OffsetFetchRequestGroup:
    """A group, and the partitions whose offsets are asked for; all of its offsets if `topics` is null."""

    group_id: str = string("8+")
    member_id: str | None = string("9+", nullable="9+", default=None)
    member_epoch: int = int32("9+", default=-1)
    topics: tuple[OffsetFetchRequestTopics, ...] | None = array(OffsetFetchRequestTopics, "8+", nullable="8+")


@dataclass(frozen=True, slots=True)
class OffsetFetchRequest:
    """Asks for the committed offsets of a group; from version 8 on of several groups."""

    group_id: str = string("0-7")
    topics: tuple[OffsetFetchRequestTopic, ...] | None = array(OffsetFetchRequestTopic, "0-7", nullable="2-7")
    groups: tuple[OffsetFetchRequestGroup, ...] = array(OffsetFetchRequestGroup, "8+")
    require_stable: bool = boolean("7+")


@dataclass(frozen=True, slots=True)
class OffsetFetchResponsePartition:
    """The committed offset of a partition, -1 if there is none, before version 8."""

    partition_index: int = int32("0-7")
    committed_offset: int = int64("0-7")
    committed_leader_epoch: int = int32("5-7", default=-1)
    metadata: str | None = string("0-7", nullable="0-7")
    error_code: int = int16("0-7")


@dataclass(frozen=True, slots=True)
class OffsetFetchResponseTopic:
    """The committed offsets of a topic, before version 8."""

    name: str = string("0-7")
    partitions: tuple[OffsetFetchResponsePartition, ...] = array(OffsetFetchResponsePartition, "0-7")


@dataclass(frozen=True, slots=True)
class OffsetFetchResponsePartitions:
    """The committed offset of a partition, -1 if there is none."""

    partition_index: int = int32("8+")
    committed_offset: int = int64("8+")
    committed_leader_epoch: int = int32("8+", default=-1)
    metadata: str | None = string("8+", nullable="8+")
    error_code: int = int16("8+")


@dataclass(frozen=True, slots=True)
class OffsetFetchResponseTopics:
    """The committed offsets of a topic."""

    name: str = string("8-9")
    topic_id: str = uuid("10+")
    partitions: tuple[OffsetFetchResponsePartitions, ...] = array(OffsetFetchResponsePartitions, "8+")


@dataclass(frozen=True, slots=True)
class OffsetFetchResponseGroup:
    """The committed offsets of a group."""

    group_id: str = string("8+")
    topics: tuple[OffsetFetchResponseTopics, ...] = array(OffsetFetchResponseTopics, "8+")
    error_code: int = int16("8+")


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse:
    """The committed offsets, by topic and partition; from version 8 on by group, too."""

    throttle_time_ms: int = int32("3+")
    topics: tuple[OffsetFetchResponseTopic, ...] = array(OffsetFetchResponseTopic, "0-7")
    error_code: int = int16("2-7")
    groups: tuple[OffsetFetchResponseGroup, ...] = array(OffsetFetchResponseGroup, "8+")
