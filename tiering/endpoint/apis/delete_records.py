"""DeleteRecords: logs begin at a later offset (Kafka's ReplicaManager.deleteRecords)."""

from local_log.errors import LogError, OffsetOutOfRange
from local_log.formats.filenames import TopicPartition
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import INTERNAL_TOPICS, Context
from tiering.endpoint.apis.own_logs import own_tier, refusal_code
from tiering.endpoint.authorization.acls import Operation, ResourceType
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from tiering.endpoint.request_context import RequestContext

_HIGH_WATERMARK = -1
"""As an offset: all records that there are."""
_UNKNOWN = -1


def delete_records(request: DeleteRecordsRequest, request_context: RequestContext, context: Context) -> DeleteRecordsResponse:
    """Deletes the first records of each partition. Of a partition that is named twice the last offset counts."""
    own_tier(context)
    wanted: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update((one.partition_index, one.offset) for one in topic.partitions)

    def deleted(name: str, number: int, offset: int, *, is_allowed: bool) -> DeleteRecordsPartitionResult:
        found = _deleted(name, number, offset, context) if is_allowed else ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if isinstance(found, ErrorCode):
            return DeleteRecordsPartitionResult(number, _UNKNOWN, found)
        return DeleteRecordsPartitionResult(number, found, ErrorCode.NONE)

    results = []
    for name, offsets in wanted.items():
        may = is_authorized(context, request_context, Operation.DELETE, ResourceType.TOPIC, name)
        partitions = (deleted(name, number, offset, is_allowed=may) for number, offset in offsets.items())
        results.append(DeleteRecordsTopicResult(name, tuple(partitions)))
    return DeleteRecordsResponse(topics=tuple(results))


def _deleted(name: str, number: int, offset: int, context: Context) -> int | ErrorCode:
    """Where the log starts now."""
    tier = own_tier(context)
    topic = tier.topics().get(name)
    if topic is None or number not in topic.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if name in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    try:
        log = tier.log(TopicPartition(name, number))
        if "delete" not in log.folder.config.cleanup_policy:
            return ErrorCode.POLICY_VIOLATION
        start = log.high_watermark if offset == _HIGH_WATERMARK else offset
        if start < 0:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        log.maybe_increment_log_start_offset(start)
    except OffsetOutOfRange:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    except LogError as e:
        return refusal_code(e, f"records of {name}-{number} are not deleted", context)
    return log.log_start_offset
