"""Fetch (1): reads of record batches."""

from dataclasses import dataclass

from local_log.formats.primitives import INT32_MAX, INT64_MAX
from tiering.endpoint.protocol.fields import (
    INT32,
    Records,
    array,
    int8,
    int16,
    int32,
    int64,
    nested,
    record_batches,
    string,
    uuid,
)


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """The follower that fetches, if it is one."""

    replica_id: int = int32("15+", default=-1)
    replica_epoch: int = int64("15+", default=-1)


@dataclass(frozen=True, slots=True)
class FetchPartition:
    """A partition, and from where and how much to read."""

    partition: int = int32()
    current_leader_epoch: int = int32("9+", default=-1)
    fetch_offset: int = int64()
    last_fetched_epoch: int = int32("12+", default=-1)
    log_start_offset: int = int64("5+", default=-1)
    partition_max_bytes: int = int32()
    replica_directory_id: str = uuid("17+", tag=0)
    high_watermark: int = int64("18+", default=INT64_MAX, tag=1)


@dataclass(frozen=True, slots=True)
class FetchTopic:
    """A topic by name or id, and which of its partitions to read."""

    topic: str = string("0-12")
    topic_id: str = uuid("13+")
    partitions: tuple[FetchPartition, ...] = array(FetchPartition)


@dataclass(frozen=True, slots=True)
class ForgottenTopic:
    """Partitions that leave the fetch session."""

    topic: str = string("7-12")
    topic_id: str = uuid("13+")
    partitions: tuple[int, ...] = array(INT32, "7+")


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """Asks for record batches from an offset of each partition on."""

    cluster_id: str | None = string("12+", nullable="12+", default=None, tag=0)
    replica_id: int = int32("0-14", default=-1)
    replica_state: ReplicaState = nested(ReplicaState, "15+", tag=1)
    max_wait_ms: int = int32()
    min_bytes: int = int32()
    max_bytes: int = int32("3+", default=INT32_MAX)
    isolation_level: int = int8("4+")
    session_id: int = int32("7+")
    session_epoch: int = int32("7+", default=-1)
    topics: tuple[FetchTopic, ...] = array(FetchTopic)
    forgotten_topics_data: tuple[ForgottenTopic, ...] = array(ForgottenTopic, "7+")
    rack_id: str = string("11+")


@dataclass(frozen=True, slots=True)
class EpochEndOffset:
    """Where the requester's log and this one part."""

    epoch: int = int32("12+", default=-1)
    end_offset: int = int64("12+", default=-1)


@dataclass(frozen=True, slots=True)
class LeaderIdAndEpoch:
    """Who leads the partition now."""

    leader_id: int = int32("12+", default=-1)
    leader_epoch: int = int32("12+", default=-1)


@dataclass(frozen=True, slots=True)
class SnapshotId:
    """Of a controller's log only."""

    end_offset: int = int64(default=-1)
    epoch: int = int32(default=-1)


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A transaction whose records a committed read leaves out, from its first offset on."""

    producer_id: int = int64("4+")
    first_offset: int = int64("4+")


@dataclass(frozen=True, slots=True)
class PartitionData:
    """A partition's offsets and batches."""

    partition_index: int = int32()
    error_code: int = int16()
    high_watermark: int = int64()
    last_stable_offset: int = int64("4+", default=-1)
    log_start_offset: int = int64("5+", default=-1)
    diverging_epoch: EpochEndOffset = nested(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId = nested(SnapshotId, "12+", tag=2)
    aborted_transactions: tuple[AbortedTransaction, ...] | None = array(AbortedTransaction, "4+", nullable="4+")
    preferred_read_replica: int = int32("11+", default=-1)
    records: Records | None = record_batches(nullable="0+")


@dataclass(frozen=True, slots=True)
class FetchableTopicResponse:
    """The answers for a topic's partitions."""

    topic: str = string("0-12")
    topic_id: str = uuid("13+")
    partitions: tuple[PartitionData, ...] = array(PartitionData)


@dataclass(frozen=True, slots=True)
class NodeEndpoint:
    """Where another leader is to be reached."""

    node_id: int = int32("16+")
    host: str = string("16+")
    port: int = int32("16+")
    rack: str | None = string("16+", nullable="16+", default=None)


@dataclass(frozen=True, slots=True)
class FetchResponse:
    """The batches, by topic and partition. `records` are whole batches of the log, the first with the offset asked for."""

    throttle_time_ms: int = int32("1+")
    error_code: int = int16("7+")
    session_id: int = int32("7+")
    responses: tuple[FetchableTopicResponse, ...] = array(FetchableTopicResponse)
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, "16+", tag=0)
