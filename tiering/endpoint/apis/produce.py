"""Produce: appends to the logs that this process owns (Kafka's ReplicaManager.appendRecords).

Without a log directory of its own the endpoint refuses it, with the reason.
"""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from local_log.engine.errors import CorruptMessage, MessageTooLarge, RecordListTooLarge, Refused
from local_log.errors import Invalid, LogError
from local_log.formats.filenames import TopicPartition
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.formats.primitives import INT32_MAX, Buffer
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import INTERNAL_TOPICS, Context
from tiering.endpoint.apis.later import later
from tiering.endpoint.apis.produced_records import are_transactional, check_records, first_of_transaction
from tiering.endpoint.appends.at_once import is_short
from tiering.endpoint.at_hand import NotAtHand
from tiering.endpoint.authorization.acls import Operation, ResourceType
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from tiering.endpoint.request_context import RequestContext
from tiering.endpoint.settings import STORAGE_MIN_FREE_BYTES
from tiering.endpoint.transactions.errors import TransactionError
from tiering.endpoint.transactions.transaction_coordinator import ProducerIdAndEpoch
from tiering.endpoint.transactions.verification import FirstBatch, TransactionVerifier, of_produce, told_to_producer
from tiering.local_tier.errors import UnknownTopicOrPartition

if TYPE_CHECKING:
    from local_log.engine.append.analyze import AppendInfo
    from local_log.engine.producers.state import Verification
    from local_log.engine.unified_log import UnifiedLog
    from tiering.local_tier.local_tier import LocalTier

REASON: Final = "this endpoint reads an archive and takes no records: produce to the brokers that own the topic"

ADMIN_CLIENT_ID: Final = "__admin_client"
"""Who may append to internal topics, as in Kafka."""
ALL: Final = -1
ACKS: Final = (ALL, 0, 1)
Place = tuple[str, str, int]
"""The name and the id of a topic as the request has them, and a partition."""
_NOTHING: Final = -1
_EXPECTED: Final = (CorruptMessage, MessageTooLarge, RecordListTooLarge)
"""Those of a batch that nothing is wrong with here: the answer has no log start offset, and they do not count as failures."""


def produce(
    request: ProduceRequest, request_context: RequestContext, context: Context
) -> "ProduceResponse | Future[ProduceResponse]":
    """Appends to each partition, or says why not. Who asks for no acknowledgement is answered as well: see `handle`.

    Raises NotAtHand where an append has to wait, and may not; those that are `done` then are not made again.
    """
    tier = context.local_tier
    if tier is None:
        return ProduceResponse(responses=tuple(map(_not_here, request.topic_data)))
    refusal = refusal_of(request, request_context, context)
    if refusal is not None:
        return refusal
    appends = _Appends(request, request_context, context, tier)
    responses = tuple(appends.topic(*topic, partitions) for topic, partitions in _by_topic(request).items())
    leaders = {one.current_leader.leader_id for topic in responses for one in topic.partition_responses}
    throttle_ms = _throttle_ms(request, request_context, context)
    found = ProduceResponse(responses, throttle_ms, _endpoints_of(leaders, context))
    if context.group_commit is None or request.acks != ALL or not appends.logs:
        return found
    synced = context.group_commit.sync(appends.logs.values())
    return later(synced, lambda errors: _unless_lost(found, appends.logs, errors, context))


def _throttle_ms(request: ProduceRequest, request_context: RequestContext, context: Context) -> int:
    """For how long the client is to wait, if it has used up its quota."""
    if context.quotas is None:
        return 0
    size = sum(len(one.records[0]) for topic in request.topic_data for one in topic.partition_data if one.records)
    user, client_id = request_context.principal.name, request_context.client_id
    return min(context.quotas.producers.used_ms(user, client_id, size, context.clock.hi_res_clock_ms()), INT32_MAX)


def _unless_lost(
    found: ProduceResponse, logs: "Mapping[Place, UnifiedLog]", errors: Mapping[str, LogError], context: Context
) -> ProduceResponse:
    """The answer, where the logs could be synced that were appended to."""
    if not errors:
        return found
    for error in errors.values():
        context.report(f"appended records are not synced: {error}")
    lost = {place for place, log in logs.items() if log.folder.path in errors}

    def told(topic: TopicProduceResponse) -> TopicProduceResponse:
        of = topic.name, topic.topic_id
        answers = (
            _refused(one.index, ErrorCode.KAFKA_STORAGE_ERROR) if (*of, one.index) in lost else one
            for one in topic.partition_responses
        )
        return replace(topic, partition_responses=tuple(answers))

    return replace(found, responses=tuple(map(told, found.responses)))


