"""OffsetCommit, OffsetFetch and OffsetDelete: which topics there are, and what the group coordinator says of the others.

Topics are named up to version 9 of the first two, and have ids since. What is committed has the topic's id whenever it is known,
so that a topic that is created anew does not get the offsets of the former one.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Final, NamedTuple

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.apis.context import Context, topic_named
from tiering.endpoint.apis.durable_commits import when_synced
from tiering.endpoint.apis.find_coordinator import check_coordinator
from tiering.endpoint.at_hand import NotAtHand
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.hosted_logs import HostedTopic
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tiering.endpoint.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from tiering.endpoint.request_context import RequestContext

_BY_ID_SINCE: Final = 10
"""Of OffsetCommit and OffsetFetch."""
_GROUPS_SINCE: Final = 8
"""The version of OffsetFetch since which a request asks for several groups."""
_NO_OFFSET: Final = -1


class _Topic(NamedTuple):
    """A topic that there is. Of one that cannot be opened neither the id is known, which is zeros, nor the partitions."""

    name: str
    id: str
    partitions: Mapping[int, object] | None = None

    def may_have(self, number: int) -> bool:
        """Whether there is such a partition, as far as that is known."""
        return self.partitions is None or number in self.partitions


def offset_commit(
    request: OffsetCommitRequest, request_context: RequestContext, context: Context
) -> "OffsetCommitResponse | Future[OffsetCommitResponse]":
    """Keeps the offsets of the partitions that there are. Raises NotAtHand if it had to wait and may not."""
    known, answers = [], []
    for topic in request.topics:
        found = _topic(topic.name, topic.topic_id, request_context, context)
        if isinstance(found, ErrorCode):
            answers.append(_refused(topic, found))
            continue
        wanted = tuple(one for one in topic.partitions if found.may_have(one.partition_index))
        if wanted:
            known.append(OffsetCommitRequestTopic(found.name, found.id, wanted))
        if len(wanted) < len(topic.partitions):
            missing = tuple(one for one in topic.partitions if not found.may_have(one.partition_index))
            answers.append(_refused(replace(topic, partitions=missing), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    if known:
        asked = replace(request, topics=tuple(known))
        try:
            check_coordinator(request.group_id, context)
            answers += _committed(asked, request_context.version, context)
            return when_synced(OffsetCommitResponse(topics=tuple(answers)), request.group_id, context)
        except GroupError as e:
            answers += (_refused(topic, e.code) for topic in known)
    return OffsetCommitResponse(topics=tuple(answers))


def _committed(request: OffsetCommitRequest, version: int, context: Context) -> tuple[OffsetCommitResponseTopic, ...]:
    """Raises GroupError, NotAtHand."""
    if context.may_wait:
        return context.groups.commit_offsets(request, version).topics
    began_ms = context.clock.hi_res_clock_ms()
    if not context.at_once.may(began_ms):
        raise NotAtHand
    found = context.groups.commit_offsets(request, version, may_wait=False)
    context.at_once.took(began_ms, context.clock.hi_res_clock_ms())
    return found.topics


def _refused(topic: OffsetCommitRequestTopic, code: ErrorCode) -> OffsetCommitResponseTopic:
    partitions = tuple(OffsetCommitResponsePartition(one.partition_index, code) for one in topic.partitions)
    return OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions)


def offset_fetch(request: OffsetFetchRequest, request_context: RequestContext, context: Context) -> OffsetFetchResponse:
    """The offsets that groups have committed."""
    if request_context.version >= _GROUPS_SINCE:
        found = {one: _group(one, request.require_stable, request_context, context) for one in dict.fromkeys(request.groups)}
        return OffsetFetchResponse(groups=tuple(map(found.__getitem__, request.groups)))
    topics: tuple[OffsetFetchRequestTopics, ...] | None = None
    if request.topics is not None:
        topics = tuple(OffsetFetchRequestTopics(t.name, partition_indexes=t.partition_indexes) for t in request.topics)
    group = _group(OffsetFetchRequestGroup(request.group_id, topics=topics), request.require_stable, request_context, context)
    return OffsetFetchResponse(topics=tuple(map(_of_one_group, group.topics)), error_code=group.error_code)


def _group(
    asked: OffsetFetchRequestGroup, require_stable: bool, request_context: RequestContext, context: Context
) -> OffsetFetchResponseGroup:
    known: list[OffsetFetchRequestTopics] = []
    unknown: list[OffsetFetchResponseTopics] = []
    for topic in asked.topics or ():
        found = _topic(topic.name, topic.topic_id, request_context, context)
        if not isinstance(found, ErrorCode):
            known.append(replace(topic, name=found.name, topic_id=found.id))
        elif request_context.version < _BY_ID_SINCE:
            known.append(topic)  # as in Kafka, the offsets of a topic that is gone are told until they expire
        else:
            numbers = topic.partition_indexes
            partitions = (OffsetFetchResponsePartitions(n, _NO_OFFSET, metadata="", error_code=found) for n in numbers)
            unknown.append(OffsetFetchResponseTopics(topic_id=topic.topic_id, partitions=tuple(partitions)))
    asked = asked if asked.topics is None else replace(asked, topics=tuple(known))
    try:
        check_coordinator(asked.group_id, context)
        group = context.groups.fetch_offsets(asked, require_stable=require_stable)
    except GroupError as e:
        return OffsetFetchResponseGroup(asked.group_id, error_code=e.code)
    if asked.topics is None and request_context.version >= _BY_ID_SINCE:
        group = replace(group, topics=tuple(_with_ids(group.topics, context)))
    return replace(group, topics=(*group.topics, *unknown))


def _with_ids(topics: Iterable[OffsetFetchResponseTopics], context: Context) -> Iterable[OffsetFetchResponseTopics]:
    for topic in topics:
        found = topic_named(context, topic.name)
        if isinstance(found, HostedTopic):
            yield replace(topic, topic_id=found.id)


def _of_one_group(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    partitions = (
        OffsetFetchResponsePartition(
            one.partition_index, one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code
        )
        for one in topic.partitions
    )
    return OffsetFetchResponseTopic(topic.name, tuple(partitions))


def offset_delete(request: OffsetDeleteRequest, context: Context) -> OffsetDeleteResponse:
    """Forgets the offsets of the partitions that there are."""
    known, answers = [], []
    for topic in request.topics:
        found = topic_named(context, topic.name)
        if isinstance(found, HostedTopic) and not topic.partitions:
            continue
        there = found.partitions if isinstance(found, HostedTopic) else {}
        wanted = tuple(one for one in topic.partitions if one.partition_index in there)
        missing = (one for one in topic.partitions if one.partition_index not in there)
        answers.append(_deleted(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        known.append(OffsetDeleteRequestTopic(topic.name, wanted))
    try:
        check_coordinator(request.group_id, context)
        found_topics = context.groups.delete_offsets(replace(request, topics=tuple(known))).topics
    except GroupError as e:
        return OffsetDeleteResponse(e.code)
    pairs = zip(answers, found_topics, strict=True)
    return OffsetDeleteResponse(topics=tuple(replace(of, partitions=(*of.partitions, *found.partitions)) for of, found in pairs))


def _deleted(
    topic: OffsetDeleteRequestTopic, partitions: Iterable[OffsetDeleteRequestPartition], code: ErrorCode
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        topic.name, tuple(OffsetDeleteResponsePartition(one.partition_index, code) for one in partitions)
    )


def _topic(name: str, topic_id: str, request_context: RequestContext, context: Context) -> _Topic | ErrorCode:
    """A topic, or the error that says that there is none. Raises NotAtHand."""
    if request_context.version < _BY_ID_SINCE:
        by_name = topic_named(context, name)
        if isinstance(by_name, HostedTopic):
            return _Topic(name, by_name.id, by_name.partitions)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if by_name is None else _Topic(name, ZERO_TOPIC_ID)
    if not context.may_wait:
        known = context.logs.name_of(topic_id)
        by_id = None if known is None else context.logs.at_hand(known)
        if not isinstance(by_id, HostedTopic) or by_id.id != topic_id:
            raise NotAtHand
        return _Topic(by_id.name, by_id.id, by_id.partitions)
    found = context.logs.topic_by_id(topic_id)
    return ErrorCode.UNKNOWN_TOPIC_ID if found is None else _Topic(found.name, found.id, found.partitions)
