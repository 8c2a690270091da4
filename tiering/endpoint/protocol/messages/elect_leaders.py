"""ElectLeaders (43): leaders of partitions are elected anew."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, int8, int16, int32, string


@dataclass(frozen=True, slots=True)
class TopicPartitions:
    """Partitions of a topic."""

    topic: str = string()
    partitions: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class ElectLeadersRequest:
    """Asks for elections in partitions; in all if they are null. Type 0 is for the preferred replica, 1 for any that lives."""

    election_type: int = int8("1+")
    topic_partitions: tuple[TopicPartitions, ...] | None = array(TopicPartitions, nullable="0+")
    timeout_ms: int = int32(default=60_000)


@dataclass(frozen=True, slots=True)
class PartitionResult:
    """Whether there was an election."""

    partition_id: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class ReplicaElectionResult:
    """The outcome in a topic."""

    topic: str = string()
    partition_result: tuple[PartitionResult, ...] = array(PartitionResult)


@dataclass(frozen=True, slots=True)
class ElectLeadersResponse:
    """The outcome, by topic."""

    throttle_time_ms: int = int32()
    error_code: int = int16("1+")
    replica_election_results: tuple[ReplicaElectionResult, ...] = array(ReplicaElectionResult)
