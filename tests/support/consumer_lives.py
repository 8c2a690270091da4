"""Lives of consumer groups of KIP-848 that Hypothesis makes: members join, then they and others ask, rightly and wrongly."""

from typing import Any

from any_lives import SUBSCRIBED
from compared_groups import CURRENT, GROUP, OTHER, Step
from hypothesis import strategies as st

from tiering.endpoint.protocol.api_keys import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tiering.endpoint.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tiering.endpoint.protocol.messages.delete_groups import DeleteGroupsRequest
from tiering.endpoint.protocol.messages.describe_groups import DescribeGroupsRequest
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest

MANY = "many.with-dots"
"""It has several partitions."""
_NAMES = ((SUBSCRIBED,), (MANY,), (SUBSCRIBED, MANY), (MANY, "nowhere"), ())
_MEMBERS = ("m0", "m1", "m2", "s0", "s1")
_STATIC = ("s0", "s1")
"""Of them those that join as static members, one in the place of the other."""
_INSTANCES = (None, None, None, None, "i0", "i1")
_EPOCHS = (*[CURRENT] * 8, CURRENT - 1, CURRENT - 1, CURRENT + 1, 0, 0, -1, -2, -3)
_REBALANCE_MS = 60_000


def consumer_lives() -> st.SearchStrategy[list[Step]]:
    """Steps for `ComparedGroups`. All members name the range assignor: the other one depends on the order of a hash table."""
    begun = st.lists(st.sampled_from(_NAMES), max_size=3).map(lambda of: [_join(f"m{at}", names) for at, names in enumerate(of)])
    return st.builds(lambda first, then: [*first, *then], begun, st.lists(_steps(), min_size=1, max_size=10))


def _join(member: str, names: tuple[str, ...], version: int = 1, instance: str | None = None) -> Step:
    request = ConsumerGroupHeartbeatRequest(GROUP, member, 0, instance, None, _REBALANCE_MS, names, None, "range", ())
    return CONSUMER_GROUP_HEARTBEAT, version, request


def _steps() -> st.SearchStrategy[Step]:
    groups = st.sampled_from((*[GROUP] * 12, "", OTHER))
    members, epochs = st.sampled_from((*_MEMBERS * 4, "nobody")), st.sampled_from(_EPOCHS)
    who = st.sampled_from([(one, "i0" if one in _STATIC else None) for one in _MEMBERS])
    joins = st.builds(
        lambda one, names, version: _join(one[0], names, version, one[1]), who, st.sampled_from(_NAMES), st.integers(0, 1)
    )
    heartbeat = st.builds(
        ConsumerGroupHeartbeatRequest,
        group_id=groups,
        member_id=members,
        member_epoch=epochs,
        instance_id=st.sampled_from(_INSTANCES),
        rack_id=st.sampled_from((None, None, None, "r", " ")),
        rebalance_timeout_ms=st.sampled_from((-1, -1, _REBALANCE_MS)),
        subscribed_topic_names=st.sampled_from((None, None, None, *_NAMES)),
        server_assignor=st.sampled_from((*[None] * 9, "range", "sticky")),
        topic_partitions=st.sampled_from((None, (), ())),
    ).filter(_is_whole)
    described = st.builds(ConsumerGroupDescribeRequest, st.lists(groups, max_size=2).map(tuple))
    kinds: list[tuple[Any, tuple[int, ...], Any]] = [
        *[(CONSUMER_GROUP_HEARTBEAT, (0, 1), heartbeat)] * 4,
        *[(CONSUMER_GROUP_DESCRIBE, (0, 1), described)] * 2,
        (LIST_GROUPS, (4, 5), st.builds(ListGroupsRequest, st.just(()), st.sampled_from(((), ("consumer",), ("classic",))))),
        (DESCRIBE_GROUPS, (5, 6), st.builds(DescribeGroupsRequest, st.tuples(groups))),
        (DELETE_GROUPS, (2,), st.builds(DeleteGroupsRequest, st.tuples(groups))),
        (HEARTBEAT, (4,), st.builds(HeartbeatRequest, groups, epochs, members)),
        (SYNC_GROUP, (5,), st.builds(SyncGroupRequest, groups, epochs, members, protocol_type=st.just("consumer"))),
        *_offsets(groups, members, epochs),
    ]
    others = st.sampled_from(kinds).flatmap(lambda kind: st.tuples(st.just(kind[0]), st.sampled_from(kind[1]), kind[2]))
    return st.one_of(joins, others, others, others)


def _is_whole(request: ConsumerGroupHeartbeatRequest) -> bool:
    """Without joins of members as static ones that they were not before: see the known differences."""
    return request.member_epoch != 0 or (request.instance_id is not None) == (request.member_id in _STATIC)


def _offsets(groups: Any, members: Any, epochs: Any) -> list[tuple[Any, tuple[int, ...], Any]]:
    topics, numbers = st.sampled_from((SUBSCRIBED, MANY)), st.sampled_from((0, 0, 1))
    committed = st.builds(OffsetCommitRequestPartition, numbers, st.sampled_from((5, 7)))
    commit = st.builds(
        OffsetCommitRequest,
        group_id=groups,
        generation_id_or_member_epoch=epochs,
        member_id=members,
        topics=st.tuples(st.builds(OffsetCommitRequestTopic, name=topics, partitions=st.tuples(committed))),
    )
    asked = st.one_of(
        st.none(), st.tuples(st.builds(OffsetFetchRequestTopics, name=topics, partition_indexes=st.tuples(numbers)))
    )
    group = st.builds(OffsetFetchRequestGroup, groups, st.one_of(st.none(), members), epochs, asked)
    deleted = st.builds(OffsetDeleteRequestTopic, topics, st.tuples(st.builds(OffsetDeleteRequestPartition, numbers)))
    return [
        (OFFSET_COMMIT, (8, 9), commit),
        (OFFSET_COMMIT, (9,), commit),
        (OFFSET_FETCH, (8, 9), st.builds(OffsetFetchRequest, groups=st.tuples(group))),
        (OFFSET_DELETE, (0,), st.builds(OffsetDeleteRequest, groups, st.tuples(deleted))),
    ]
