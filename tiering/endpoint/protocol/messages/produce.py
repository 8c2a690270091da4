"""Produce (0): appends."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import Records, array, int16, int32, int64, nested, record_batches, string, uuid


@dataclass(frozen=True, slots=True)
class PartitionProduceData:
    """Batches to append to a partition."""

    index: int = int32()
    records: Records | None = record_batches(nullable="0+")


@dataclass(frozen=True, slots=True)
class TopicProduceData:
    """A topic by name or id, and what to append to its partitions."""

    name: str = string("0-12")
    topic_id: str = uuid("13+")
    partition_data: tuple[PartitionProduceData, ...] = array(PartitionProduceData)


@dataclass(frozen=True, slots=True)
class ProduceRequest:
    """Asks to append batches."""

    transactional_id: str | None = string("3+", nullable="3+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: tuple[TopicProduceData, ...] = array(TopicProduceData)


@dataclass(frozen=True, slots=True)
class BatchIndexAndErrorMessage:
    """A batch that was refused, and why."""

    batch_index: int = int32("8+")
    batch_index_error_message: str | None = string("8+", nullable="8+", default=None)


@dataclass(frozen=True, slots=True)
class LeaderIdAndEpoch:
    """Who leads the partition now."""

    leader_id: int = int32("10+", default=-1)
    leader_epoch: int = int32("10+", default=-1)


@dataclass(frozen=True, slots=True)
class PartitionProduceResponse:
    """The offset of the first record appended, or why there is none."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64("2+", default=-1)
    log_start_offset: int = int64("5+", default=-1)
    record_errors: tuple[BatchIndexAndErrorMessage, ...] = array(BatchIndexAndErrorMessage, "8+")
    error_message: str | None = string("8+", nullable="8+", default=None)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "10+", tag=0)


@dataclass(frozen=True, slots=True)
class TopicProduceResponse:
    """The answers for a topic's partitions."""

    name: str = string("0-12")
    topic_id: str = uuid("13+")
    partition_responses: tuple[PartitionProduceResponse, ...] = array(PartitionProduceResponse)


@dataclass(frozen=True, slots=True)
class NodeEndpoint:
    """Where another leader is to be reached."""

    node_id: int = int32("10+")
    host: str = string("10+")
    port: int = int32("10+")
    rack: str | None = string("10+", nullable="10+", default=None)


@dataclass(frozen=True, slots=True)
class ProduceResponse:
    """The outcome of an append, by topic and partition."""

    responses: tuple[TopicProduceResponse, ...] = array(TopicProduceResponse)
    throttle_time_ms: int = int32("1+")
    node_endpoints: tuple[NodeEndpoint, ...] = array(NodeEndpoint, "10+", tag=0)
