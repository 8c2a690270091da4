"""Fetch: batches from both tiers, and whether an answer should wait for more."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby
from struct import Struct
from typing import Final, NamedTuple

from local_log.errors import LogError, OffsetOutOfRange
from local_log.file_range import size_of
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.formats.primitives import INT32_MAX
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import (
    ISOLATION_LEVELS,
    NO_EPOCH,
    Context,
    Refused,
    code_of,
    is_ours,
    isolation_of,
    leader_epoch_of,
    log_of,
    may_be_of_an_old_manifest,
    newest_log_of,
    topic_named,
)
from tiering.endpoint.apis.freeing import free
from tiering.endpoint.at_hand import NotAtHand
from tiering.endpoint.authorization.acls import Operation, ResourceType
from tiering.endpoint.brokers.live_brokers import LiveBrokers
from tiering.endpoint.fetch_sessions.contexts import Answers, FetchContext, IncrementalFetch
from tiering.endpoint.fetch_sessions.manager import TOPIC_IDS_SINCE
from tiering.endpoint.fetch_sessions.session import Wanted
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from tiering.endpoint.reads import Batches
from tiering.endpoint.request_context import RequestContext
from tiering.endpoint.settings import FETCH_MAX_BYTES
from tiering.read.tiered_log import Isolation, TieredLog

_Hosted = HostedTopic | LogError | None

_FUTURE_REPLICA = -3
"""The replica id of a broker that moves a log to another directory."""
_REPLICA_STATE_SINCE = 15
_MAX_BYTES_SINCE = 3
"""Older versions are given no batch that is larger than what is asked for."""
_LARGER_MESSAGE: Final = Struct(">qi").pack(-1, 61)
"""The begin of a message that does not fit, for clients that know from it that they have to ask for more (as in Kafka 3.9)."""
_BATCHES_SINCE, _TIMESTAMPS_SINCE, _LEADERS_SINCE = 4, 2, 16


@dataclass(slots=True)
class _Room:
    """What is left of the bytes that a request may be answered with; one batch at least is."""

    left: int
    one_at_least: bool
    found: int = 0
    """Bytes that there are to be had: where only the limits end an answer, as many as these allow."""

    def take(self, size: int, found: int) -> None:
        self.left = max(0, self.left - size)
        self.found += found
        self.one_at_least = self.one_at_least and not size


class _Lists(NamedTuple):
    """What is found of a request's partitions: those that may be read, the errors of others, and the answers of the first."""

    readable: list[tuple[Wanted, HostedTopic | LogError]]
    unknown: list[tuple[Wanted, PartitionData]]
    answers: list[tuple[Wanted, PartitionData]]


@dataclass(frozen=True, slots=True)
class _FetchParams:
    """What a request wants of all its partitions alike (Kafka's FetchParams)."""

    version: int
    isolation: Isolation
    is_from_follower: bool


def begin_fetch(request: FetchRequest, request_context: RequestContext, context: Context) -> FetchContext:
    """What the request reads, according to its session; to be done once a request."""
    if request_context.version >= TOPIC_IDS_SINCE:
        context.logs.open_by_id(topic.topic_id for topic in request.topics)
    return context.fetches.begin(request, request_context.version, context.logs.name_of, context.clock.hi_res_clock_ms())


def fetch(
    begun: FetchContext, request: FetchRequest, request_context: RequestContext, context: Context, *, may_wait: bool
) -> FetchResponse | None:
    """The answer; None if it has fewer than `min_bytes` and no error, and may wait."""
    lists = _Lists([], [], [])
    try:
        return _fetch(begun, request, request_context, context, lists, may_wait=may_wait)
    finally:
        for items in lists:
            free(items)


