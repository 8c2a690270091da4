"""ListConfigResources: what there are settings of."""

from typing import Final

from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.configs import ResourceType as ConfigResourceType
from tiering.endpoint.apis.configs import topic_names
from tiering.endpoint.apis.context import Context
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from tiering.endpoint.request_context import RequestContext

_TYPES_SINCE: Final = 1
_OF_CLIENT_METRICS: Final = frozenset({ConfigResourceType.CLIENT_METRICS})


def list_config_resources(
    request: ListConfigResourcesRequest, request_context: RequestContext, context: Context
) -> ListConfigResourcesResponse:
    """Topics, groups with settings of their own, and brokers twice: also for their loggers. Metrics of clients there are none."""
    if not is_authorized(context, request_context, Operation.DESCRIBE_CONFIGS, ResourceType.CLUSTER, CLUSTER_NAME):
        return ListConfigResourcesResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    known = frozenset(ConfigResourceType) if request_context.version >= _TYPES_SINCE else _OF_CLIENT_METRICS
    wanted = frozenset(request.resource_types) or known
    if wanted - known:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    brokers = [str(one.node_id) for one in context.cluster.live.brokers]
    named = {
        ConfigResourceType.GROUP: list(context.groups.configs.groups()),
        ConfigResourceType.BROKER_LOGGER: brokers,
        ConfigResourceType.BROKER: brokers,
    }
    if ConfigResourceType.TOPIC in wanted:
        named[ConfigResourceType.TOPIC] = sorted(topic_names(context))
    found = (ConfigResource(name, kind) for kind, names in named.items() if kind in wanted for name in names)
    return ListConfigResourcesResponse(config_resources=tuple(found))
