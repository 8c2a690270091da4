"""OffsetDelete (47): offsets that groups forget."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, int16, int32, string


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequestPartition:
    """A partition."""

    partition_index: int = int32()


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequestTopic:
    """Partitions of a topic."""

    name: str = string()
    partitions: tuple[OffsetDeleteRequestPartition, ...] = array(OffsetDeleteRequestPartition)


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequest:
    """Asks to forget committed offsets of a group."""

    group_id: str = string()
    topics: tuple[OffsetDeleteRequestTopic, ...] = array(OffsetDeleteRequestTopic)


@dataclass(frozen=True, slots=True)
class OffsetDeleteResponsePartition:
    """Whether a partition's offset is forgotten."""

    partition_index: int = int32()
    error_code: int = int16()


@dataclass(frozen=True, slots=True)
class OffsetDeleteResponseTopic:
    """The outcomes for a topic's partitions."""

    name: str = string()
    partitions: tuple[OffsetDeleteResponsePartition, ...] = array(OffsetDeleteResponsePartition)


@dataclass(frozen=True, slots=True)
class OffsetDeleteResponse:
    """The outcome, by topic and partition."""

    error_code: int = int16()
    throttle_time_ms: int = int32()
    topics: tuple[OffsetDeleteResponseTopic, ...] = array(OffsetDeleteResponseTopic)
