"""OffsetCommit (8): offsets that groups keep."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, int16, int32, int64, string, uuid


@dataclass(frozen=True, slots=True)
class OffsetCommitRequestPartition:
    """The next offset that a group reads of a partition, with the client's metadata."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("6+", default=-1)
    committed_metadata: str | None = string(nullable="0+")


@dataclass(frozen=True, slots=True)
class OffsetCommitRequestTopic:
    """A topic by name or id, and the offsets to commit."""

    name: str = string("0-9")
    topic_id: str = uuid("10+")
    partitions: tuple[OffsetCommitRequestPartition, ...] = array(OffsetCommitRequestPartition)


@dataclass(frozen=True, slots=True)
class OffsetCommitRequest:
    """Asks to keep offsets of a group. A consumer without members has generation -1 and no member id."""

    group_id: str = string()
    generation_id_or_member_epoch: int = int32(default=-1)
    member_id: str = string()
    group_instance_id: str | None = string("7+", nullable="7+", default=None)
    retention_time_ms: int = int64("2-4", default=-1)
    topics: tuple[OffsetCommitRequestTopic, ...] = array(OffsetCommitRequestTopic)


@dataclass(frozen=True, slots=True)
class OffsetCommitResponsePartition:
    """Whether an offset is kept."""

    partition_index: int = int32()
    error_code: int = int16()


@dataclass(frozen=True, slots=True)
class OffsetCommitResponseTopic:
    """The outcomes for a topic's partitions."""

    name: str = string("0-9")
    topic_id: str = uuid("10+")
    partitions: tuple[OffsetCommitResponsePartition, ...] = array(OffsetCommitResponsePartition)


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse:
    """The outcome of a commit, by topic and partition."""

    throttle_time_ms: int = int32("3+")
    topics: tuple[OffsetCommitResponseTopic, ...] = array(OffsetCommitResponseTopic)
