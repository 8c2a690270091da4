"""DescribeLogDirs and AlterReplicaLogDirs.

The first gives the sizes of logs in log directories and of their volumes, or of those in the archive where there is none.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from local_log.disk import Disk
from local_log.errors import LogError
from local_log.formats.filenames import FUTURE_DIR, TopicPartition, marked_log_dir
from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.own_logs import own_tier, refusal_code
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from tiering.endpoint.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tiering.endpoint.request_context import RequestContext
from tiering.local_tier.errors import UnknownTopicOrPartition
from tiering.read.tiered_log import TieredLog

_NAME_MAX: Final = 255
_UNIQUE_ID: Final = "0" * 32


def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    """Each directory, with the partitions asked for that are in it."""
    return DescribeLogDirsResponse(results=tuple(_directory(*one, request, context) for one in context.logs.directories()))


def _directory(place: str, disk: Disk | None, request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResult:
    try:
        space = None if disk is None else disk.space(place)
        topics = tuple(_topics(place, disk, request, context))
    except LogError as e:
        context.report(f"the sizes of logs in {place}: {e}")
        return DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, place)
    result = DescribeLogDirsResult(log_dir=place, topics=topics)
    return result if space is None else replace(result, total_bytes=space.total, usable_bytes=space.usable)


def _topics(place: str, disk: Disk | None, request: DescribeLogDirsRequest, context: Context) -> Iterator[DescribeLogDirsTopic]:
    if request.topics is None:
        everything = context.logs.everything()
        wanted: Iterable[tuple[str, HostedTopic | LogError | None, set[int] | None]] = (
            (name, topic, None) for name, topic in everything.items()
        )
    else:
        asked = defaultdict[str, set[int]](set)
        for one in request.topics:
            asked[one.topic].update(one.partitions)
        wanted = ((name, context.logs.topic(name), numbers) for name, numbers in asked.items())
    for name, topic, numbers in wanted:
        if isinstance(topic, HostedTopic):
            logs = _wanted(topic, numbers)
            found = [_archived(n, log) if disk is None else _local(n, log, place) for n, log in logs]
            partitions = tuple(one for one in found if one is not None)
            if partitions:
                yield DescribeLogDirsTopic(name, partitions)


def _wanted(topic: HostedTopic, numbers: set[int] | None) -> list[tuple[int, TieredLog | LogError]]:
    """The partitions with these numbers, or all, in order."""
    found = topic.partitions if numbers is None else numbers & topic.partitions.keys()
    return [(number, topic.partitions[number]) for number in sorted(found)]


def _archived(number: int, log: TieredLog | LogError) -> DescribeLogDirsPartition | None:
    """The log in the archive, None if it is not there."""
    if isinstance(log, LogError) or log.archived is None:
        return None
    return DescribeLogDirsPartition(number, log.archived.manifest.log_bytes)


def _local(number: int, log: TieredLog | LogError, path: str) -> DescribeLogDirsPartition | None:
    """The log in the directory at `path`, None if it is not there."""
    if isinstance(log, LogError) or log.local is None or log.local.folder.rpartition("/")[0] != path:
        return None
    size = sum(segment.size() for segment in log.local.segments)
    return DescribeLogDirsPartition(number, size, log.local.log_end_offset - log.local.high_watermark)


def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, request_context: RequestContext, context: Context
) -> AlterReplicaLogDirsResponse:
    """Logs stay where they are: one that is to be in its own directory is there, and others are refused.

    Of a partition that is named twice the last directory counts.
    """
    own_tier(context)
    may = is_authorized(context, request_context, Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME)
    wanted = dict[str, dict[int, str]]()
    for one in request.dirs:
        for topic in one.topics:
            wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partitions, one.path))

    def altered(partition: TopicPartition, path: str) -> AlterReplicaLogDirPartitionResult:
        code = _moved(partition, path, context) if may else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return AlterReplicaLogDirPartitionResult(partition.partition, code)

    results = (
        AlterReplicaLogDirTopicResult(name, tuple(altered(TopicPartition(name, n), path) for n, path in paths.items()))
        for name, paths in wanted.items()
    )
    return AlterReplicaLogDirsResponse(results=tuple(results))


def _moved(partition: TopicPartition, path: str, context: Context) -> ErrorCode:
    tier = own_tier(context)
    if len(marked_log_dir(partition, _UNIQUE_ID, FUTURE_DIR)) > _NAME_MAX:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in tier.directories:
        return ErrorCode.LOG_DIR_NOT_FOUND
    try:
        folder = tier.log(partition).folder.path
    except UnknownTopicOrPartition:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    except LogError as e:
        return refusal_code(e, f"{partition} is not moved to {path}", context)
    if folder == f"{path}/{partition}":
        return ErrorCode.NONE
    context.report(f"{partition} is not moved to {path}: logs stay in their directories")
    return ErrorCode.POLICY_VIOLATION
