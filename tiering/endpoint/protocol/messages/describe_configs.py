"""DescribeConfigs (32): settings of topics and brokers."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import STRING, array, boolean, int8, int16, int32, string


@dataclass(frozen=True, slots=True)
class DescribeConfigsResource:
    """A topic or broker, and which of its settings to show; all if null."""

    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: tuple[str, ...] | None = array(STRING, nullable="0+")


@dataclass(frozen=True, slots=True)
class DescribeConfigsRequest:
    """Asks for settings of topics and brokers."""

    resources: tuple[DescribeConfigsResource, ...] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean("1+")
    include_documentation: bool = boolean("3+")


@dataclass(frozen=True, slots=True)
class DescribeConfigsSynonym:
    """A place where the setting may be given, too."""

    name: str = string("1+")
    value: str | None = string("1+", nullable="0+")
    source: int = int8("1+")


@dataclass(frozen=True, slots=True)
class DescribeConfigsResourceResult:
    """A setting and where its value is from."""

    name: str = string()
    value: str | None = string(nullable="0+")
    read_only: bool = boolean()
    config_source: int = int8("1+", default=-1)
    is_sensitive: bool = boolean()
    synonyms: tuple[DescribeConfigsSynonym, ...] = array(DescribeConfigsSynonym, "1+")
    config_type: int = int8("3+")
    documentation: str | None = string("3+", nullable="0+")


@dataclass(frozen=True, slots=True)
class DescribeConfigsResult:
    """The settings of a topic or broker."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8()
    resource_name: str = string()
    configs: tuple[DescribeConfigsResourceResult, ...] = array(DescribeConfigsResourceResult)


@dataclass(frozen=True, slots=True)
class DescribeConfigsResponse:
    """The settings, by topic and broker."""

    throttle_time_ms: int = int32()
    results: tuple[DescribeConfigsResult, ...] = array(DescribeConfigsResult)
