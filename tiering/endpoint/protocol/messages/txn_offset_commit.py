"""TxnOffsetCommit (28): offsets that a group keeps if the transaction commits."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequestPartition:
    """The next offset that a group reads of a partition, with the client's metadata."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("2+", default=-1)
    committed_metadata: str | None = string(nullable="0+")


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequestTopic:
    """A topic and the offsets to commit."""

    name: str = string()
    partitions: tuple[TxnOffsetCommitRequestPartition, ...] = array(TxnOffsetCommitRequestPartition)


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequest:
    """Asks to keep offsets of a group in a transaction. A producer that names no member has generation -1."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    topics: tuple[TxnOffsetCommitRequestTopic, ...] = array(TxnOffsetCommitRequestTopic)


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitResponsePartition:
    """Whether an offset is kept."""

    partition_index: int = int32()
    error_code: int = int16()


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitResponseTopic:
    """The outcomes for a topic's partitions."""

    name: str = string()
    partitions: tuple[TxnOffsetCommitResponsePartition, ...] = array(TxnOffsetCommitResponsePartition)


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitResponse:
    """The outcome, by topic and partition."""

    throttle_time_ms: int = int32()
    topics: tuple[TxnOffsetCommitResponseTopic, ...] = array(TxnOffsetCommitResponseTopic)
