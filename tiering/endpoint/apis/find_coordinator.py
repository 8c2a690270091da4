"""FindCoordinator: the broker that coordinates a group is the one that leads its partition of `__consumer_offsets`."""

from typing import Final

from tiering.endpoint.apis.context import Context
from tiering.endpoint.brokers.live_brokers import Broker
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.offsets_log import NAME
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from tiering.endpoint.request_context import RequestContext

GROUP, TRANSACTION = 0, 1
"""The types of keys that are answered for; 2 is a partition of a share group."""
_SEVERAL_KEYS_SINCE = 4
_NO_NODE: Final = -1
_NO_TRANSACTIONS: Final = "this endpoint reads an archive and has no transactions: use the brokers that own the topics"


def find_coordinator(
    request: FindCoordinatorRequest, request_context: RequestContext, context: Context
) -> FindCoordinatorResponse:
    """The coordinator of each key."""
    if request_context.version >= _SEVERAL_KEYS_SINCE:
        found = tuple(_coordinator(key, request.key_type, context) for key in request.coordinator_keys)
        return FindCoordinatorResponse(coordinators=found)
    one = _coordinator(request.key, request.key_type, context)
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message or "NONE",
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


def _coordinator(key: str, key_type: int, context: Context) -> Coordinator:
    if key_type == GROUP:
        broker = coordinator_of(key, context)
        return Coordinator(key, broker.node_id, broker.host, broker.port, error_message="")
    if key_type == TRANSACTION and context.transactions is not None:
        live = context.cluster.live
        own = next(broker for broker in live.brokers if broker.node_id == live.node_id)
        return Coordinator(key, own.node_id, own.host, own.port, error_message="")
    if key_type == TRANSACTION:
        # Of all errors this is one that producers do not wait for to go away; they print the message.
        return Coordinator(key, _NO_NODE, port=_NO_NODE, error_code=ErrorCode.POLICY_VIOLATION, error_message=_NO_TRANSACTIONS)
    return Coordinator(key, _NO_NODE, port=_NO_NODE, error_code=ErrorCode.INVALID_REQUEST, error_message=f"key type {key_type}")


def coordinator_of(group: str, context: Context) -> Broker:
    """The broker that coordinates a group: the same on every broker that sees the same ones alive."""
    live = context.cluster.live
    node_id = _coordinates(group, context)
    return next(broker for broker in live.brokers if broker.node_id == node_id)


def check_coordinator(group: str, context: Context) -> None:
    """Raises GroupError if another broker coordinates the group."""
    if _coordinates(group, context) != context.cluster.live.node_id:
        raise GroupError(ErrorCode.NOT_COORDINATOR)


def _coordinates(group: str, context: Context) -> int:
    return context.cluster.live.leader_of(NAME, context.groups.partition_for(group))
