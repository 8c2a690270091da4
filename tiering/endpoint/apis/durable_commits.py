"""Commits of offsets are answered when they are on the disk, if that is waited for."""

from concurrent.futures import Future
from dataclasses import replace
from typing import Any, TypeVar

from local_log.errors import LogError
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.later import later
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.offset_commit import OffsetCommitResponse
from tiering.endpoint.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse

Committed = TypeVar("Committed", OffsetCommitResponse, TxnOffsetCommitResponse)


def when_synced(found: Committed, group: str, context: Context) -> "Committed | Future[Committed]":
    """The answer, when what was committed is on the disk, if that is waited for."""
    if context.group_commit is None:
        return found
    try:
        log = context.groups.log_of(group)
    except LogError as e:
        return _unless_lost(found, group, e, context)
    synced = context.group_commit.sync([log])
    return later(synced, lambda errors: _unless_lost(found, group, errors.get(log.folder.path), context))


def _unless_lost(found: Committed, group: str, error: LogError | None, context: Context) -> Committed:
    """The answer, if the log that was appended to could be synced."""
    if error is None:
        return found
    context.report(f"committed offsets of group {group} are not synced: {error}")

    def told(one: Any) -> Any:
        return one if one.error_code else replace(one, error_code=ErrorCode.NOT_COORDINATOR)

    topics: Any = tuple(replace(topic, partitions=tuple(map(told, topic.partitions))) for topic in found.topics)
    return replace(found, topics=topics)
