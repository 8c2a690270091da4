"""Fetch: batches from both tiers, and whether an answer should wait for more."""

from dataclasses import dataclass
from itertools import chain

from local_log.errors import LogError, OffsetOutOfRange
from tiering.endpoint.apis.context import (
    Context,
    Refused,
    code_of,
    is_ours,
    isolation_of,
    log_of,
    may_be_of_an_old_manifest,
    topic_named,
)
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tiering.endpoint.reads import Batches
from tiering.endpoint.request_context import RequestContext
from tiering.read.tiered_log import Isolation, TieredLog

_Hosted = HostedTopic | LogError | None

_BY_ID_SINCE = 13
_MAX_BYTES_SINCE = 3
"""Older versions may be answered with nothing if the first batch is larger than what is asked for."""
_BATCHES_SINCE, _TIMESTAMPS_SINCE = 4, 2


@dataclass(slots=True)
class _Room:
    """What is left of the bytes that a request may be answered with; one batch at least is."""

    left: int
    one_at_least: bool
    size: int = 0

    def take(self, size: int) -> None:
        self.left = max(0, self.left - size)
        self.size += size
        self.one_at_least = self.one_at_least and not size


def fetch(request: FetchRequest, request_context: RequestContext, context: Context, *, may_wait: bool) -> FetchResponse | None:
    """The answer; None if it has fewer than `min_bytes` and no error, and may wait.

    There are no fetch sessions: a full request is answered with session 0, and an incremental one is refused, as by a broker
    that has forgotten the session.
    """
    if request.session_id != 0:
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    version = request_context.version
    room = _Room(min(request.max_bytes, context.fetch_bytes_max), version >= _MAX_BYTES_SINCE)
    found = tuple(_topic(one, request, version, room, context) for one in request.topics)
    answers = chain.from_iterable(one.partitions for one in found)
    is_short = room.size < request.min_bytes and all(not a.error_code and a.diverging_epoch.epoch < 0 for a in answers)
    if may_wait and is_short and request.topics:
        return None
    return FetchResponse(responses=found)


def _topic(wanted: FetchTopic, request: FetchRequest, version: int, room: _Room, context: Context) -> FetchableTopicResponse:
    by_id = version >= _BY_ID_SINCE
    topic = context.logs.topic_by_id(wanted.topic_id) if by_id else topic_named(context, wanted.topic)
    if topic is None and by_id:
        unknown = tuple(_error(one, ErrorCode.UNKNOWN_TOPIC_ID) for one in wanted.partitions)
        return FetchableTopicResponse(wanted.topic, wanted.topic_id, unknown)
    isolation = isolation_of(request.isolation_level)
    answers = tuple(_partition(topic, one, version, isolation, room, context) for one in wanted.partitions)
    return FetchableTopicResponse(wanted.topic, wanted.topic_id, answers)


def _partition(  # one argument each of what Kafka's readFromLog is given
    topic: HostedTopic | LogError | None,
    wanted: FetchPartition,
    version: int,
    isolation: Isolation,
    room: _Room,
    context: Context,
) -> PartitionData:
    try:
        log = log_of(topic, wanted.partition, wanted.current_leader_epoch, context.cluster.live)
        diverging = _diverging(log, wanted)
        if diverging is not None:
            return _of_log(wanted, log, isolation, Batches((), 0, None), diverging)
        start, end = log.log_start_offset, log.log_end_offset
        if not start <= wanted.fetch_offset <= end:
            raise OffsetOutOfRange(log.name, wanted.fetch_offset, start, end)
        max_bytes = max(0, min(wanted.partition_max_bytes, room.left))
        batches = _batches(log, wanted.fetch_offset, max_bytes, version, isolation, room, context)
    except (LogError, Refused) as e:
        name = topic.name if isinstance(topic, HostedTopic) else "a topic that cannot be opened"
        if may_be_of_an_old_manifest(e):
            context.logs.outdated(name)
        if is_ours(e):
            context.report(f"a fetch of {name}-{wanted.partition} at {wanted.fetch_offset}: {e}")
        return _error(wanted, code_of(e))
    room.take(batches.size)
    return _of_log(wanted, log, isolation, batches, EpochEndOffset())


def _batches(  # one argument each of what Kafka's readFromLog is given
    log: TieredLog, offset: int, max_bytes: int, version: int, isolation: Isolation, room: _Room, context: Context
) -> Batches:
    if version >= _BATCHES_SINCE:
        return context.reads.read(log, offset, max_bytes, isolation, one_at_least=room.one_at_least)
    # To a client of before that rule an answer without any batch would look like the end of the log.
    one_at_least = room.one_at_least or (version < _MAX_BYTES_SINCE and room.left > 0)
    to_magic = int(version >= _TIMESTAMPS_SINCE)
    older = tuple(log.fetch_older(offset, max_bytes, to_magic, isolation, min_one_message=one_at_least))
    return Batches(older, sum(map(len, older)), None)


def _diverging(log: TieredLog, wanted: FetchPartition) -> EpochEndOffset | None:
    """Where the client's log and this one part, None if they do not."""
    if wanted.last_fetched_epoch < 0:
        return None
    known = log.end_offset_for(wanted.last_fetched_epoch)
    if known is None:
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
