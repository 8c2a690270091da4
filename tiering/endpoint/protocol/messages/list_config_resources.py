"""ListConfigResources (74): what there are settings of. Version 0 is for the metrics of clients alone."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT8, array, int8, int16, int32, string


@dataclass(frozen=True, slots=True)
class ListConfigResourcesRequest:
    """Asks for resources of these types, of all if there are none."""

    resource_types: tuple[int, ...] = array(INT8, "1+")


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A resource, and its type in Kafka's ConfigResource.Type."""

    resource_name: str = string()
    resource_type: int = int8("1+", default=16)


@dataclass(frozen=True, slots=True)
class ListConfigResourcesResponse:
    """The resources."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: tuple[ConfigResource, ...] = array(ConfigResource)
