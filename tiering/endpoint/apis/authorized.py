"""What of a request its client may ask, by the operations and error codes of Kafka's KafkaApis.

The topics that a client may not ask about are taken out of the request before it is answered, and are answered with
TOPIC_AUTHORIZATION_FAILED. Metadata, DescribeTopicPartitions and Fetch do the same themselves, since they may be asked for all
topics, and for those of a session.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from local_log.formats.filenames import is_topic_name
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.authorized_groups import GROUP_RULES, Answer, Rule
from tiering.endpoint.apis.configs import ResourceType as ConfigResourceType
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.later import then
from tiering.endpoint.apis.produce import refusal_of, refused
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.protocol.api_keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    ALTER_CLIENT_QUOTAS,
    ALTER_CONFIGS,
    ALTER_PARTITION_REASSIGNMENTS,
    ALTER_REPLICA_LOG_DIRS,
    ALTER_USER_SCRAM_CREDENTIALS,
    API_VERSIONS,
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_RECORDS,
    DELETE_TOPICS,
    DESCRIBE_ACLS,
    DESCRIBE_CLIENT_QUOTAS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TOPIC_PARTITIONS,
    DESCRIBE_TRANSACTIONS,
    DESCRIBE_USER_SCRAM_CREDENTIALS,
    ELECT_LEADERS,
    END_TXN,
    FETCH,
    FIND_COORDINATOR,
    INCREMENTAL_ALTER_CONFIGS,
    INIT_PRODUCER_ID,
    LIST_CONFIG_RESOURCES,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    NEVER,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    TXN_OFFSET_COMMIT,
    UPDATE_FEATURES,
    WRITE_TXN_MARKERS,
)
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.protocol.messages.describe_configs import DescribeConfigsResult
from tiering.endpoint.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from tiering.endpoint.protocol.messages.describe_producers import PartitionResponse, TopicResponse
from tiering.endpoint.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsTopicResponse
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tiering.endpoint.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tiering.endpoint.protocol.messages.offset_for_leader_epoch import EpochEndOffset, OffsetForLeaderTopicResult
from tiering.endpoint.request_context import RequestContext

_TOPIC_FAILED: Final = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_GROUP_FAILED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED
_IDS_SINCE: Final = {OFFSET_COMMIT.key: 10, OFFSET_FETCH.key: 10, PRODUCE.key: 13}
"""The versions since which topics have ids instead of names."""
_GROUPS_SINCE, _SEVERAL_KEYS_SINCE, _ERROR_SINCE = 8, 4, 2
_DECIDED: Final = "topics"
_NO_NODE: Final = -1
_NO_OFFSET: Final = -1


def authorized(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    """The answer to what the client may ask, and errors for the rest. Raises InvalidRequest."""
    if context.authorizer is None:
        return answer(message, request_context, context)
    rule = RULES.get(request_context.header.api.key, _of_brokers)
    return rule(answer, message, request_context, context)


def _open(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    """Everybody may ask, or the answer has what the client may know."""
    return answer(message, request_context, context)


def _of_brokers(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    """What no rule is for is only for those who may do all to the cluster."""
    if not is_authorized(context, request_context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise InvalidRequest(f"{request_context.principal} may not send {request_context.header.api.name} requests")
    return answer(message, request_context, context)


def _split(topics: Any, operation: Operation, request_context: RequestContext, context: Context) -> tuple[Any, Any]:
    """The topics that the client may ask about, and the others."""

    has_ids = request_context.version >= _IDS_SINCE.get(request_context.header.api.key, NEVER)

    def may(topic: Any) -> bool:
        name = topic.topic if hasattr(topic, "topic") else topic.name
        if has_ids:
            name = name or _name_of(topic.topic_id, context)
        return name is None or is_authorized(context, request_context, operation, ResourceType.TOPIC, name)

    context.logs.open_by_id(topic.topic_id for topic in topics if getattr(topic, "topic_id", ZERO_TOPIC_ID) != ZERO_TOPIC_ID)
    decided = [(topic, may(topic)) for topic in topics]
    return tuple(topic for topic, is_allowed in decided if is_allowed), tuple(t for t, is_allowed in decided if not is_allowed)


def _name_of(topic_id: str, context: Context) -> str | None:
    own = None if context.local_tier is None else context.local_tier.name_of(topic_id)
    return own or context.logs.name_of(topic_id)


def _may_use(operation: Operation, group: str, request_context: RequestContext, context: Context) -> bool:
    return is_authorized(context, request_context, operation, ResourceType.GROUP, group)


def _list_offsets(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    allowed, others = _split(message.topics, Operation.DESCRIBE, request_context, context)
    found = answer(replace(message, topics=allowed), request_context, context)
    refused = (
        ListOffsetsTopicResponse(
            one.name, tuple(ListOffsetsPartitionResponse(p.partition_index, _TOPIC_FAILED) for p in one.partitions)
        )
        for one in others
    )
    return replace(found, topics=(*found.topics, *refused))


def _offset_for_leader_epoch(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    if is_authorized(context, request_context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME, is_told=False):
        return answer(message, request_context, context)
    allowed, others = _split(message.topics, Operation.DESCRIBE, request_context, context)
    found = answer(replace(message, topics=allowed), request_context, context)
    refused = (
        OffsetForLeaderTopicResult(one.topic, tuple(EpochEndOffset(_TOPIC_FAILED, p.partition) for p in one.partitions))
        for one in others
    )
    return replace(found, topics=(*found.topics, *refused))


def _produce(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    refusal = refusal_of(message, request_context, context)
    if refusal is not None:
        return refusal
    decided = request_context.done.get(_DECIDED)  # what is denied is told to the audit once
    if decided is None:
        decided = request_context.done[_DECIDED] = _split(message.topic_data, Operation.WRITE, request_context, context)
    allowed, others = decided
    hidden = tuple(refused(one, _TOPIC_FAILED) for one in others)
    found = answer(replace(message, topic_data=allowed), request_context, context)
    return then(found, lambda response: replace(response, responses=(*response.responses, *hidden)))


def _offset_commit(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    def refused(topic: Any, code: ErrorCode) -> OffsetCommitResponseTopic:
        partitions = tuple(OffsetCommitResponsePartition(one.partition_index, code) for one in topic.partitions)
        return OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions)

    if not _may_use(Operation.READ, message.group_id, request_context, context):
        return OffsetCommitResponse(topics=tuple(refused(topic, _GROUP_FAILED) for topic in message.topics))
    allowed, others = _split(message.topics, Operation.READ, request_context, context)
    found = answer(replace(message, topics=allowed), request_context, context)
    denied = tuple(refused(topic, _TOPIC_FAILED) for topic in others)
    return then(found, lambda told: replace(told, topics=(*told.topics, *denied)))


def _offset_delete(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    if not _may_use(Operation.DELETE, message.group_id, request_context, context):
        return OffsetDeleteResponse(_GROUP_FAILED)
    allowed, others = _split(message.topics, Operation.READ, request_context, context)
    found = answer(replace(message, topics=allowed), request_context, context)
    refused = (
        OffsetDeleteResponseTopic(
            one.name, tuple(OffsetDeleteResponsePartition(p.partition_index, _TOPIC_FAILED) for p in one.partitions)
        )
        for one in others
    )
    return found if found.error_code else replace(found, topics=(*found.topics, *refused))


def _offset_fetch(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    if request_context.version < _GROUPS_SINCE:
        return _offset_fetch_of_one(answer, message, request_context, context)
    allowed, refused, others = [], [], {}
    for group in message.groups:
        if not _may_use(Operation.DESCRIBE, group.group_id, request_context, context):
            refused.append(OffsetFetchResponseGroup(group.group_id, error_code=_GROUP_FAILED))
            continue
        topics, others[group.group_id] = _split(group.topics or (), Operation.DESCRIBE, request_context, context)
        allowed.append(group if group.topics is None else replace(group, topics=topics))
    found = answer(replace(message, groups=tuple(allowed)), request_context, context)
    groups = []
    for group in found.groups:
        shown, _ = _split(group.topics, Operation.DESCRIBE, request_context, context)
        hidden = () if group.error_code else (_hidden(topic) for topic in others[group.group_id])
        groups.append(replace(group, topics=(*shown, *hidden)))
    return replace(found, groups=(*groups, *refused))


def _hidden(topic: Any) -> OffsetFetchResponseTopics:
    numbers = topic.partition_indexes
    partitions = (OffsetFetchResponsePartitions(n, _NO_OFFSET, metadata="", error_code=_TOPIC_FAILED) for n in numbers)
    return OffsetFetchResponseTopics(topic.name, topic.topic_id, tuple(partitions))


def _offset_fetch_of_one(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    def refused(topic: Any, code: ErrorCode) -> OffsetFetchResponseTopic:
        numbers = topic.partition_indexes
        partitions = (OffsetFetchResponsePartition(n, _NO_OFFSET, metadata="", error_code=code) for n in numbers)
        return OffsetFetchResponseTopic(topic.name, tuple(partitions))

    if not _may_use(Operation.DESCRIBE, message.group_id, request_context, context):
        topics = () if request_context.version >= _ERROR_SINCE else message.topics or ()
        return OffsetFetchResponse(topics=tuple(refused(one, _GROUP_FAILED) for one in topics), error_code=_GROUP_FAILED)
    allowed, others = _split(message.topics or (), Operation.DESCRIBE, request_context, context)
    asked = message if message.topics is None else replace(message, topics=allowed)
    found = answer(asked, request_context, context)
    shown, _ = _split(found.topics, Operation.DESCRIBE, request_context, context)
    return replace(found, topics=(*shown, *(refused(topic, _TOPIC_FAILED) for topic in others)))


def _describe_configs(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    topic, group = (ResourceType.TOPIC, _TOPIC_FAILED), (ResourceType.GROUP, _GROUP_FAILED)
    if any(one.resource_type not in set(ConfigResourceType) for one in message.resources):
        return answer(message, request_context, context)  # which refuses all of it
    kinds = {ConfigResourceType.TOPIC: topic, ConfigResourceType.GROUP: group}
    allowed, refused = [], []
    for resource in message.resources:
        of, code = kinds.get(resource.resource_type, (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED))
        name = CLUSTER_NAME if of is ResourceType.CLUSTER else resource.resource_name
        if is_authorized(context, request_context, Operation.DESCRIBE_CONFIGS, of, name):
            allowed.append(resource)
        else:
            refused.append(DescribeConfigsResult(code, None, resource.resource_type, resource.resource_name))
    found = answer(replace(message, resources=tuple(allowed)), request_context, context)
    return replace(found, results=(*found.results, *refused))


def _find_coordinator(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    kinds = {
        0: (ResourceType.GROUP, _GROUP_FAILED),
        1: (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
    }
    if message.key_type not in kinds:
        return answer(message, request_context, context)
    of, code = kinds[message.key_type]

    def may(key: str) -> bool:
        return is_authorized(context, request_context, Operation.DESCRIBE, of, key)

    if request_context.version < _SEVERAL_KEYS_SINCE:
        refused = FindCoordinatorResponse(error_code=code, node_id=_NO_NODE, port=_NO_NODE)
        return answer(message, request_context, context) if may(message.key) else refused
    keys = frozenset(filter(may, message.coordinator_keys))
    asked = tuple(key for key in message.coordinator_keys if key in keys)
    found = answer(replace(message, coordinator_keys=asked), request_context, context)
    others = (Coordinator(k, _NO_NODE, port=_NO_NODE, error_code=code) for k in message.coordinator_keys if k not in keys)
    return replace(found, coordinators=(*found.coordinators, *others))


def _describe_log_dirs(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    if is_authorized(context, request_context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return answer(message, request_context, context)
    return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _describe_producers(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    named = tuple(one for one in message.topics if is_topic_name(one.name))
    wrong = tuple(one for one in message.topics if not is_topic_name(one.name))  # it is told of them that their names are
    allowed, others = _split(named, Operation.READ, request_context, context)
    found = answer(replace(message, topics=(*wrong, *allowed)), request_context, context)
    refused = (
        TopicResponse(one.name, tuple(PartitionResponse(number, _TOPIC_FAILED) for number in one.partition_indexes))
        for one in others
    )
    return replace(found, topics=(*found.topics, *refused))


RULES: Final[Mapping[int, Rule]] = {
    PRODUCE.key: _produce,
    FETCH.key: _open,
    LIST_OFFSETS.key: _list_offsets,
    METADATA.key: _open,
    OFFSET_COMMIT.key: _offset_commit,
    OFFSET_FETCH.key: _offset_fetch,
    FIND_COORDINATOR.key: _find_coordinator,
    SASL_HANDSHAKE.key: _open,
    API_VERSIONS.key: _open,
    OFFSET_FOR_LEADER_EPOCH.key: _offset_for_leader_epoch,
    CREATE_TOPICS.key: _open,
    DELETE_TOPICS.key: _open,
    DELETE_RECORDS.key: _open,
    ALTER_CONFIGS.key: _open,
    CREATE_PARTITIONS.key: _open,
    INCREMENTAL_ALTER_CONFIGS.key: _open,
    DESCRIBE_ACLS.key: _open,
    CREATE_ACLS.key: _open,
    DELETE_ACLS.key: _open,
    DESCRIBE_CONFIGS.key: _describe_configs,
    DESCRIBE_LOG_DIRS.key: _describe_log_dirs,
    DESCRIBE_PRODUCERS.key: _describe_producers,
    SASL_AUTHENTICATE.key: _open,
    OFFSET_DELETE.key: _offset_delete,
    DESCRIBE_CLIENT_QUOTAS.key: _open,
    ALTER_CLIENT_QUOTAS.key: _open,
    DESCRIBE_USER_SCRAM_CREDENTIALS.key: _open,
    ALTER_USER_SCRAM_CREDENTIALS.key: _open,
    DESCRIBE_CLUSTER.key: _open,
    DESCRIBE_TOPIC_PARTITIONS.key: _open,
    ADD_OFFSETS_TO_TXN.key: _open,
    ADD_PARTITIONS_TO_TXN.key: _open,
    DESCRIBE_TRANSACTIONS.key: _open,
    END_TXN.key: _open,
    INIT_PRODUCER_ID.key: _open,
    LIST_TRANSACTIONS.key: _open,
    TXN_OFFSET_COMMIT.key: _open,
    WRITE_TXN_MARKERS.key: _open,
    ALTER_REPLICA_LOG_DIRS.key: _open,
    ELECT_LEADERS.key: _open,
    ALTER_PARTITION_REASSIGNMENTS.key: _open,
    LIST_PARTITION_REASSIGNMENTS.key: _open,
    UPDATE_FEATURES.key: _open,
    LIST_CONFIG_RESOURCES.key: _open,
    **GROUP_RULES,
}
