"""Metadata, DescribeTopicPartitions, DescribeCluster and DescribeConfigs."""

from dataclasses import dataclass, replace
from typing import Any

from local_log.errors import LogError
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.apis.auth_helper import NOT_ASKED, authorized_operations, is_authorized
from tiering.endpoint.apis.auto_topic_creation import create_if_allowed
from tiering.endpoint.apis.context import INTERNAL_TOPICS, Context, leader_epoch_of, topic_named, unknown_topic
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.brokers.live_brokers import LiveBrokers
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from tiering.endpoint.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from tiering.endpoint.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tiering.endpoint.protocol.writing import Written, written
from tiering.endpoint.request_context import RequestContext
from tiering.endpoint.settings import MAX_REQUEST_PARTITIONS

_TOPIC_FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
_OF_BROKERS, _OF_CONTROLLERS = 1, 2
"""Kafka's EndpointType."""
_BY_ID_SINCE = 12
"""Versions 10 and 11 of Metadata have ids, which no broker takes."""


def metadata(request: MetadataRequest, request_context: RequestContext, context: Context) -> MetadataResponse:
    """The topics asked for, or all. If there are ids among them, names are not looked at."""
    version, live, asked = request_context.version, context.cluster.live, request.topics
    asks = request.include_topic_authorized_operations
    if asked is None or (version == 0 and not asked):
        found = context.logs.everything()
        seen = ((n, t) for n, t in found.items() if _may_describe(n, request_context, context, is_told=False))
        topics = [_described(name, topic, asks, request_context, context, live) for name, topic in seen]
    elif version < _BY_ID_SINCE and any(one.name is None or one.topic_id != ZERO_TOPIC_ID for one in asked):
        return MetadataResponse(topics=tuple(map(_invalid, asked)))
    else:
        by_id = dict.fromkeys(MetadataRequestTopic(one.topic_id, None) for one in asked if one.topic_id != ZERO_TOPIC_ID)
        topics = [_topic(wanted, request, request_context, context, live) for wanted in by_id or dict.fromkeys(asked)]
    return MetadataResponse(
        brokers=tuple(MetadataResponseBroker(one.node_id, one.host, one.port) for one in live.brokers),
        cluster_id=context.cluster_id,
        controller_id=live.brokers[0].node_id,
        topics=tuple(topics),
        cluster_authorized_operations=_operations_on_cluster(
            request.include_cluster_authorized_operations, request_context, context
        ),
    )


def _may_describe(name: str, request_context: RequestContext, context: Context, *, is_told: bool = True) -> bool:
    return is_authorized(context, request_context, Operation.DESCRIBE, ResourceType.TOPIC, name, is_told=is_told)


def _operations_on_cluster(is_asked: bool, request_context: RequestContext, context: Context) -> int:
    if not is_asked:
        return NOT_ASKED
    if not is_authorized(context, request_context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return authorized_operations(context, request_context, ResourceType.CLUSTER, CLUSTER_NAME)


def _invalid(asked: MetadataRequestTopic) -> MetadataResponseTopic:
    return MetadataResponseTopic(ErrorCode.INVALID_REQUEST, asked.name or "", asked.topic_id)


def _topic(
    wanted: MetadataRequestTopic, request: MetadataRequest, request_context: RequestContext, context: Context, live: LiveBrokers
) -> MetadataResponseTopic | Written:
    if wanted.name is None:
        context.logs.open_by_id([wanted.topic_id])
    name = context.logs.name_of(wanted.topic_id) if wanted.name is None else wanted.name
    if name is not None and not _may_describe(name, request_context, context):  # before it is looked whether there is one
        topic_id = wanted.topic_id if wanted.name is None else ZERO_TOPIC_ID
        return MetadataResponseTopic(_TOPIC_FAILED, wanted.name, topic_id)
    found = None if name is None else topic_named(context, name)
    if name is None or (wanted.name is None and not _has_id(found, wanted.topic_id)):
        return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, None, wanted.topic_id)
    if found is None and request.allow_auto_topic_creation:
        refusal = create_if_allowed(name, request_context, context)
        if refusal is not None:
            return MetadataResponseTopic(refusal, name, is_internal=name in INTERNAL_TOPICS)
    return _described(name, found, request.include_topic_authorized_operations, request_context, context, live)


def _has_id(found: HostedTopic | LogError | None, topic_id: str) -> bool:
    """Whether this is the topic, as far as that is known."""
    return isinstance(found, LogError) or (found is not None and found.id == topic_id)


def _described(  # one argument each of what Kafka's getTopicMetadata is given
    name: str,
    found: HostedTopic | LogError | None,
    asks: bool,
    request_context: RequestContext,
    context: Context,
    live: LiveBrokers,
) -> MetadataResponseTopic | Written:
    operations = authorized_operations(context, request_context, ResourceType.TOPIC, name) if asks else NOT_ASKED
    if isinstance(found, LogError):
        context.report(f"the metadata of {name}: {found}")
        return MetadataResponseTopic(ErrorCode.LEADER_NOT_AVAILABLE, name, topic_authorized_operations=operations)
    if found is None:
        return MetadataResponseTopic(unknown_topic(name), name, topic_authorized_operations=operations)
    version = request_context.version
    brokers, known = found.described.get((version, operations), (None, None))
    if known is None or brokers is not live:
        fields = _partitions(found, live)
        partitions = tuple(MetadataResponsePartition(**one) for one in fields)
        topic = MetadataResponseTopic(ErrorCode.NONE, found.name, found.id, found.name in INTERNAL_TOPICS, partitions, operations)
        known = written(topic, version, flexible=request_context.header.api.is_flexible(version))
        if not any("error_code" in one for one in fields):  # of a log that is being made, for instance
            found.described[version, operations] = live, known
    return known


