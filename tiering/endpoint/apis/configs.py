"""DescribeConfigs: the settings of this broker, and of topics in log directories of its own. Others know those of the rest."""

from collections.abc import Container
from dataclasses import replace
from enum import IntEnum
from typing import Final

from tiering.endpoint.apis.broker_configs import BrokerConfig, broker_configs, endpoint_config
from tiering.endpoint.apis.context import Context, unknown_topic
from tiering.endpoint.apis.topic_configs import BROKER_NAMES, DYNAMIC_GROUP, DYNAMIC_TOPIC, TopicConfig, topic_configs
from tiering.endpoint.coordinator.group_configs import GROUP_SETTINGS
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from tiering.endpoint.request_context import ConnectionContext, RequestContext


class ResourceType(IntEnum):
    """Kafka's ConfigResource.Type."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


REPEATED_MAX: Final = 100
"""How often one request may name resources that it has named before: the answer is up to a thousand times as large."""
DESCRIBED_GROUPS_MAX: Final = 10_000
"""How many groups one request may name: any name is one of a group, and has settings."""


def describe_configs(
    request: DescribeConfigsRequest, request_context: RequestContext, context: Context
) -> DescribeConfigsResponse:
    """A list of settings a resource, an empty one for a topic that there is; an error for each if one is of no known type."""
    unknown = [one for one in request.resources if one.resource_type not in set(ResourceType)]
    if unknown:
        reason = f"Unexpected resource type UNKNOWN for resource {unknown[0].resource_name}"
        return DescribeConfigsResponse(results=tuple(_refused(one, reason) for one in request.resources))
    if _asks_too_much(request):
        reason = f"a request names resources again at most {REPEATED_MAX} times, and {DESCRIBED_GROUPS_MAX} groups"
        return DescribeConfigsResponse(results=tuple(_refused(one, reason) for one in request.resources))
    topics = topic_names(context) if any(one.resource_type == ResourceType.TOPIC for one in request.resources) else ()
    return DescribeConfigsResponse(
        results=tuple(_described(one, request, topics, request_context.connection, context) for one in request.resources)
    )


def _asks_too_much(request: DescribeConfigsRequest) -> bool:
    asked = {(one.resource_type, one.resource_name) for one in request.resources}
    groups = sum(kind == ResourceType.GROUP for kind, _ in asked)
    return len(request.resources) - len(asked) > REPEATED_MAX or groups > DESCRIBED_GROUPS_MAX


def _described(
    resource: DescribeConfigsResource,
    request: DescribeConfigsRequest,
    topics: Container[str],
    connection: ConnectionContext,
    context: Context,
) -> DescribeConfigsResult:
    kind, name = resource.resource_type, resource.resource_name
    node_id = str(context.cluster.live.node_id)
    if kind == ResourceType.TOPIC and name not in topics:
        return DescribeConfigsResult(unknown_topic(name), None, kind, name)
    if kind == ResourceType.BROKER and name not in ("", node_id):
        return _refused(resource, f"Unexpected broker id, expected {node_id} or empty string, but received {name}")
    if kind == ResourceType.BROKER_LOGGER and name != node_id:
        return _refused(resource, f"Unexpected broker id, expected {node_id} but received {name}")
    if kind in (ResourceType.CLIENT_METRICS, ResourceType.GROUP) and not name:
        return _refused(resource, "the name must not be empty")
    configs: tuple[DescribeConfigsResourceResult, ...] = ()
    if kind == ResourceType.TOPIC:
        configs = _of_topic(resource, request, context)
    if kind == ResourceType.GROUP:
        configs = _of_group(resource, request, context)
    if kind == ResourceType.BROKER and name:  # without a name: what is set for all brokers at run time
        wanted = resource.configuration_keys
        found = broker_configs(connection, context)
        configs = tuple(_of_broker(one, request) for one in found if not wanted or one.name in wanted)
    return DescribeConfigsResult(resource_type=kind, resource_name=name, configs=configs)


def topic_names(context: Context) -> frozenset[str]:
    """Of all topics that there are settings of."""
    own = () if context.local_tier is None else context.local_tier.topics()
    return frozenset((*context.logs.names(), *own))


def _of_topic(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: Context
) -> tuple[DescribeConfigsResourceResult, ...]:
    """The settings of a topic in a log directory of our own."""
    tier = context.local_tier
    topic = None if tier is None else tier.topics().get(resource.resource_name)
    if tier is None or topic is None:
        return ()
    wanted = resource.configuration_keys
    found = topic_configs(resource.resource_name, topic.config, tier)
    return tuple(_of_log(one, request) for one in found if not wanted or one.name in wanted)


def _of_log(one: TopicConfig, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    own = ((one.source, one.value),) if one.source == DYNAMIC_TOPIC else ()
    of_broker = BROKER_NAMES.get(one.name, one.name)
    defaults = tuple(DescribeConfigsSynonym(of_broker, value, source) for source, value in one.defaults)
    synonyms = (*(DescribeConfigsSynonym(one.name, value, source) for source, value in own), *defaults)
    return DescribeConfigsResourceResult(
        one.name, one.value, config_source=one.source, synonyms=synonyms if request.include_synonyms else (), config_type=one.type
    )


def _of_group(
    resource: DescribeConfigsResource, request: DescribeConfigsRequest, context: Context
) -> tuple[DescribeConfigsResourceResult, ...]:
    """The settings that count for a group: its own before those of the broker."""
    own, wanted = context.groups.configs.own(resource.resource_name), resource.configuration_keys or GROUP_SETTINGS
    found = []
    for name in filter(wanted.__contains__, GROUP_SETTINGS):
        of_broker = endpoint_config(GROUP_SETTINGS[name].of_broker, context)
        one = replace(of_broker, name=name)
        if name in own:
            synonyms = ((name, own[name], DYNAMIC_GROUP), *of_broker.synonyms)
            one = replace(one, value=own[name], source=DYNAMIC_GROUP, synonyms=synonyms)
        found.append(replace(_of_broker(one, request), read_only=False))
    return tuple(found)


def _refused(resource: DescribeConfigsResource, reason: str) -> DescribeConfigsResult:
    return DescribeConfigsResult(ErrorCode.INVALID_REQUEST, reason, resource.resource_type, resource.resource_name)


def _of_broker(one: BrokerConfig, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = (DescribeConfigsSynonym(*synonym) for synonym in one.synonyms) if request.include_synonyms else ()
    return DescribeConfigsResourceResult(
        name=one.name,
        value=one.value,
        read_only=True,
        config_source=one.source,
        synonyms=tuple(synonyms),
        config_type=one.type,
        documentation=one.help if request.include_documentation else None,
    )
