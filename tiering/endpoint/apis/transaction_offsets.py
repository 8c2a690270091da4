"""TxnOffsetCommit: which topics there are, and what the coordinators of the transaction and of the group say of the others."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace

from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import Context, topic_named
from tiering.endpoint.apis.durable_commits import when_synced
from tiering.endpoint.apis.find_coordinator import check_coordinator
from tiering.endpoint.authorization.acls import Operation, ResourceType
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.offsets_log import NAME as OFFSETS
from tiering.endpoint.coordinator.offsets_log import TransactionalProducer
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tiering.endpoint.request_context import RequestContext
from tiering.endpoint.transactions.errors import TransactionError
from tiering.endpoint.transactions.transaction_coordinator import ProducerIdAndEpoch
from tiering.endpoint.transactions.verification import FirstBatch, TransactionVerifier, of_offset_commit

_NO_SEQUENCE = -1


def txn_offset_commit(
    request: TxnOffsetCommitRequest, request_context: RequestContext, context: Context
) -> "TxnOffsetCommitResponse | Future[TxnOffsetCommitResponse]":
    """Keeps the offsets of the partitions that there are, if the transaction commits, which it may do after a loss of power."""
    code = _denied(request, request_context, context)
    if code:
        return TxnOffsetCommitResponse(topics=tuple(_refused(topic, code) for topic in request.topics))
    known, answers, topic_ids = [], [], dict[str, str]()
    for topic in request.topics:
        found = _topic(topic.name, request_context, context)
        if isinstance(found, ErrorCode):
            answers.append(_refused(topic, found))
            continue
        wanted = tuple(one for one in topic.partitions if one.partition_index in found.partitions)
        missing = tuple(one for one in topic.partitions if one.partition_index not in found.partitions)
        known += [replace(topic, partitions=wanted)] if wanted else []
        topic_ids[topic.name] = found.id
        answers += [_refused(replace(topic, partitions=missing), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)] if missing else []
    if known:
        asked = replace(request, topics=tuple(known))
        try:
            answers += _committed(asked, topic_ids, request_context, context).topics
            return when_synced(TxnOffsetCommitResponse(topics=tuple(answers)), request.group_id, context)
        except (GroupError, TransactionError) as e:
            answers += (_refused(topic, e.code) for topic in known)
    return TxnOffsetCommitResponse(topics=tuple(answers))


def _denied(request: TxnOffsetCommitRequest, request_context: RequestContext, context: Context) -> ErrorCode:
    own_id, group = (ResourceType.TRANSACTIONAL_ID, request.transactional_id), (ResourceType.GROUP, request.group_id)
    if not is_authorized(context, request_context, Operation.WRITE, *own_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    is_allowed = is_authorized(context, request_context, Operation.READ, *group)
    return ErrorCode.NONE if is_allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED


def _topic(name: str, request_context: RequestContext, context: Context) -> HostedTopic | ErrorCode:
    if not is_authorized(context, request_context, Operation.READ, ResourceType.TOPIC, name):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    found = topic_named(context, name)
    return found if isinstance(found, HostedTopic) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _committed(
    request: TxnOffsetCommitRequest, topic_ids: Mapping[str, str], request_context: RequestContext, context: Context
) -> TxnOffsetCommitResponse:
    """Raises GroupError, TransactionError."""
    check_coordinator(request.group_id, context)
    if context.local_tier is None or context.transactions is None:
        raise TransactionError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    partition = TopicPartition(OFFSETS, context.groups.partition_for(request.group_id))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    first = FirstBatch(request.transactional_id, producer, _NO_SEQUENCE)
    supported = of_offset_commit(request_context.version)
    try:
        log = context.local_tier.log(partition)
        verification = TransactionVerifier(context.transactions).verify(partition, log, first, supported)
    except LogError as e:
        raise TransactionError(ErrorCode.NOT_COORDINATOR) from e
    return context.groups.commit_transactional_offsets(request, topic_ids, TransactionalProducer(*producer, verification))


def _refused(topic: TxnOffsetCommitRequestTopic, code: ErrorCode) -> TxnOffsetCommitResponseTopic:
    partitions = (TxnOffsetCommitResponsePartition(one.partition_index, code) for one in topic.partitions)
    return TxnOffsetCommitResponseTopic(topic.name, tuple(partitions))
