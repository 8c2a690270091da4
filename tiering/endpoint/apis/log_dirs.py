"""DescribeLogDirs: the sizes of logs in the log directory and of its volume, or of those in the archive where there is none."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace

from local_log.errors import LogError
from local_log.log_reader import LogReader
from tiering.endpoint.apis.context import Context
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tiering.read.tiered_log import TieredLog


def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    """One directory, with the partitions asked for that are in it."""
    tiers = context.logs.tiers
    place = tiers.log_dir.path if tiers.log_dir is not None else tiers.store.url if tiers.store is not None else ""
    try:
        space = None if tiers.log_dir is None else tiers.log_dir.disk.space(place)
        topics = tuple(_topics(request, context))
    except LogError as e:
        context.report(f"the sizes of logs in {place}: {e}")
        return DescribeLogDirsResponse(results=(DescribeLogDirsResult(ErrorCode.KAFKA_STORAGE_ERROR, place),))
    result = DescribeLogDirsResult(log_dir=place, topics=topics)
    if space is not None:
        result = replace(result, total_bytes=space.total, usable_bytes=space.usable)
    return DescribeLogDirsResponse(results=(result,))


def _topics(request: DescribeLogDirsRequest, context: Context) -> Iterator[DescribeLogDirsTopic]:
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
            found = [
                _partition(number, log, in_archive=context.logs.tiers.log_dir is None) for number, log in _wanted(topic, numbers)
            ]
            partitions = tuple(one for one in found if one is not None)
            if partitions:
                yield DescribeLogDirsTopic(name, partitions)


def _wanted(topic: HostedTopic, numbers: set[int] | None) -> list[tuple[int, TieredLog | LogError]]:
    """The partitions with these numbers, or all, in order."""
    found = topic.partitions if numbers is None else numbers & topic.partitions.keys()
    return [(number, topic.partitions[number]) for number in sorted(found)]


def _partition(number: int, log: TieredLog | LogError, *, in_archive: bool) -> DescribeLogDirsPartition | None:
    """The log in the place that is described, None if it is not there."""
    if isinstance(log, LogError):
        return None
    if in_archive:
        return None if log.archived is None else DescribeLogDirsPartition(number, log.archived.manifest.log_bytes)
    if not isinstance(log.local, LogReader):
        return None
    size = sum(segment.size() for segment in log.local.segments)
    return DescribeLogDirsPartition(number, size, log.local.log_end_offset - log.local.high_watermark)
