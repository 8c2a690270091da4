"""ListOffsets and OffsetForLeaderEpoch: offsets by time and by leader epoch, over both tiers."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from local_log.errors import LogError
from local_log.formats.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from tiering.endpoint.apis.context import (
    ISOLATION_LEVELS,
    Context,
    Refused,
    code_of,
    is_ours,
    isolation_of,
    leader_epoch_of,
    log_of,
    newest_log_of,
    topic_named,
)
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from tiering.endpoint.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from tiering.endpoint.request_context import RequestContext
from tiering.read.segments_before import segments_before
from tiering.read.tiered_log import Isolation, TieredLog

OFFSETS_MAX: Final = 1_000_000
"""Of all partitions in one answer of version 0: 8 MB."""
_CONSUMER: Final = -1
"""The replica id of consumers."""
_SINCE: Final = {
    EARLIEST: 0,
    LATEST: 0,
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version of ListOffsets that knows a special timestamp."""


def list_offsets(request: ListOffsetsRequest, request_context: RequestContext, context: Context) -> ListOffsetsResponse:
    """An offset a partition; in version 0 the segments before a time. A partition that is asked for twice is refused."""
    version, topics = request_context.version, request.topics
    if request.isolation_level not in ISOLATION_LEVELS:
        return ListOffsetsResponse(topics=tuple(_refused(one, ErrorCode.UNKNOWN_SERVER_ERROR) for one in topics))
    times = Counter((topic.name, one.partition_index) for topic in topics for one in topic.partitions)
    twice = {asked for asked, count in times.items() if count > 1 and version > 0}
    if version > 0:
        topics = _merged(topics)
    room = _Room(OFFSETS_MAX)
    isolation = isolation_of(request.isolation_level) if request.replica_id == _CONSUMER else Isolation.read_uncommitted
    found = []
    for wanted in topics:
        topic = topic_named(context, wanted.name)
        answers = (
            _error(one, ErrorCode.INVALID_REQUEST)
            if (wanted.name, one.partition_index) in twice
            else _offset(topic, one, version, isolation, room, context)
            for one in wanted.partitions
        )
        found.append(ListOffsetsTopicResponse(wanted.name, tuple(answers)))
    return ListOffsetsResponse(topics=tuple(found))


def _merged(topics: Iterable[ListOffsetsTopic]) -> tuple[ListOffsetsTopic, ...]:
    """Each topic and each of its partitions once."""
    partitions = defaultdict[str, dict[int, ListOffsetsPartition]](dict)
    for topic in topics:
        for one in topic.partitions:
            partitions[topic.name][one.partition_index] = one
    return tuple(ListOffsetsTopic(name, tuple(of_it.values())) for name, of_it in partitions.items())


def _refused(topic: ListOffsetsTopic, code: ErrorCode) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(topic.name, tuple(_error(one, code) for one in topic.partitions))


def _error(wanted: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(wanted.partition_index, code)


@dataclass(slots=True)
class _Room:
    """How many offsets an answer of version 0 may have yet: a client may ask for all of each partition, and for that again."""

    left: int

    def before(self, timestamp: int, log: TieredLog, count: int, now_ms: int) -> tuple[int, ...]:
        """So many of them at most. Raises Refused."""
        found = segments_before(log.whole(), timestamp, now_ms)[: max(0, count)] if self.left > 0 else ()
        self.left -= len(found)
        if self.left <= 0:
            raise Refused(ErrorCode.INVALID_REQUEST)
        return tuple(found)


def _offset(
    topic: HostedTopic | LogError | None,
    wanted: ListOffsetsPartition,
    version: int,
    isolation: Isolation,
    room: _Room,
    context: Context,
) -> ListOffsetsPartitionResponse:
    number, timestamp = wanted.partition_index, wanted.timestamp
    try:
        _refuse_newer(timestamp, version)
        log = log_of(topic, number, wanted.current_leader_epoch, context.cluster.live)
        if version == 0:
            offsets = room.before(timestamp, log, wanted.max_num_offsets, context.clock.now_ms())
            return ListOffsetsPartitionResponse(number, old_style_offsets=offsets)
        found = log.list_offsets(timestamp, isolation)
    except (LogError, Refused) as e:
        return _error(wanted, _reported(e, wanted, topic, context))
    if found is None:
        return ListOffsetsPartitionResponse(number)
    epoch = leader_epoch_of(log) if timestamp == LATEST else found.leader_epoch  # of the next record, not of the last one
    return ListOffsetsPartitionResponse(number, timestamp=found.timestamp, offset=found.offset, leader_epoch=epoch)


def _refuse_newer(timestamp: int, version: int) -> None:
    if timestamp < 0 and version < _SINCE.get(timestamp, version + 1):
        raise Refused(ErrorCode.UNSUPPORTED_VERSION)


def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, context: Context) -> OffsetForLeaderEpochResponse:
    """The end of an epoch a partition."""
    found, asked_ms = [], context.clock.hi_res_clock_ms()
    for wanted in request.topics:
        topic = topic_named(context, wanted.topic)
        answers = tuple(_end(topic, one, asked_ms, context) for one in wanted.partitions)
        found.append(OffsetForLeaderTopicResult(wanted.topic, answers))
    return OffsetForLeaderEpochResponse(topics=tuple(found))


def _end(
    topic: HostedTopic | LogError | None, wanted: OffsetForLeaderPartition, asked_ms: int, context: Context
) -> EpochEndOffset:
    """Where an epoch ends.

    Consumers ask when a partition has another leader, and go back to the end if they are past it. That of the newest epoch is the
    log's, and only the newest manifest says where that is.
    """
    try:
        log = log_of(topic, wanted.partition, wanted.current_leader_epoch, context.cluster.live)
        found = log.end_offset_for(wanted.leader_epoch)
        is_newest = wanted.leader_epoch >= leader_epoch_of(log)
        if is_newest and len(context.cluster.live.brokers) > 1 and isinstance(topic, HostedTopic):
            log = newest_log_of(topic, wanted.partition, wanted.current_leader_epoch, asked_ms, context)
            found = log.end_offset_for(wanted.leader_epoch)
    except (LogError, Refused) as e:
        return EpochEndOffset(_reported(e, wanted, topic, context), wanted.partition)
    if found is None:
        return EpochEndOffset(partition=wanted.partition)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=found.epoch, end_offset=found.start_offset)


def _reported(error: LogError | Refused, wanted: object, topic: HostedTopic | LogError | None, context: Context) -> ErrorCode:
    if is_ours(error):
        name = topic.name if isinstance(topic, HostedTopic) else "a topic that cannot be opened"
        context.report(f"{name}: {wanted}: {error}")
    return code_of(error)
