"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, WriteTxnMarkers, DescribeTransactions and ListTransactions.

The answers are the transaction coordinator's; who may ask is decided here, as in Kafka's KafkaApis.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from local_log.formats.filenames import TopicPartition
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import Context
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.coordinator.modern.regular_expressions import is_valid, matching
from tiering.endpoint.coordinator.offsets_log import NAME as OFFSETS
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from tiering.endpoint.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from tiering.endpoint.protocol.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from tiering.endpoint.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from tiering.endpoint.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tiering.endpoint.protocol.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from tiering.endpoint.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tiering.endpoint.request_context import RequestContext
from tiering.endpoint.transactions.errors import TransactionError
from tiering.endpoint.transactions.transaction_coordinator import ProducerIdAndEpoch, TransactionCoordinator
from tiering.endpoint.transactions.transaction_log import NAME as STATE
from tiering.endpoint.transactions.transaction_log import Marker
from tiering.endpoint.transactions.transaction_metadata import (
    BUMPS_EPOCHS_SINCE,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
)
from tiering.endpoint.transactions.transaction_states import TransactionState

INTERNAL: Final = frozenset({OFFSETS, STATE})
_DENIED: Final = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_OF_BROKERS_SINCE: Final = 4
"""The version of AddPartitionsToTxn since which brokers ask, and their batches add partitions (transaction version 2)."""
_BUMPS_SINCE: Final = 5
"""The version of EndTxn since which each end has a new epoch."""
_FENCED_SINCE: Final = {"InitProducerId": 4, "AddPartitionsToTxn": 2, "AddOffsetsToTxn": 2, "EndTxn": 2}
"""The versions since which clients know PRODUCER_FENCED."""

_Codes = Mapping[TopicPartition, ErrorCode]


def coordinator_of(context: Context) -> TransactionCoordinator:
    """The coordinator of all transactional ids. Raises TransactionError if there is none."""
    if context.transactions is None:
        raise TransactionError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return context.transactions


def init_producer_id(request: InitProducerIdRequest, request_context: RequestContext, context: Context) -> InitProducerIdResponse:
    """The producer's id and epoch."""
    own_id, has_id = request.transactional_id, request.producer_id != NO_PRODUCER_ID
    try:
        if own_id is not None and not _may(Operation.WRITE, own_id, request_context, context):
            raise TransactionError(_DENIED)  # noqa: TRY301  # it is answered as what the coordinator raises
        if own_id is None and not _may_be_idempotent(request_context, context):
            raise TransactionError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)  # noqa: TRY301
        if has_id != (request.producer_epoch != NO_PRODUCER_EPOCH):
            raise TransactionError(ErrorCode.INVALID_REQUEST)  # noqa: TRY301
        if context.local_tier is None:
            given = _given_by_reader(own_id)
        elif own_id is None:
            given = coordinator_of(context).new_producer_id()
        else:
            expected = ProducerIdAndEpoch(request.producer_id, request.producer_epoch) if has_id else None
            given = coordinator_of(context).init_producer_id(own_id, request.transaction_timeout_ms, expected)
    except TransactionError as e:
        code = told(e.code, request_context)
        return InitProducerIdResponse(error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH)
    return InitProducerIdResponse(producer_id=given.producer_id, producer_epoch=given.epoch)


def _given_by_reader(own_id: str | None) -> ProducerIdAndEpoch:
    """The same for all producers, since nothing is appended: without an id they would not ask for what Produce tells them."""
    if own_id is not None:
        raise TransactionError(ErrorCode.POLICY_VIOLATION)
    return ProducerIdAndEpoch(0, 0)


def _may_be_idempotent(request_context: RequestContext, context: Context) -> bool:
    """Whether it may be so in the cluster, or may write to some topic."""
    ask = partial(is_authorized, context, request_context, is_told=False)
    if ask(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER, CLUSTER_NAME):
        return True
    return any(ask(Operation.WRITE, ResourceType.TOPIC, topic) for topic in context.logs.names())


