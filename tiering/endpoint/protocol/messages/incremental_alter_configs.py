"""IncrementalAlterConfigs (44): some settings of topics and brokers are changed."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, boolean, int8, int32, string
from tiering.endpoint.protocol.messages.alter_configs import AlterConfigsResourceResponse


@dataclass(frozen=True, slots=True)
class AlterableConfig:
    """A setting, and what is done to it: set 0, delete 1, append to the list 2, take away from the list 3."""

    name: str = string()
    config_operation: int = int8()
    value: str | None = string(nullable="0+")


@dataclass(frozen=True, slots=True)
class AlterConfigsResource:
    """A topic or broker, and which of its settings change."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[AlterableConfig, ...] = array(AlterableConfig)


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsRequest:
    """Asks to change settings, or only whether they could be."""

    resources: tuple[AlterConfigsResource, ...] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsResponse:
    """The outcome, by topic and broker."""

    throttle_time_ms: int = int32()
    responses: tuple[AlterConfigsResourceResponse, ...] = array(AlterConfigsResourceResponse)
