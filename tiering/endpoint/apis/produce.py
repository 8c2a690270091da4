"""Produce: refused, with the reason."""

from typing import Final

from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

REASON: Final = "this endpoint reads an archive and takes no records: produce to the brokers that own the topic"


def produce(request: ProduceRequest) -> ProduceResponse:
    """Refuses every partition. Old versions have no room for the reason; their clients print that of the error code."""
    return ProduceResponse(responses=tuple(map(_refused, request.topic_data)))


def _refused(topic: TopicProduceData) -> TopicProduceResponse:
    partitions = (
        PartitionProduceResponse(one.index, ErrorCode.POLICY_VIOLATION, base_offset=-1, error_message=REASON)
        for one in topic.partition_data
    )
    return TopicProduceResponse(topic.name, topic.topic_id, tuple(partitions))