def refusal_of(request: ProduceRequest, request_context: RequestContext, context: Context) -> ProduceResponse | None:
    """What is wrong with the whole request, before it is looked at which topics the client may write to."""
    if context.local_tier is None:
        return None
    try:
        is_transactional = are_transactional(p.records[0] for t in request.topic_data for p in t.partition_data if p.records)
    except CorruptMessage as e:
        return ProduceResponse(tuple(refused(one, ErrorCode.CORRUPT_MESSAGE, str(e)) for one in request.topic_data))
    own_id = request.transactional_id
    if not is_transactional or (
        own_id is not None and is_authorized(context, request_context, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, own_id)
    ):
        return None
    return ProduceResponse(tuple(refused(one, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED) for one in request.topic_data))


def refused(one: TopicProduceData, code: ErrorCode, message: str | None = None) -> TopicProduceResponse:
    """The same error for all partitions of a topic."""
    answers = (_refused(number, code, message) for number in dict.fromkeys(p.index for p in one.partition_data))
    return TopicProduceResponse(one.name, one.topic_id, tuple(answers))


def _not_here(topic: TopicProduceData) -> TopicProduceResponse:
    """Old versions have no room for the reason; their clients print that of the error code."""
    answers = (_refused(one.index, ErrorCode.POLICY_VIOLATION, REASON) for one in topic.partition_data)
    return TopicProduceResponse(topic.name, topic.topic_id, tuple(answers))


def _by_topic(request: ProduceRequest) -> dict[tuple[str, str], dict[int, Buffer]]:
    """What to append by name and id of the topic, and by partition. Of what is asked for twice the last counts, as in Kafka."""
    found: dict[tuple[str, str], dict[int, Buffer]] = {}
    for topic in request.topic_data:
        partitions = found.setdefault((topic.name, topic.topic_id), {})
        partitions.update((one.index, one.records[0] if one.records else b"") for one in topic.partition_data)
    return found


def _endpoints_of(leaders: set[int], context: Context) -> tuple[NodeEndpoint, ...]:
    """Where those are that lead partitions that this process does not lead."""
    if leaders <= {_NOTHING}:
        return ()
    return tuple(NodeEndpoint(one.node_id, one.host, one.port) for one in context.cluster.live.brokers if one.node_id in leaders)


def _refused(number: int, code: ErrorCode, message: str | None = None, log_start: int = _NOTHING) -> PartitionProduceResponse:
    return PartitionProduceResponse(number, code, _NOTHING, log_start_offset=log_start, error_message=message)


def append_failed(context: Context, name: str, number: int, e: LogError) -> PartitionProduceResponse:
    """The answer where a log fails."""
    context.report(f"{name}-{number}: an append fails: {e}")
    context.metrics.produced(name, 0, 0, failed=True)
    return _refused(number, ErrorCode.KAFKA_STORAGE_ERROR)