def _sort_out(begun: FetchContext, request_context: RequestContext, context: Context, lists: _Lists) -> None:
    """Finds the partitions that may be read, and those that are not there or not for this client."""
    topics: dict[str, _Hosted] = {}
    readable, unknown, _ = lists
    for wanted in begun.wanted:
        name, number = wanted.topic, wanted.asked.partition
        if name is not None and not is_authorized(context, request_context, Operation.READ, ResourceType.TOPIC, name):
            unknown.append((wanted, _error(wanted.asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
            continue
        if name is not None and name not in topics:
            topics[name] = topic_named(context, name)
        topic = None if name is None else topics[name]
        if topic is None or (isinstance(topic, HostedTopic) and number not in topic.partitions):
            code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            unknown.append((wanted, _error(wanted.asked, code)))
        else:
            readable.append((wanted, topic))


def _fetch(
    begun: FetchContext,
    request: FetchRequest,
    request_context: RequestContext,
    context: Context,
    lists: _Lists,
    *,
    may_wait: bool,
) -> FetchResponse | None:
    version = request_context.version
    _sort_out(begun, request_context, context, lists)
    readable, unknown, answers = lists
    if readable and request.isolation_level not in ISOLATION_LEVELS:
        return _refused(request, version, ErrorCode.UNKNOWN_SERVER_ERROR)
    params = _params(request, version)
    bytes_max = min(request.max_bytes, context.settings[FETCH_MAX_BYTES], _quota(request_context, context))
    room = _Room(bytes_max, one_at_least=version >= _MAX_BYTES_SINCE)
    for wanted, topic in readable:
        answers.append((wanted, _partition(topic, wanted, params, room, context)))
    is_short = room.found < min(request.min_bytes, bytes_max)
    if may_wait and answers and is_short and not any(a.error_code or a.diverging_epoch.epoch >= 0 for _, a in answers):
        return None
    throttled = _throttled(begun, answers, request_context, context)
    if throttled is not None:
        return throttled
    _count(answers, context)
    response = begun.respond(answers + unknown, context.clock.hi_res_clock_ms())
    leaders = set() if params.is_from_follower else {answer.current_leader.leader_id for _, answer in answers}
    nodes = tuple(NodeEndpoint(one.node_id, one.host, one.port) for one in context.cluster.live.brokers if one.node_id in leaders)
    return replace(response, node_endpoints=nodes) if nodes else response


def _quota(request_context: RequestContext, context: Context) -> int:
    """The most bytes of an answer that is not throttled for certain."""
    if context.quotas is None:
        return INT32_MAX
    found = context.quotas.bytes_max(request_context.principal.name, request_context.client_id)
    return INT32_MAX if found is None else found


def _throttled(begun: FetchContext, answers: Answers, request_context: RequestContext, context: Context) -> FetchResponse | None:
    """An empty response with the time to wait for, if the client has used up its quota."""
    if context.quotas is None:
        return None
    size, now_ms = sum(sum(map(size_of, answer.records or ())) for _, answer in answers), context.clock.hi_res_clock_ms()
    user, client_id = request_context.principal.name, request_context.client_id
    throttle_ms = context.quotas.throttle_ms(user, client_id, size, now_ms)
    if not throttle_ms:
        return None
    # A session goes on as it was; none begins with an answer that has nothing.
    response = begun.respond((), now_ms) if isinstance(begun, IncrementalFetch) else FetchResponse()
    return replace(response, throttle_time_ms=min(throttle_ms, INT32_MAX))


def _params(request: FetchRequest, version: int) -> _FetchParams:
    replica_id = request.replica_id if version < _REPLICA_STATE_SINCE else request.replica_state.replica_id
    isolation = Isolation.read_uncommitted if replica_id == _FUTURE_REPLICA else isolation_of(request.isolation_level)
    return _FetchParams(version, isolation, is_from_follower=replica_id >= 0)


def _count(answers: Iterable[tuple[Wanted, PartitionData]], context: Context) -> None:
    for topic, of_topic in groupby(answers, lambda pair: pair[0].topic or ""):
        found = [answer for _, answer in of_topic]
        failed = sum(answer.error_code in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE) for answer in found)
        context.metrics.fetched(
            topic, len(found), failed, sum(size_of(part) for answer in found for part in answer.records or ())
        )


def _partition(topic: HostedTopic | LogError, one: Wanted, params: _FetchParams, room: _Room, context: Context) -> PartitionData:
    wanted, isolation = one.asked, params.isolation
    try:
        log = _log(topic, one, params, context)
        diverging = _diverging(log, wanted)
        if diverging is not None:
            return _of_log(wanted, log, isolation, Batches((), 0, None, wanted.fetch_offset), diverging)
        start, end = log.log_start_offset, log.log_end_offset
        if not start <= wanted.fetch_offset <= end:
            raise OffsetOutOfRange(log.name, wanted.fetch_offset, start, end)
        max_bytes = max(0, min(wanted.partition_max_bytes, room.left))
        batches = _batches(log, wanted.fetch_offset, max_bytes, params, room, context)
    except (LogError, Refused) as e:
        name = one.topic or ""
        if may_be_of_an_old_manifest(e):
            context.logs.outdated(name)
        if is_ours(e):
            context.report(f"a fetch of {name}-{wanted.partition} at {wanted.fetch_offset}: {e}")
        answer = replace(_error(wanted, code_of(e)), aborted_transactions=None)
        return answer if params.version < _LEADERS_SINCE else _with_leader(answer, topic, context.cluster.live)
    is_cut = batches.next_offset < log.end_offset(isolation)
    room.take(batches.size, max(batches.size, max_bytes) if is_cut else batches.size)
    return _of_log(wanted, log, isolation, batches, EpochEndOffset())


def _log(topic: HostedTopic | LogError, one: Wanted, params: _FetchParams, context: Context) -> TieredLog:
    """The partition's log. Raises Refused, LogError.

    Where another broker led the partition a moment ago, the client may have an offset of a newer manifest: to answer that it is
    out of range would make the client begin anew. The manifest is loaded first, or the client asks again if it just was.
    """
    if isinstance(topic, HostedTopic) and one.topic_id not in (ZERO_TOPIC_ID, topic.id):
        raise Refused(ErrorCode.INCONSISTENT_TOPIC_ID)  # of a session: deleted, and created anew with its name
    live, number, epoch = context.cluster.live, one.asked.partition, max(NO_EPOCH, one.asked.current_leader_epoch)
    if not context.may_wait:
        _require_measured(topic, number)
    log = log_of(topic, number, epoch, live)
    if params.is_from_follower:  # there is no other replica
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER if epoch == NO_EPOCH else ErrorCode.UNKNOWN_LEADER_EPOCH)
    if one.asked.fetch_offset <= log.log_end_offset or len(live.brokers) == 1 or not isinstance(topic, HostedTopic):
        return log
    if not context.may_wait:
        raise NotAtHand
    return newest_log_of(topic, number, epoch, context.clock.hi_res_clock_ms(), context)


def _require_measured(topic: HostedTopic | LogError, number: int) -> None:
    """Raises NotAtHand if the local log has to be looked at."""
    log = topic.partitions.get(number) if isinstance(topic, HostedTopic) else None
    if isinstance(log, TieredLog) and log.local is not None and not log.local.is_measured:
        raise NotAtHand


def _with_leader(answer: PartitionData, topic: HostedTopic | LogError, live: LiveBrokers) -> PartitionData:
    """Tells those who ask a broker that does not lead, or with the epoch of a former leader, who leads now."""
    is_elsewhere = answer.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
    if not is_elsewhere or isinstance(topic, LogError):
        return answer
    log, leader = topic.partitions[answer.partition_index], live.leader_of(topic.name, answer.partition_index)
    epoch = NO_EPOCH if isinstance(log, LogError) else leader_epoch_of(log)
    return replace(answer, current_leader=LeaderIdAndEpoch(leader, epoch))


def _batches(log: TieredLog, offset: int, max_bytes: int, params: _FetchParams, room: _Room, context: Context) -> Batches:
    version, isolation = params.version, params.isolation
    if not context.may_wait:
        if version < _BATCHES_SINCE:
            raise NotAtHand
        return context.reads.read_at_once(log, offset, max_bytes, isolation, one_at_least=room.one_at_least)
    if version >= _BATCHES_SINCE:
        return context.reads.read(log, offset, max_bytes, isolation, one_at_least=room.one_at_least)
    to_magic = int(version >= _TIMESTAMPS_SINCE)
    older = tuple(log.fetch_older(offset, max_bytes, to_magic, isolation, min_one_message=room.one_at_least))
    if not older and offset < log.end_offset(isolation):
        # An answer without any message would look like the end of the log: the batches that fit may have none.
        if version < _MAX_BYTES_SINCE:
            older = (_LARGER_MESSAGE[:max_bytes],)
        elif room.one_at_least:
            older = (_LARGER_MESSAGE,)
    return Batches(older, sum(map(len, older)), None, log.end_offset(isolation))


def _diverging(log: TieredLog, wanted: FetchPartition) -> EpochEndOffset | None:
    """Where the client's log and this one part, None if they do not."""
    if wanted.last_fetched_epoch < 0:
        return None
    known = log.end_offset_for(wanted.last_fetched_epoch)
    if known is None or wanted.fetch_offset < log.log_start_offset:
        raise OffsetOutOfRange(log.name, wanted.fetch_offset, log.log_start_offset, log.log_end_offset)
    if known.epoch < wanted.last_fetched_epoch or known.start_offset < wanted.fetch_offset:
        return EpochEndOffset(known.epoch, known.start_offset)
    return None


def _of_log(
    wanted: FetchPartition, log: TieredLog, isolation: Isolation, batches: Batches, diverging: EpochEndOffset
) -> PartitionData:
    high_watermark = log.end_offset()
    committed = isolation is Isolation.read_committed
    aborted = batches.aborted
    return PartitionData(
        partition_index=wanted.partition,
        high_watermark=high_watermark,
        # Finding it takes a look at every producer, which only those who read committed records need.
        last_stable_offset=log.end_offset(Isolation.read_committed) if committed else high_watermark,
        log_start_offset=log.log_start_offset,
        diverging_epoch=diverging,
        aborted_transactions=None
        if aborted is None
        else tuple(AbortedTransaction(t.producer_id, t.first_offset) for t in aborted),
        records=batches.parts,
    )


def _error(wanted: FetchPartition, code: ErrorCode) -> PartitionData:
    return PartitionData(wanted.partition, code, high_watermark=-1)


def _refused(request: FetchRequest, version: int, code: ErrorCode) -> FetchResponse:
    """The whole request is; versions before topic ids say so of each partition."""
    answers = (
        FetchableTopicResponse(topic.topic, partitions=tuple(_error(one, code) for one in topic.partitions))
        for topic in request.topics
    )
    responses = tuple(answers) if version < TOPIC_IDS_SINCE else ()
    return FetchResponse(error_code=code, session_id=request.session_id, responses=responses)
