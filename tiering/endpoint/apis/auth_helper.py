"""What the client of a request may do (Kafka's AuthHelper); everything where there is no authorizer."""

from collections.abc import Iterable
from typing import Final

from tiering.endpoint.apis.context import Context
from tiering.endpoint.authorization.acls import Operation, ResourceType
from tiering.endpoint.request_context import RequestContext

NOT_AUTHORIZED: Final = "the principal may not do this to the cluster"
NOT_ASKED: Final = -(1 << 31)
"""Where nobody asked for the operations."""

_TYPE_NAMES: Final = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "TransactionalId",
}
"""As Kafka's SecurityUtils writes them."""

_OF_TOPICS: Final = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DESCRIBE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_OF_CLUSTER: Final = (
    Operation.CREATE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.ALTER,
    Operation.IDEMPOTENT_WRITE,
    Operation.DESCRIBE,
)
_OF_GROUPS: Final = (
    Operation.READ,
    Operation.DESCRIBE,
    Operation.DELETE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_SUPPORTED: Final = {ResourceType.TOPIC: _OF_TOPICS, ResourceType.CLUSTER: _OF_CLUSTER, ResourceType.GROUP: _OF_GROUPS}


def is_authorized(
    context: Context, request_context: RequestContext, operation: Operation, of: ResourceType, name: str, *, is_told: bool = True
) -> bool:
    """Whether the client may do this to the resource.

    If not it is told to the audit, unless the client has not asked for it: where it lists what there is, or what it may do.
    """
    authorizer, client = context.authorizer, request_context
    if authorizer is None or authorizer.authorize(client.principal, client.client_address, operation, of, name):
        return True
    if is_told:
        context.metrics.denied.add(operation.name, of.name)
        context.audit(
            f"Principal = {client.principal} is Denied operation = {operation.name} from host = {client.client_address} "
            f"on resource = {_TYPE_NAMES.get(of, of.name)}:LITERAL:{name} for request = {client.header.api.name}"
        )
    return False


def tell_changes(context: Context, request_context: RequestContext, changes: Iterable[str]) -> None:
    """Tells whoever runs the endpoint what a client has changed of users, ACLs or quotas: one message for a request."""
    told = "; ".join(changes)
    if told:
        client = request_context
        context.report(f"Principal = {client.principal} from host = {client.client_address} by {client.header.api.name}: {told}")


def authorized_operations(context: Context, request_context: RequestContext, of: ResourceType, name: str) -> int:
    """A bit for each operation that the client may do to the topic, group or cluster."""
    return sum(1 << one for one in _SUPPORTED[of] if is_authorized(context, request_context, one, of, name, is_told=False))
