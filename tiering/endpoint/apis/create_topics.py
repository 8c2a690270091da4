"""CreateTopics (Kafka's ControllerApis and ReplicationControlManager): this broker is the only one, so it has all replicas."""

from collections import Counter
from collections.abc import Mapping

from local_log.errors import LogError
from local_log.formats.filenames import CLUSTER_METADATA_TOPIC
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.own_logs import check_room, config_with, is_known_broker, own_tier, refusal_code
from tiering.endpoint.apis.topic_configs import topic_configs
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tiering.endpoint.request_context import RequestContext
from tiering.endpoint.settings import NUM_PARTITIONS
from tiering.local_tier.topics import check_name, more_partitions

_DEFAULT = -1
_Problem = tuple[ErrorCode, str]


def create_topics(request: CreateTopicsRequest, request_context: RequestContext, context: Context) -> CreateTopicsResponse:
    """Creates each topic that nothing is wrong with, or says of each whether it could be."""
    own_tier(context)
    times = Counter(one.name for one in request.topics)
    everything = is_authorized(context, request_context, Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, is_told=False)
    topics = {one.name: one for one in request.topics}

    def created(topic: CreatableTopic) -> CreatableTopicResult:
        name = topic.name
        if times[name] > 1:
            return _refused(name, ErrorCode.INVALID_REQUEST, "the request has this topic more than once")
        if name == CLUSTER_METADATA_TOPIC:
            return _refused(name, ErrorCode.INVALID_REQUEST, f"{name} is for controllers alone")
        if not (everything or is_authorized(context, request_context, Operation.CREATE, ResourceType.TOPIC, name)):
            return _refused(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, "the principal may not create this topic")
        shows = is_authorized(context, request_context, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name, is_told=False)
        return _created(topic, context, shows=shows, validate_only=request.validate_only)

    return CreateTopicsResponse(topics=tuple(map(created, topics.values())))


def _created(topic: CreatableTopic, context: Context, *, shows: bool, validate_only: bool) -> CreatableTopicResult:
    tier, name, topic_id = own_tier(context), topic.name, ZERO_TOPIC_ID
    own = {one.name: one.value or "" for one in topic.configs}
    try:
        check_name(name, tier.topics())
        problem = _problem_of_nulls(topic)
        if problem is None:
            config_with(name, own, tier)
            problem = _problem(topic, context)
        if problem is not None:
            return _refused(name, *problem)
        count = _count(topic, context)
        if validate_only:
            more_partitions(name, None, count)
        else:
            check_room(context)
            topic_id = tier.create_topic(name, count, own).topic_id or ZERO_TOPIC_ID
        return _result(name, topic_id, count, own, context, shows=shows)
    except LogError as e:
        return _refused(name, refusal_code(e, f"topic {name} is not created", context), str(e))


def _result(
    name: str, topic_id: str, count: int, own: Mapping[str, str], context: Context, *, shows: bool
) -> CreatableTopicResult:
    if not shows:
        return CreatableTopicResult(name, topic_id, topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    found = topic_configs(name, own, own_tier(context))
    configs = tuple(CreatableTopicConfigs(one.name, one.value, config_source=one.source) for one in found)
    return CreatableTopicResult(name, topic_id, num_partitions=count, replication_factor=1, configs=configs)


def _refused(name: str, code: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=code, error_message=message)


def _count(topic: CreatableTopic, context: Context) -> int:
    if topic.assignments:
        return len(topic.assignments)
    return int(context.settings[NUM_PARTITIONS]) if topic.num_partitions == _DEFAULT else topic.num_partitions


def _problem_of_nulls(topic: CreatableTopic) -> _Problem | None:
    nulls = [one.name for one in topic.configs if one.value is None]
    return (ErrorCode.INVALID_CONFIG, f"null is no value of {', '.join(nulls)}") if nulls else None


def _problem(topic: CreatableTopic, context: Context) -> _Problem | None:
    factor, count = topic.replication_factor, topic.num_partitions
    if topic.assignments:
        if factor != _DEFAULT or count != _DEFAULT:
            return ErrorCode.INVALID_REQUEST, "with the brokers of each partition, give -1 for both numbers"
        return _problem_of(topic.assignments, context)
    if factor == 0 or factor < _DEFAULT:
        return ErrorCode.INVALID_REPLICATION_FACTOR, f"a replication factor of {factor}: give 1, or -1 for the default"
    if count == 0 or count < _DEFAULT:
        return ErrorCode.INVALID_PARTITIONS, f"{count} partitions: give 1 or more, or -1 for the default"
    if factor > 1:
        return ErrorCode.INVALID_REPLICATION_FACTOR, f"a replication factor of {factor}: there is one broker here, so give 1"
    return None


def _problem_of(assignments: tuple[CreatableReplicaAssignment, ...], context: Context) -> _Problem | None:
    wrong, numbers = ErrorCode.INVALID_REPLICA_ASSIGNMENT, [one.partition_index for one in assignments]
    for one in assignments:
        problem = problem_of_brokers(one.broker_ids, context)
        if problem is not None:
            return wrong, f"partition {one.partition_index}: {problem}"
    if sorted(numbers) != list(range(len(numbers))):
        return wrong, "the partitions are not numbered from 0 on, each once"
    return None


def problem_of_brokers(broker_ids: tuple[int, ...], context: Context) -> str | None:
    """What is wrong with the brokers that a partition is to be on."""
    if not broker_ids:
        return "no broker is named"
    unknown = [one for one in broker_ids if not is_known_broker(one, context)]
    if unknown:
        return f"there is no broker {unknown[0]}"
    return "a broker is named twice" if len(broker_ids) > 1 else None
