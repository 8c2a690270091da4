"""ListPartitionReassignments (46): which partitions are getting other replicas."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, int16, int32, string


@dataclass(frozen=True, slots=True)
class ListPartitionReassignmentsTopics:
    """Partitions of a topic."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class ListPartitionReassignmentsRequest:
    """Asks about partitions; about all if they are null."""

    timeout_ms: int = int32(default=60_000)
    topics: tuple[ListPartitionReassignmentsTopics, ...] | None = array(
        ListPartitionReassignmentsTopics, nullable="0+", default=None
    )


@dataclass(frozen=True, slots=True)
class OngoingPartitionReassignment:
    """A partition, its replicas, and those that come and go."""

    partition_index: int = int32()
    replicas: tuple[int, ...] = array(INT32)
    adding_replicas: tuple[int, ...] = array(INT32)
    removing_replicas: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class OngoingTopicReassignment:
    """Partitions of a topic."""

    name: str = string()
    partitions: tuple[OngoingPartitionReassignment, ...] = array(OngoingPartitionReassignment)


@dataclass(frozen=True, slots=True)
class ListPartitionReassignmentsResponse:
    """Those that are under way."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    topics: tuple[OngoingTopicReassignment, ...] = array(OngoingTopicReassignment)
