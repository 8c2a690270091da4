"""DescribeProducers: who has written to a partition of the log directory lately, and which transactions are open."""

from typing import Final

from local_log.errors import LogError
from local_log.formats.producer_snapshot import ProducerEntry
from tiering.endpoint.apis.context import NO_EPOCH, Context, Refused, code_of, is_ours, log_of, topic_named, unknown_topic
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)

EXPIRATION_MS: Final = 86_400_000
"""`producer.id.expiration.ms`: after so long without a batch a broker has forgotten a producer, but for open transactions."""


def describe_producers(request: DescribeProducersRequest, context: Context) -> DescribeProducersResponse:
    """The producers a partition; none for a partition that is in the archive alone, where nobody writes."""
    found: dict[tuple[str, int], PartitionResponse] = {}
    return DescribeProducersResponse(topics=tuple(_topic(one, found, context) for one in request.topics))


def _topic(wanted: TopicRequest, found: dict[tuple[str, int], PartitionResponse], context: Context) -> TopicResponse:
    """`found` are the partitions that were asked for before: one that is named many times is looked at once."""
    topic = topic_named(context, wanted.name)
    if topic is None:
        code = unknown_topic(wanted.name)
        return TopicResponse(wanted.name, tuple(PartitionResponse(number, code) for number in wanted.partition_indexes))
    for number in wanted.partition_indexes:
        if (wanted.name, number) not in found:
            found[wanted.name, number] = _partition(topic, number, context)
    return TopicResponse(wanted.name, tuple(found[wanted.name, number] for number in wanted.partition_indexes))


def _partition(topic: HostedTopic | LogError, number: int, context: Context) -> PartitionResponse:
    try:
        log = log_of(topic, number, NO_EPOCH, context.cluster.live)
        found = log.local.newest_producers() if log.local is not None else ()
    except (LogError, Refused) as e:
        if is_ours(e):
            context.report(f"the producers of partition {number} of a topic: {e}")
        return PartitionResponse(number, code_of(e))
    since_ms = context.clock.now_ms() - EXPIRATION_MS
    known = (p for p in found if p.last_timestamp > since_ms or p.current_txn_first_offset is not None)
    return PartitionResponse(number, active_producers=tuple(map(_state, known)))


def _state(producer: ProducerEntry) -> ProducerState:
    first = producer.current_txn_first_offset
    return ProducerState(
        producer.producer_id,
        producer.producer_epoch,
        producer.last_sequence,
        producer.last_timestamp,
        producer.coordinator_epoch,
        -1 if first is None else first,
    )