def add_partitions_to_txn(
    request: AddPartitionsToTxnRequest, request_context: RequestContext, context: Context
) -> AddPartitionsToTxnResponse:
    """Whether the transactions have the partitions."""
    if request_context.version < _OF_BROKERS_SINCE:
        asked = AddPartitionsToTxnTransaction(
            request.v3_and_below_transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        topics = _by_topic(_added(asked, request_context, context))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)
    if not is_authorized(context, request_context, Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    found = {one.transactional_id: _by_topic(_added(one, request_context, context)) for one in request.transactions}
    results = (AddPartitionsToTxnResult(own_id, topics) for own_id, topics in found.items())
    return AddPartitionsToTxnResponse(results_by_transaction=tuple(results))


def _added(asked: AddPartitionsToTxnTransaction, request_context: RequestContext, context: Context) -> _Codes:
    partitions = [TopicPartition(topic.name, number) for topic in asked.topics for number in topic.partitions]
    is_of_client = request_context.version < _OF_BROKERS_SINCE
    if is_of_client and not _may(Operation.WRITE, asked.transactional_id, request_context, context):
        return dict.fromkeys(partitions, _DENIED)
    problems = _problems(partitions, request_context, context)
    if problems:
        return {one: problems.get(one, ErrorCode.OPERATION_NOT_ATTEMPTED) for one in partitions}
    producer = ProducerIdAndEpoch(asked.producer_id, asked.producer_epoch)
    try:
        if asked.verify_only:
            return coordinator_of(context).verify(asked.transactional_id, producer, partitions)
        version = 0 if is_of_client else BUMPS_EPOCHS_SINCE
        coordinator_of(context).add_partitions(asked.transactional_id, producer, partitions, version)
    except TransactionError as e:
        return dict.fromkeys(partitions, told(e.code, request_context))
    return dict.fromkeys(partitions, ErrorCode.NONE)


def _problems(partitions: Iterable[TopicPartition], request_context: RequestContext, context: Context) -> _Codes:
    """The partitions that there are not, and those that a client may not write to."""
    topics = {} if context.local_tier is None else context.local_tier.topics()
    is_of_client, problems = request_context.version < _OF_BROKERS_SINCE, {}
    for one in partitions:
        is_own = not is_of_client or one.topic in INTERNAL
        if not (is_own or is_authorized(context, request_context, Operation.WRITE, ResourceType.TOPIC, one.topic)):
            problems[one] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif one.topic not in topics or one.partition not in topics[one.topic].partitions:
            problems[one] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return problems


def _by_topic(codes: _Codes) -> tuple[AddPartitionsToTxnTopicResult, ...]:
    topics = defaultdict(list)
    for one, code in codes.items():
        topics[one.topic].append(AddPartitionsToTxnPartitionResult(one.partition, code))
    return tuple(AddPartitionsToTxnTopicResult(topic, tuple(results)) for topic, results in topics.items())


def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, request_context: RequestContext, context: Context
) -> AddOffsetsToTxnResponse:
    """Whether the transaction has the partition that keeps the group."""
    if not _may(Operation.WRITE, request.transactional_id, request_context, context):
        return AddOffsetsToTxnResponse(error_code=_DENIED)
    if not is_authorized(context, request_context, Operation.READ, ResourceType.GROUP, request.group_id):
        return AddOffsetsToTxnResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    added = TopicPartition(OFFSETS, context.groups.partition_for(request.group_id))
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        coordinator_of(context).add_partitions(request.transactional_id, producer, (added,), 0)
    except TransactionError as e:
        return AddOffsetsToTxnResponse(error_code=told(e.code, request_context))
    return AddOffsetsToTxnResponse()


def end_txn(request: EndTxnRequest, request_context: RequestContext, context: Context) -> EndTxnResponse:
    """Whether the transaction will have ended."""
    if not _may(Operation.WRITE, request.transactional_id, request_context, context):
        return EndTxnResponse(error_code=_DENIED)
    version = BUMPS_EPOCHS_SINCE if request_context.version >= _BUMPS_SINCE else 0
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        ended = coordinator_of(context).end(request.transactional_id, producer, version, is_committed=request.committed)
    except TransactionError as e:
        return EndTxnResponse(error_code=told(e.code, request_context))
    return EndTxnResponse(producer_id=ended.producer_id, producer_epoch=ended.epoch)


def write_txn_markers(
    request: WriteTxnMarkersRequest, request_context: RequestContext, context: Context
) -> WriteTxnMarkersResponse:
    """Whether the partitions have the markers. Those of one producer are told together."""
    may = partial(is_authorized, context, request_context)
    is_allowed = may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME, is_told=False) or may(
        Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
    )
    found: dict[int, dict[TopicPartition, ErrorCode]] = defaultdict(dict)
    for one in request.markers:
        marker = Marker(
            one.producer_id, one.producer_epoch, one.coordinator_epoch, one.transaction_result, one.transaction_version
        )
        for topic in one.topics:
            for number in topic.partition_indexes:
                partition = TopicPartition(topic.name, number)
                code = _written(partition, marker, context) if is_allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
                found[one.producer_id][partition] = code
    markers = (WritableTxnMarkerResult(producer_id, _marked(codes)) for producer_id, codes in found.items())
    return WriteTxnMarkersResponse(markers=tuple(markers))


