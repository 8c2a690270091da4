"""Fetch: batches from both tiers, and whether an answer should wait for more."""

from dataclasses import dataclass

from local_log.errors import LogError, OffsetOutOfRange
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
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
from tiering.endpoint.fetch_sessions.contexts import FetchContext
from tiering.endpoint.fetch_sessions.manager import TOPIC_IDS_SINCE
from tiering.endpoint.fetch_sessions.session import Wanted
from tiering.endpoint.hosted_logs import RETRY_MS, HostedTopic
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from tiering.endpoint.reads import Batches
from tiering.endpoint.request_context import RequestContext
from tiering.read.tiered_log import Isolation, TieredLog

_Hosted = HostedTopic | LogError | None

_MAX_BYTES_SINCE = 3
"""Older versions may be answered with nothing if the first batch is larger than what is asked for."""
_BATCHES_SINCE, _TIMESTAMPS_SINCE = 4, 2


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


def begin_fetch(request: FetchRequest, request_context: RequestContext, context: Context) -> FetchContext:
    """What the request reads, according to its session; to be done once a request."""
    if request_context.version >= TOPIC_IDS_SINCE:
        context.logs.open_by_id(topic.topic_id for topic in request.topics)
    return context.fetches.begin(request, request_context.version, context.logs.name_of, context.clock.now_ms())


def fetch(
    begun: FetchContext, request: FetchRequest, request_context: RequestContext, context: Context, *, may_wait: bool
) -> FetchResponse | None:
    """The answer; None if it has fewer than `min_bytes` and no error, and may wait."""
    version = request_context.version
    bytes_max = min(request.max_bytes, context.fetch_bytes_max)
    room = _Room(bytes_max, version >= _MAX_BYTES_SINCE)
    isolation = isolation_of(request.isolation_level)
    topics: dict[str, _Hosted] = {}
    answers: list[tuple[Wanted, PartitionData]] = []
    unknown: list[tuple[Wanted, PartitionData]] = []
    for wanted in begun.wanted:
        name, number = wanted.topic, wanted.asked.partition
        if name is not None and name not in topics:
            topics[name] = topic_named(context, name)
        topic = None if name is None else topics[name]
        if topic is None or (isinstance(topic, HostedTopic) and number not in topic.partitions):
            code = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            unknown.append((wanted, _error(wanted.asked, code)))
        else:
            answers.append((wanted, _partition(topic, wanted, version, isolation, room, context)))
    is_short = room.found < min(request.min_bytes, bytes_max)
    if may_wait and answers and is_short and not any(a.error_code or a.diverging_epoch.epoch >= 0 for _, a in answers):
        return None
    return begun.respond(answers + unknown, context.clock.now_ms())


def _partition(  # one argument each of what Kafka's readFromLog is given
    topic: HostedTopic | LogError, one: Wanted, version: int, isolation: Isolation, room: _Room, context: Context
) -> PartitionData:
    wanted = one.asked
    try:
        _refuse_another_topic(topic, one)
        log = _log(topic, wanted, context)
        diverging = _diverging(log, wanted)
        if diverging is not None:
            return _of_log(wanted, log, isolation, Batches((), 0, None, wanted.fetch_offset), diverging)
        start, end = log.log_start_offset, log.log_end_offset
        if not start <= wanted.fetch_offset <= end:
            raise OffsetOutOfRange(log.name, wanted.fetch_offset, start, end)
        max_bytes = max(0, min(wanted.partition_max_bytes, room.left))
        batches = _batches(log, wanted.fetch_offset, max_bytes, version, isolation, room, context)
    except (LogError, Refused) as e:
        name = one.topic or ""
        if may_be_of_an_old_manifest(e):
            context.logs.outdated(name)
        if is_ours(e):
            context.report(f"a fetch of {name}-{wanted.partition} at {wanted.fetch_offset}: {e}")
        return _error(wanted, code_of(e))
    is_cut = batches.next_offset < log.end_offset(isolation)
    room.take(batches.size, max(batches.size, max_bytes) if is_cut else batches.size)
    return _of_log(wanted, log, isolation, batches, EpochEndOffset())


def _refuse_another_topic(topic: HostedTopic | LogError, one: Wanted) -> None:
    """The topic of a session may have been deleted, and created anew with its name."""
    if isinstance(topic, HostedTopic) and one.topic_id not in (ZERO_TOPIC_ID, topic.id):
        raise Refused(ErrorCode.INCONSISTENT_TOPIC_ID)


def _log(topic: HostedTopic | LogError | None, wanted: FetchPartition, context: Context) -> TieredLog:
    """The partition's log. Raises Refused, LogError.

    Where another broker led the partition a moment ago, the client may have an offset of a newer manifest: to answer that it is
    out of range would make the client begin anew. The manifest is loaded first, or the client asks again if it just was.
    """
    live = context.cluster.live
    log = log_of(topic, wanted.partition, wanted.current_leader_epoch, live)
    if wanted.fetch_offset <= log.log_end_offset or len(live.brokers) == 1 or not isinstance(topic, HostedTopic):
        return log
    now_ms = context.clock.now_ms()
    if now_ms - topic.loaded_ms < RETRY_MS:
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # of those that make a client wait and retry, the one that all know
    return log_of(context.logs.reloaded(topic.name, now_ms), wanted.partition, wanted.current_leader_epoch, live)


def _batches(  # one argument each of what Kafka's readFromLog is given
    log: TieredLog, offset: int, max_bytes: int, version: int, isolation: Isolation, room: _Room, context: Context
) -> Batches:
    if version >= _BATCHES_SINCE:
        return context.reads.read(log, offset, max_bytes, isolation, one_at_least=room.one_at_least)
    # To a client of before that rule an answer without any batch would look like the end of the log.
    one_at_least = room.one_at_least or (version < _MAX_BYTES_SINCE and room.left > 0)
    to_magic = int(version >= _TIMESTAMPS_SINCE)
    older = tuple(log.fetch_older(offset, max_bytes, to_magic, isolation, min_one_message=one_at_least))
    return Batches(older, sum(map(len, older)), None, log.end_offset(isolation))


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
