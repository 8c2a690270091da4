"""Creates a topic when a client first asks for its metadata (Kafka's AutoTopicCreationManager).

The client that asked is told that there is no such topic, as by a broker, and asks again.
"""

from local_log.errors import Invalid, LogError
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import INTERNAL_TOPICS, Context, unknown_topic
from tiering.endpoint.apis.own_logs import check_room
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.request_context import RequestContext
from tiering.endpoint.settings import AUTO_CREATE_TOPICS, NUM_PARTITIONS


def create_if_allowed(name: str, request_context: RequestContext, context: Context) -> ErrorCode | None:
    """Creates a topic that is not there; gives what the client is told. None where topics are not created in this way."""
    tier, settings = context.local_tier, context.settings
    if tier is None or not settings[AUTO_CREATE_TOPICS]:
        return None
    cluster = (Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME)
    if not (
        is_authorized(context, request_context, *cluster, is_told=False)
        or is_authorized(context, request_context, Operation.CREATE, ResourceType.TOPIC, name)
    ):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if name not in INTERNAL_TOPICS:  # whose coordinators create them
        try:
            check_room(context)
            tier.create_topic(name, settings[NUM_PARTITIONS])
        except Invalid:
            pass  # it is no name of a topic, too much like another one, or another client was faster
        except LogError as e:
            context.report(f"topic {name} cannot be created: {e}")
    return unknown_topic(name)
