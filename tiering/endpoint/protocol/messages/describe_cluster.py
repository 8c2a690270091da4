"""DescribeCluster (60): the brokers."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, boolean, int8, int16, int32, string


@dataclass(frozen=True, slots=True)
class DescribeClusterRequest:
    """Asks for the brokers."""

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = boolean("2+")


@dataclass(frozen=True, slots=True)
class DescribeClusterBroker:
    """A broker and where it is to be reached."""

    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)
    is_fenced: bool = boolean("2+")


@dataclass(frozen=True, slots=True)
class DescribeClusterResponse:
    """The brokers of the cluster."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: tuple[DescribeClusterBroker, ...] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-2147483648)