def _partitions(topic: HostedTopic, live: LiveBrokers) -> list[dict[str, Any]]:
    """The fields that describe each partition; one that cannot be opened has no leader."""
    found: list[dict[str, Any]] = []
    for number, log in sorted(topic.partitions.items()):
        leader = live.leader_of(topic.name, number)
        fields: dict[str, Any] = {"partition_index": number, "replica_nodes": (leader,)}
        if isinstance(log, LogError):
            fields |= {"error_code": ErrorCode.LEADER_NOT_AVAILABLE, "leader_id": -1, "offline_replicas": (leader,)}
        else:
            fields |= {"leader_id": leader, "isr_nodes": (leader,), "leader_epoch": leader_epoch_of(log)}
        found.append(fields)
    return found


@dataclass(slots=True)
class _Page:
    """Topics from a cursor on, up to a number of partitions."""

    room: int
    live: LiveBrokers
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None = None

    def add(self, name: str, topic: HostedTopic | LogError | None, first: int) -> None:
        """A topic's partitions from `first` on."""
        if not isinstance(topic, HostedTopic):
            code = unknown_topic(name) if topic is None else ErrorCode.LEADER_NOT_AVAILABLE
            self.topics.append(DescribeTopicPartitionsResponseTopic(code, name))
            return
        fields = [one for one in _partitions(topic, self.live) if one["partition_index"] >= first]
        if len(fields) > self.room:
            self.next_cursor = Cursor(name, fields[self.room]["partition_index"])
        shown = fields[: self.room]
        self.room -= len(shown)
        none: dict[str, Any] = {"eligible_leader_replicas": (), "last_known_elr": ()}  # Java's admin client cannot take null
        partitions = tuple(DescribeTopicPartitionsResponsePartition(**one, **none) for one in shown)
        of_topic = DescribeTopicPartitionsResponseTopic(ErrorCode.NONE, name, topic.id, name in INTERNAL_TOPICS, partitions)
        if shown or not fields:
            self.topics.append(of_topic)


def describe_topic_partitions(
    request: DescribeTopicPartitionsRequest, request_context: RequestContext, context: Context
) -> DescribeTopicPartitionsResponse:
    """The topics asked for, or all, by name, from the cursor on, which is one of those that are asked for."""
    asked = {one.name for one in request.topics}
    known = {} if asked else context.logs.everything()
    allowed = {name for name in asked or known if _may_describe(name, request_context, context, is_told=bool(asked))}
    names = sorted(allowed)
    cursor = request.cursor or Cursor()
    is_elsewhere = request.cursor is not None and request.topics and cursor.topic_name not in asked
    if is_elsewhere or cursor.partition_index < 0:
        invalid = (DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, one.name) for one in request.topics)
        return DescribeTopicPartitionsResponse(topics=tuple(invalid))
    room = max(1, min(request.response_partition_limit, context.settings[MAX_REQUEST_PARTITIONS]))
    page = _Page(room, context.cluster.live, [])
    for name in names:
        if name < cursor.topic_name or page.next_cursor is not None:
            continue
        if not page.room:
            page.next_cursor = Cursor(name, 0)
            break
        page.add(name, known.get(name) or topic_named(context, name), cursor.partition_index if name == cursor.topic_name else 0)
    described = (_with_operations(one, request_context, context) for one in page.topics)
    refused = (DescribeTopicPartitionsResponseTopic(_TOPIC_FAILED, one) for one in asked - allowed if one >= cursor.topic_name)
    return DescribeTopicPartitionsResponse(topics=(*described, *refused), next_cursor=page.next_cursor)


def _with_operations(
    topic: DescribeTopicPartitionsResponseTopic, request_context: RequestContext, context: Context
) -> DescribeTopicPartitionsResponseTopic:
    operations = authorized_operations(context, request_context, ResourceType.TOPIC, topic.name or "")
    return replace(topic, topic_authorized_operations=operations)


def describe_cluster(
    request: DescribeClusterRequest, request_context: RequestContext, context: Context
) -> DescribeClusterResponse:
    """The brokers that are alive; the first of them is named as the controller."""
    if request.endpoint_type != _OF_BROKERS:
        known = request.endpoint_type == _OF_CONTROLLERS
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        return DescribeClusterResponse(error_code=code, error_message="this is an endpoint of brokers")
    brokers = context.cluster.live.brokers
    return DescribeClusterResponse(
        cluster_id=context.cluster_id,
        controller_id=brokers[0].node_id,
        brokers=tuple(DescribeClusterBroker(one.node_id, one.host, one.port) for one in brokers),
        cluster_authorized_operations=_operations_on_cluster(
            request.include_cluster_authorized_operations, request_context, context
        ),
    )
