"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: groups of KIP-848."""

from dataclasses import replace
from functools import partial

from tiering.endpoint.apis.auth_helper import authorized_operations, is_authorized
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.find_coordinator import check_coordinator
from tiering.endpoint.authorization.acls import Operation, ResourceType
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.joining import Client
from tiering.endpoint.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedConsumerGroup,
)
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tiering.endpoint.request_context import RequestContext


def consumer_group_heartbeat(
    request: ConsumerGroupHeartbeatRequest, request_context: RequestContext, context: Context
) -> ConsumerGroupHeartbeatResponse:
    """The member's epoch, and its partitions if they have changed."""
    client = Client(request_context.client_id, f"/{request_context.client_address}", request_context.version)
    may_describe = partial(is_authorized, context, request_context, Operation.DESCRIBE, ResourceType.TOPIC, is_told=False)
    try:
        if request.group_id:
            check_coordinator(request.group_id, context)
        return context.groups.consumer_group_heartbeat(request, client, may_describe)
    except GroupError as e:
        return ConsumerGroupHeartbeatResponse(error_code=e.code, error_message=e.message)


def consumer_group_describe(
    request: ConsumerGroupDescribeRequest, request_context: RequestContext, context: Context
) -> ConsumerGroupDescribeResponse:
    """Groups with their members. One that is named several times is described once, and told as often."""
    found: dict[str, DescribedConsumerGroup] = {}
    for group_id in dict.fromkeys(request.group_ids):
        try:
            check_coordinator(group_id, context)
            described = context.groups.describe_consumer_group(group_id)
            if request.include_authorized_operations and not described.error_code:
                operations = authorized_operations(context, request_context, ResourceType.GROUP, group_id)
                described = replace(described, authorized_operations=operations)
            found[group_id] = described
        except GroupError as e:
            found[group_id] = DescribedConsumerGroup(e.code, e.message, group_id)
    return ConsumerGroupDescribeResponse(groups=tuple(map(found.__getitem__, request.group_ids)))
