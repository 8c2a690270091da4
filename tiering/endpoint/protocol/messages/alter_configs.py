"""AlterConfigs (33): other settings instead of all that a topic or broker has."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, boolean, int8, int16, int32, string


@dataclass(frozen=True, slots=True)
class AlterableConfig:
    """A setting."""

    name: str = string()
    value: str | None = string(nullable="0+")


@dataclass(frozen=True, slots=True)
class AlterConfigsResource:
    """A topic or broker, and all settings that it is to have."""

    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[AlterableConfig, ...] = array(AlterableConfig)


@dataclass(frozen=True, slots=True)
class AlterConfigsRequest:
    """Asks to replace settings, or only whether they could be."""

    resources: tuple[AlterConfigsResource, ...] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@dataclass(frozen=True, slots=True)
class AlterConfigsResourceResponse:
    """Whether a topic or broker has them."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()


@dataclass(frozen=True, slots=True)
class AlterConfigsResponse:
    """The outcome, by topic and broker."""

    throttle_time_ms: int = int32()
    responses: tuple[AlterConfigsResourceResponse, ...] = array(AlterConfigsResourceResponse)