def _written(partition: TopicPartition, marker: Marker, context: Context) -> ErrorCode:
    try:
        return coordinator_of(context).markers.write(partition, marker)
    except TransactionError as e:
        return e.code


def _marked(codes: _Codes) -> tuple[WritableTxnMarkerTopicResult, ...]:
    topics = defaultdict(list)
    for one, code in codes.items():
        topics[one.topic].append(WritableTxnMarkerPartitionResult(one.partition, code))
    return tuple(WritableTxnMarkerTopicResult(topic, tuple(results)) for topic, results in topics.items())


def describe_transactions(
    request: DescribeTransactionsRequest, request_context: RequestContext, context: Context
) -> DescribeTransactionsResponse:
    """The states of transactional ids, with the topics that the client may know of."""
    found = (_described(own_id, request_context, context) for own_id in request.transactional_ids)
    return DescribeTransactionsResponse(transaction_states=tuple(found))


def _described(own_id: str, request_context: RequestContext, context: Context) -> DescribedTransaction:
    if not _may(Operation.DESCRIBE, own_id, request_context, context):
        return DescribedTransaction(_DENIED, own_id)
    try:
        found = coordinator_of(context).find(own_id)
    except TransactionError as e:
        return DescribedTransaction(e.code, own_id)
    topics: dict[str, list[int]] = defaultdict(list)
    for one in sorted(found.partitions):
        topics[one.topic].append(one.partition)
    may = partial(is_authorized, context, request_context, Operation.DESCRIBE, ResourceType.TOPIC)
    return DescribedTransaction(
        ErrorCode.NONE,
        own_id,
        found.state.title,
        found.timeout_ms,
        found.start_ms,
        found.producer_id,
        found.producer_epoch,
        tuple(TopicData(topic, tuple(numbers)) for topic, numbers in topics.items() if may(topic)),
    )


def list_transactions(
    request: ListTransactionsRequest, request_context: RequestContext, context: Context
) -> ListTransactionsResponse:
    """The transactional ids that the request wants, and that the client may know of."""
    by_title = {state.title: state for state in TransactionState}
    unknown = tuple(dict.fromkeys(name for name in request.state_filters if name not in by_title))
    try:
        found = [one for one in coordinator_of(context).all() if _is_wanted(one, request, context.clock.now_ms())]
        found = _matching(found, request.transactional_id_pattern)
    except TransactionError as e:
        return ListTransactionsResponse(error_code=e.code)
    may = partial(is_authorized, context, request_context, Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, is_told=False)
    listed = (ListedTransaction(one.transactional_id, one.producer_id, one.state.title) for one in found)
    return ListTransactionsResponse(
        unknown_state_filters=unknown, transaction_states=tuple(one for one in listed if may(one.transactional_id))
    )


def _is_wanted(one: TransactionMetadata, request: ListTransactionsRequest, now_ms: int) -> bool:
    has_id = not request.producer_id_filters or one.producer_id in request.producer_id_filters
    has_state = not request.state_filters or one.state.title in request.state_filters
    return has_id and has_state and (request.duration_filter < 0 or now_ms - one.start_ms > request.duration_filter)


def _matching(found: list[TransactionMetadata], pattern: str | None) -> list[TransactionMetadata]:
    """Those whose whole transactional id matches. Raises TransactionError for a pattern that is none."""
    if not pattern:
        return found
    if not is_valid(pattern):
        raise TransactionError(ErrorCode.INVALID_REGULAR_EXPRESSION)
    wanted = matching(pattern, [one.transactional_id for one in found])
    return [one for one in found if one.transactional_id in wanted]


def _may(operation: Operation, own_id: str, request_context: RequestContext, context: Context) -> bool:
    return is_authorized(context, request_context, operation, ResourceType.TRANSACTIONAL_ID, own_id)


def told(code: ErrorCode, request_context: RequestContext) -> ErrorCode:
    """As clients of this version know it."""
    since = _FENCED_SINCE[request_context.header.api.name]
    is_old = code is ErrorCode.PRODUCER_FENCED and request_context.version < since
    return ErrorCode.INVALID_PRODUCER_EPOCH if is_old else code
