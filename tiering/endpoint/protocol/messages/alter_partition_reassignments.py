"""AlterPartitionReassignments (45): partitions get other replicas."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, boolean, int16, int32, string


@dataclass(frozen=True, slots=True)
class ReassignablePartition:
    """A partition and the brokers that are to have it; null to cancel what is under way."""

    partition_index: int = int32()
    replicas: tuple[int, ...] | None = array(INT32, nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class ReassignableTopic:
    """Partitions of a topic."""

    name: str = string()
    partitions: tuple[ReassignablePartition, ...] = array(ReassignablePartition)


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsRequest:
    """Asks for other replicas."""

    timeout_ms: int = int32(default=60_000)
    allow_replication_factor_change: bool = boolean("1+", default=True)
    topics: tuple[ReassignableTopic, ...] = array(ReassignableTopic)


@dataclass(frozen=True, slots=True)
class ReassignablePartitionResponse:
    """Whether a partition gets them."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class ReassignableTopicResponse:
    """The outcome in a topic."""

    name: str = string()
    partitions: tuple[ReassignablePartitionResponse, ...] = array(ReassignablePartitionResponse)


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsResponse:
    """The outcome, by topic."""

    throttle_time_ms: int = int32()
    allow_replication_factor_change: bool = boolean("1+", default=True)
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    responses: tuple[ReassignableTopicResponse, ...] = array(ReassignableTopicResponse)
