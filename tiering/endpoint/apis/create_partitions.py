"""CreatePartitions (Kafka's ReplicationControlManager)."""

from collections import Counter

from local_log.errors import LogError
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import COORDINATORS_TOPICS, Context
from tiering.endpoint.apis.create_topics import problem_of_brokers
from tiering.endpoint.apis.own_logs import check_room, own_tier, refusal_code
from tiering.endpoint.authorization.acls import Operation, ResourceType
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from tiering.endpoint.request_context import RequestContext
from tiering.local_tier.topics import more_partitions

_Problem = tuple[ErrorCode, str]


def create_partitions(
    request: CreatePartitionsRequest, request_context: RequestContext, context: Context
) -> CreatePartitionsResponse:
    """More partitions of each topic that nothing is wrong with, or only whether there could be."""
    own_tier(context)
    times = Counter(one.name for one in request.topics)

    def created(topic: CreatePartitionsTopic) -> CreatePartitionsTopicResult:
        if times[topic.name] > 1:
            problem: _Problem | None = (ErrorCode.INVALID_REQUEST, "the request has this topic more than once")
        elif not is_authorized(context, request_context, Operation.ALTER, ResourceType.TOPIC, topic.name):
            return CreatePartitionsTopicResult(topic.name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            problem = _problem(topic, context) or _made(topic, context, validate_only=request.validate_only)
        code, message = problem or (ErrorCode.NONE, None)
        return CreatePartitionsTopicResult(topic.name, code, message)

    topics = {one.name: one for one in request.topics}
    return CreatePartitionsResponse(results=tuple(map(created, topics.values())))


def _problem(topic: CreatePartitionsTopic, context: Context) -> _Problem | None:
    known = own_tier(context).topics().get(topic.name)
    if known is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic.name}"
    more = topic.count - len(known.partitions)
    if more < 0 or (more == 0 and not known.being_made):
        return ErrorCode.INVALID_PARTITIONS, f"topic {topic.name} has {len(known.partitions)} partitions: give more"
    if topic.name in COORDINATORS_TOPICS:
        return ErrorCode.POLICY_VIOLATION, f"{topic.name} keeps its partitions: by their number groups and transactions are found"
    if topic.assignments is None:
        return None
    if len(topic.assignments) != more and not known.being_made:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{more} more partitions, and brokers of {len(topic.assignments)}"
    problems = (problem_of_brokers(one.broker_ids, context) for one in topic.assignments)
    problem = next(filter(None, problems), None)
    return None if problem is None else (ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)


def _made(topic: CreatePartitionsTopic, context: Context, *, validate_only: bool) -> _Problem | None:
    tier = own_tier(context)
    try:
        if validate_only:
            more_partitions(topic.name, tier.topic(topic.name), topic.count)
        else:
            check_room(context)
            tier.create_partitions(topic.name, topic.count)
    except LogError as e:
        return refusal_code(e, f"topic {topic.name} gets no more partitions", context), str(e)
    return None