class _Appends:
    """The appends of one request."""

    __slots__ = ("_context", "_done", "_is_admin", "_request", "_tier", "_version", "logs")

    def __init__(self, request: ProduceRequest, request_context: RequestContext, context: Context, tier: "LocalTier") -> None:
        self._request, self._context, self._tier = request, context, tier
        self._version, self._done = request_context.version, request_context.done
        self._is_admin = request_context.client_id == ADMIN_CLIENT_ID
        self.logs: dict[Place, UnifiedLog] = {}
        """Those that were appended to."""

    def topic(self, name: str, topic_id: str, partitions: Mapping[int, Buffer]) -> TopicProduceResponse:
        """The answers for a topic, which is named or has an id. Raises NotAtHand if one has to wait, and may not."""
        known = name if topic_id == ZERO_TOPIC_ID else self._tier.name_of(topic_id)
        if known is None:
            answers = tuple(_refused(number, ErrorCode.UNKNOWN_TOPIC_ID) for number in partitions)
        else:
            answers = tuple(self._once(known, (name, topic_id, number), records) for number, records in partitions.items())
        return TopicProduceResponse(name, topic_id, answers)

    def _once(self, name: str, place: Place, records: Buffer) -> PartitionProduceResponse:
        """The answer for a partition; that of before if the request is handled again."""
        known = self._done.get(place)
        if known is None:
            answer = self._partition(name, place, records)
            self._done[place] = answer, self.logs.get(place)
            return answer
        done: PartitionProduceResponse = known[0]
        if known[1] is not None:
            self.logs[place] = known[1]
        return done

    def _partition(self, name: str, place: Place, records: Buffer) -> PartitionProduceResponse:
        number = place[-1]
        topic = self._tier.topics().get(name)
        if topic is None or number not in topic.partitions:
            return _refused(number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if not self._context.cluster.live.leads(name, number):
            return self._led_elsewhere(name, number)
        try:
            check_records(records, self._version)
        except Refused as e:
            return _refused(number, ErrorCode(e.code), str(e))
        if self._request.acks not in ACKS:
            return _refused(number, ErrorCode.INVALID_REQUIRED_ACKS)
        if name in INTERNAL_TOPICS and not self._is_admin:
            self._context.metrics.produced(name, 0, 0)
            return _refused(number, ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is for groups and transactions alone")
        return self._append(name, place, records)

    def _append(self, name: str, place: Place, records: Buffer) -> PartitionProduceResponse:
        metrics, log, number = self._context.metrics, None, place[-1]
        try:
            partition = TopicPartition(name, number)
            log = self._tier.log(partition)
            if place[1] != ZERO_TOPIC_ID and self._tier.name_of(place[1]) != name:  # the log is of a topic created anew
                return _refused(number, ErrorCode.UNKNOWN_TOPIC_ID)
            self._check_room(log, len(records))
            info = self._appended(partition, log, records)
        except TransactionError as e:
            code = told_to_producer(e.code, of_produce(self._version))
            return _refused(number, code, f"the partition cannot be added to the transaction: {e.code.name}")
        except Refused as e:
            is_expected = isinstance(e, _EXPECTED)
            metrics.produced(name, 0, 0, failed=not is_expected)
            errors = tuple(BatchIndexAndErrorMessage(one.row, one.problem) for one in e.record_errors)
            start = _NOTHING if is_expected or log is None else log.log_start_offset
            return PartitionProduceResponse(number, e.code, _NOTHING, _NOTHING, start, errors, str(e))
        except UnknownTopicOrPartition:  # it was deleted meanwhile
            return _refused(number, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        except Invalid:  # its log was closed meanwhile
            return self._led_elsewhere(name, number)
        except LogError as e:
            return append_failed(self._context, name, number, e)
        metrics.produced(name, len(records), _count(info))
        self.logs[place] = log
        return PartitionProduceResponse(number, ErrorCode.NONE, info.first_offset, info.log_append_time, info.log_start_offset)

    def _appended(self, partition: TopicPartition, log: "UnifiedLog", records: Buffer) -> "AppendInfo":
        """Raises TransactionError, LogError, and NotAtHand."""
        context, epoch = self._context, log.epochs.latest_epoch or 0
        if context.may_wait:
            return log.append_as_leader(records, epoch, verification=self._verification(partition, log, records))
        began_ms = context.clock.hi_res_clock_ms()
        if self._request.transactional_id is not None or not (context.at_once.may(began_ms) and is_short(records)):
            raise NotAtHand
        info = log.append_at_once(records, epoch)
        if info is None:
            raise NotAtHand
        context.at_once.took(began_ms, context.clock.hi_res_clock_ms())
        return info

    def _check_room(self, log: "UnifiedLog", size: int) -> None:
        context = self._context
        context.room.check(log, size, context.settings[STORAGE_MIN_FREE_BYTES], context.clock.hi_res_clock_ms())

    def _verification(self, partition: TopicPartition, log: "UnifiedLog", records: Buffer) -> "Verification | None":
        """What a transaction's first batch needs. Raises TransactionError, Refused."""
        if self._request.transactional_id is None or self._context.transactions is None:
            return None
        batch = first_of_transaction(records)
        if batch is None:
            return None
        first = FirstBatch(
            self._request.transactional_id, ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch), batch.base_sequence
        )
        return TransactionVerifier(self._context.transactions).verify(partition, log, first, of_produce(self._version))

    def _led_elsewhere(self, name: str, number: int) -> PartitionProduceResponse:
        leader = LeaderIdAndEpoch(self._context.cluster.live.leader_of(name, number), _NOTHING)
        return PartitionProduceResponse(number, ErrorCode.NOT_LEADER_OR_FOLLOWER, _NOTHING, current_leader=leader)


def _count(info: "AppendInfo") -> int:
    return info.last_offset - info.first_offset + 1 if info.first_offset >= 0 else 0
