"""DeleteTopics, by name or by id (Kafka's ControllerApis). What is archived of a topic stays in the archive.

What groups have committed of it is forgotten: a topic that is created with its name later has nothing of it.
"""

from collections import Counter

from local_log.errors import LogError
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import COORDINATORS_TOPICS, Context
from tiering.endpoint.apis.own_logs import own_tier, refusal_code
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tiering.endpoint.request_context import RequestContext

_NAMED_UNTIL = 5
_Problem = tuple[ErrorCode, str]


def delete_topics(request: DeleteTopicsRequest, request_context: RequestContext, context: Context) -> DeleteTopicsResponse:
    """Deletes each topic that the client may delete; of one that is named twice it says so."""
    tier = own_tier(context)
    is_named = request_context.version <= _NAMED_UNTIL
    asked = tuple(map(DeleteTopicState, request.topic_names)) if is_named else request.topics
    of_topic = {one: tier.name_of(one.topic_id) if one.name is None else one.name for one in asked}
    times, twice = Counter(asked), Counter(of_topic[one] for one in dict.fromkeys(asked))

    def deleted(one: DeleteTopicState) -> DeletableTopicResult:
        problem = _problem_of(one, times[one])
        if problem is not None:
            return _result(one, *problem)
        name = of_topic[one]
        return _deleted(one, name, request_context, context, is_twice=name is not None and twice[name] > 1)

    return DeleteTopicsResponse(responses=tuple(deleted(one) for one in dict.fromkeys(asked)))


def _problem_of(one: DeleteTopicState, times: int) -> _Problem | None:
    has_id = one.topic_id != ZERO_TOPIC_ID
    if one.name is None and not has_id:
        return ErrorCode.INVALID_REQUEST, "neither a name nor an id of a topic is given"
    if one.name is not None and has_id:
        return ErrorCode.INVALID_REQUEST, "give a topic's name or its id, and not both"
    return (ErrorCode.INVALID_REQUEST, "the request has this topic more than once") if times > 1 else None


def _result(one: DeleteTopicState, code: ErrorCode, message: str | None = None) -> DeletableTopicResult:
    return DeletableTopicResult(one.name, one.topic_id, code, message)


def _deleted(
    one: DeleteTopicState, name: str | None, request_context: RequestContext, context: Context, *, is_twice: bool
) -> DeletableTopicResult:
    if name is None:
        return _result(one, ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic with the id {one.topic_id}")
    tier, failed = own_tier(context), ErrorCode.TOPIC_AUTHORIZATION_FAILED
    may_all = is_authorized(context, request_context, Operation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME, is_told=False)

    def may(operation: Operation) -> bool:
        return may_all or is_authorized(context, request_context, operation, ResourceType.TOPIC, name)

    if not may(Operation.DESCRIBE):
        return _result(one, failed, "the principal may not delete this topic")
    known = tier.topics().get(name)
    if known is None:
        return _result(one, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    if not may(Operation.DELETE):
        shown = one if one.name is not None else DeleteTopicState(name, one.topic_id)
        return _result(shown, failed, "the principal may not delete this topic")
    answer = DeleteTopicState(name, known.topic_id or ZERO_TOPIC_ID)
    if is_twice:
        return _result(answer, ErrorCode.INVALID_REQUEST, "the request has this topic by its name and by its id")
    if name in COORDINATORS_TOPICS:
        return _result(answer, ErrorCode.POLICY_VIOLATION, f"{name} has groups or transactions that are under way: delete those")
    try:
        tier.delete_topic(name)
    except LogError as e:
        return _result(answer, refusal_code(e, f"topic {name} is not deleted", context), str(e))
    context.groups.forget_topic(name, answer.topic_id)
    return _result(answer, ErrorCode.NONE)
