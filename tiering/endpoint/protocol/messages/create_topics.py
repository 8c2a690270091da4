"""CreateTopics (19): new topics."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, boolean, int8, int16, int32, string, uuid


@dataclass(frozen=True, slots=True)
class CreatableReplicaAssignment:
    """The brokers of a partition."""

    partition_index: int = int32()
    broker_ids: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class CreatableTopicConfig:
    """A setting of the topic."""

    name: str = string()
    value: str | None = string(nullable="0+")


@dataclass(frozen=True, slots=True)
class CreatableTopic:
    """A topic to create: with numbers, -1 for the defaults, or with the brokers of each partition."""

    name: str = string()
    num_partitions: int = int32()
    replication_factor: int = int16()
    assignments: tuple[CreatableReplicaAssignment, ...] = array(CreatableReplicaAssignment)
    configs: tuple[CreatableTopicConfig, ...] = array(CreatableTopicConfig)


@dataclass(frozen=True, slots=True)
class CreateTopicsRequest:
    """Asks to create topics, or only whether they could be."""

    topics: tuple[CreatableTopic, ...] = array(CreatableTopic)
    timeout_ms: int = int32(default=60_000)
    validate_only: bool = boolean("1+")


@dataclass(frozen=True, slots=True)
class CreatableTopicConfigs:
    """A setting of the new topic, and where its value is from."""

    name: str = string("5+")
    value: str | None = string("5+", nullable="5+")
    read_only: bool = boolean("5+")
    config_source: int = int8("5+", default=-1)
    is_sensitive: bool = boolean("5+")


@dataclass(frozen=True, slots=True)
class CreatableTopicResult:
    """The new topic, or why there is none."""

    name: str = string()
    topic_id: str = uuid("7+")
    error_code: int = int16()
    error_message: str | None = string("1+", nullable="1+", default=None)
    topic_config_error_code: int = int16("5+", tag=0)
    num_partitions: int = int32("5+", default=-1)
    replication_factor: int = int16("5+", default=-1)
    configs: tuple[CreatableTopicConfigs, ...] | None = array(CreatableTopicConfigs, "5+", nullable="5+")


@dataclass(frozen=True, slots=True)
class CreateTopicsResponse:
    """The outcome, by topic."""

    throttle_time_ms: int = int32("2+")
    topics: tuple[CreatableTopicResult, ...] = array(CreatableTopicResult)
