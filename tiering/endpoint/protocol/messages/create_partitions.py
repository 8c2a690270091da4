"""CreatePartitions (37): more partitions of topics."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, boolean, int16, int32, string


@dataclass(frozen=True, slots=True)
class CreatePartitionsAssignment:
    """The brokers of a new partition."""

    broker_ids: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class CreatePartitionsTopic:
    """A topic, and how many partitions it is to have in all."""

    name: str = string()
    count: int = int32()
    assignments: tuple[CreatePartitionsAssignment, ...] | None = array(CreatePartitionsAssignment, nullable="0+")


@dataclass(frozen=True, slots=True)
class CreatePartitionsRequest:
    """Asks for more partitions, or only whether there could be."""

    topics: tuple[CreatePartitionsTopic, ...] = array(CreatePartitionsTopic)
    timeout_ms: int = int32()
    validate_only: bool = boolean()


@dataclass(frozen=True, slots=True)
class CreatePartitionsTopicResult:
    """Whether a topic has them."""

    name: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)


@dataclass(frozen=True, slots=True)
class CreatePartitionsResponse:
    """The outcome, by topic."""

    throttle_time_ms: int = int32()
    results: tuple[CreatePartitionsTopicResult, ...] = array(CreatePartitionsTopicResult)
