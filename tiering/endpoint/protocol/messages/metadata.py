"""Metadata (3): brokers, topics and partitions."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, boolean, int16, int32, string, uuid
from tiering.endpoint.protocol.writing import Written


@dataclass(frozen=True, slots=True)
class MetadataRequestTopic:
    """A topic by id or name."""

    topic_id: str = uuid("10+")
    name: str | None = string(nullable="10+")


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    """Asks for brokers and topics; all of these if `topics` is null, which version 0 writes as empty."""

    topics: tuple[MetadataRequestTopic, ...] | None = array(MetadataRequestTopic, nullable="1+")
    allow_auto_topic_creation: bool = boolean("4+", default=True)
    include_cluster_authorized_operations: bool = boolean("8-10")
    include_topic_authorized_operations: bool = boolean("8+")


@dataclass(frozen=True, slots=True)
class MetadataResponseBroker:
    """A broker and where it is to be reached."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string("1+", nullable="1+", default=None)


@dataclass(frozen=True, slots=True)
class MetadataResponsePartition:
    """A partition, its leader and replicas."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32("7+", default=-1)
    replica_nodes: tuple[int, ...] = array(INT32)
    isr_nodes: tuple[int, ...] = array(INT32)
    offline_replicas: tuple[int, ...] = array(INT32, "5+")


@dataclass(frozen=True, slots=True)
class MetadataResponseTopic:
    """A topic and its partitions."""

    error_code: int = int16()
    name: str | None = string(nullable="12+")
    topic_id: str = uuid("10+")
    is_internal: bool = boolean("1+")
    partitions: tuple[MetadataResponsePartition, ...] = array(MetadataResponsePartition)
    topic_authorized_operations: int = int32("8+", default=-2147483648)


@dataclass(frozen=True, slots=True)
class MetadataResponse:
    """The brokers and topics of the cluster."""

    throttle_time_ms: int = int32("3+")
    brokers: tuple[MetadataResponseBroker, ...] = array(MetadataResponseBroker)
    cluster_id: str | None = string("2+", nullable="2+", default=None)
    controller_id: int = int32("1+", default=-1)
    topics: tuple[MetadataResponseTopic | Written, ...] = array(MetadataResponseTopic)
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)
    error_code: int = int16("13+")
