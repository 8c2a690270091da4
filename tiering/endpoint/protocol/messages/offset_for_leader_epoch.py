"""OffsetForLeaderEpoch (23): how consumers notice that a log was truncated."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class OffsetForLeaderPartition:
    """A partition and a leader epoch of it."""

    partition: int = int32()
    current_leader_epoch: int = int32("2+", default=-1)
    leader_epoch: int = int32()


@dataclass(frozen=True, slots=True)
class OffsetForLeaderTopic:
    """A topic, and which of its partitions to look into."""

    topic: str = string()
    partitions: tuple[OffsetForLeaderPartition, ...] = array(OffsetForLeaderPartition)


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochRequest:
    """Asks where leader epochs ended."""

    replica_id: int = int32("3+", default=-2)
    topics: tuple[OffsetForLeaderTopic, ...] = array(OffsetForLeaderTopic)


@dataclass(frozen=True, slots=True)
class EpochEndOffset:
    """The greatest epoch at or before the one asked for, and its end."""

    error_code: int = int16()
    partition: int = int32()
    leader_epoch: int = int32("1+", default=-1)
    end_offset: int = int64(default=-1)


@dataclass(frozen=True, slots=True)
class OffsetForLeaderTopicResult:
    """The answers for a topic's partitions."""

    topic: str = string()
    partitions: tuple[EpochEndOffset, ...] = array(EpochEndOffset)


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochResponse:
    """The ends of the epochs, by topic and partition."""

    throttle_time_ms: int = int32("2+")
    topics: tuple[OffsetForLeaderTopicResult, ...] = array(OffsetForLeaderTopicResult)
