"""Lives of groups that Hypothesis makes whose members use both protocols: they come, ask rightly and wrongly, and go."""

from typing import Any

from any_lives import SUBSCRIBED
from compared_groups import CURRENT, GROUP, LAST, Step
from consumer_lives import MANY
from hypothesis import strategies as st
from mixed_members import assignment, subscription

from tiering.endpoint.protocol.api_keys import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tiering.endpoint.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

_SESSION_MS, _REBALANCE_MS = 30_000, 60_000
_NEW = ("m0", "m1")
"""Members of KIP-848, and a static one."""
_STATIC, _INSTANCE = "s0", "i0"
_CLASSIC = (("@0", "i1"), ("@1", "i2"))
"""Members of classic groups are static: the range assignor looks at the names of members, and a broker makes up their ids."""
_NAMED = (("c0", None), ("c1", None))
"""Members of consumer groups may join with names of their own."""
_WHO = (*_CLASSIC * 2, *_NAMED * 2, ("@2", None), ("m0", None), ("nobody", None))
_TOPICS = ((MANY,), (MANY,), (MANY, SUBSCRIBED), (SUBSCRIBED,))
_GENERATIONS = (*[CURRENT] * 6, CURRENT - 1, CURRENT + 1)
_HAS = ({}, {MANY: frozenset({0, 1})}, {MANY: frozenset(range(5))})
_SHARES = (
    *(assignment(**{MANY: {0, 1, 2}}), assignment(**{MANY: {3, 4}})),
    *(b"", b"\x00", assignment(user_data=b"mine"), assignment(3, **{MANY: {0}, "nowhere": {0}})),
)


def migrating_lives() -> st.SearchStrategy[list[Step]]:
    """Steps for `ComparedGroups`. All members of KIP-848 name the range assignor, since the other one depends on the order of a
    hash table."""
    begun = st.one_of(st.builds(_classic, st.integers(1, 2), st.sampled_from(_SHARES)), st.builds(_consumers, st.integers(1, 2)))
    return st.builds(lambda first, then: [*first, *then], begun, st.lists(_steps(), min_size=2, max_size=14).map(_flat))


def _flat(steps: list[list[Step]]) -> list[Step]:
    return [one for of in steps for one in of]


def _protocols(topics: tuple[str, ...], version: int = 1, has: Any = None) -> tuple[JoinGroupRequestProtocol, ...]:
    return (JoinGroupRequestProtocol("range", subscription(*topics, version=version, has=has)),)


def _join(member: str, instance: str | None, protocols: Any = None, kind: str = "consumer") -> Step:
    offered = _protocols((MANY,)) if protocols is None else protocols
    return JOIN_GROUP, 9, JoinGroupRequest(GROUP, _SESSION_MS, _REBALANCE_MS, member, instance, kind, offered)


def _sync(member: str, instance: str | None, given: tuple[bytes, ...] = ()) -> Step:
    of = tuple(SyncGroupRequestAssignment(one, data) for (one, _), data in zip(_CLASSIC, given, strict=False))
    return SYNC_GROUP, 5, SyncGroupRequest(GROUP, CURRENT, member, instance, "consumer", "range", of)


def _heard(member: str, topics: tuple[str, ...] = (MANY,), instance: str | None = None) -> Step:
    said = (GROUP, member, 0, instance, None, _REBALANCE_MS, topics, None, "range", ())
    return CONSUMER_GROUP_HEARTBEAT, 1, ConsumerGroupHeartbeatRequest(*said)


def _classic(count: int, share: bytes) -> list[Step]:
    """A stable classic group of so many members, the last of which has this share."""
    shares = (share,) if count == 1 else (_SHARES[0], share)
    steps: list[Step] = []
    for number in range(count):
        steps += [_join("", _CLASSIC[number][1]), *(_join(*who) for who in _CLASSIC[:number])]
        steps += [_sync(*who, shares) for who in _CLASSIC[: number + 1]]
    return steps


def _consumers(count: int) -> list[Step]:
    """A consumer group of so many members of KIP-848, and a classic one."""
    return [*map(_heard, _NEW[:count]), _join(*_NAMED[0]), _sync(*_NAMED[0])]


def _steps() -> st.SearchStrategy[list[Step]]:
    who, generations = st.sampled_from(_WHO), st.sampled_from(_GENERATIONS)
    instances = st.sampled_from((*[None] * 6, _INSTANCE, "i1"))
    joins = st.builds(
        lambda who, topics, version, has: [_join(*who, _protocols(topics, version, has)), _sync(*who)],
        st.sampled_from((*_WHO, ("", "i1"), ("", "i3"))),
        st.sampled_from(_TOPICS),
        st.integers(0, 4),
        st.sampled_from(_HAS),
    )
    odd = st.builds(
        lambda who, protocols, kind: [_join(*who, protocols, kind)],
        st.sampled_from((("", None), *_CLASSIC, *_NAMED)),
        st.sampled_from(((), (JoinGroupRequestProtocol("other", subscription(MANY)),), (JoinGroupRequestProtocol("range"),))),
        st.sampled_from(("consumer", "consumer", "connect")),
    )
    hears = st.builds(lambda member, topics: [_heard(member, topics)], st.sampled_from(_NEW), st.sampled_from(_TOPICS))
    static = st.sampled_from([[_heard(_STATIC, (MANY,), _INSTANCE)], [_join("", _INSTANCE), _sync(LAST, _INSTANCE)]])
    beats = st.builds(
        lambda member, epoch, owned: [
            (CONSUMER_GROUP_HEARTBEAT, 1, ConsumerGroupHeartbeatRequest(GROUP, member, epoch, topic_partitions=owned))
        ],
        st.sampled_from((*_NEW * 3, "c0")),
        st.sampled_from((*_GENERATIONS, -1, -1)),
        st.sampled_from((None, (), ())),
    )
    leaves = st.builds(
        lambda members: [(LEAVE_GROUP, 5, LeaveGroupRequest(GROUP, "", tuple(members)))],
        st.lists(
            st.builds(MemberIdentity, st.sampled_from(("@0", "c0", *_NEW, "", "nobody")), instances), min_size=1, max_size=2
        ),
    )
    heartbeat = st.builds(lambda generation, who: [(HEARTBEAT, 4, HeartbeatRequest(GROUP, generation, *who))], generations, who)
    sync = st.builds(
        lambda generation, who, kind, name: [(SYNC_GROUP, 5, SyncGroupRequest(GROUP, generation, *who, kind, name))],
        generations,
        who,
        st.sampled_from(("consumer", "consumer", "connect")),
        st.sampled_from(("range", "range", "other")),
    )
    told: list[list[Step]] = [
        [(CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest((GROUP,)))],
        [(LIST_GROUPS, 5, ListGroupsRequest())],
    ]
    kinds = (joins, joins, joins, odd, hears, hears, static, beats, beats, beats, leaves, heartbeat, heartbeat, sync)
    return st.one_of(*kinds, st.sampled_from(told), *_offsets(who.map(lambda one: one[0]), generations))


def _offsets(members: Any, generations: Any) -> tuple[Any, ...]:
    committed = OffsetCommitRequestTopic(name=MANY, partitions=(OffsetCommitRequestPartition(0, 5),))
    commit = st.builds(
        lambda version, generation, member: [
            (OFFSET_COMMIT, version, OffsetCommitRequest(GROUP, generation, member, topics=(committed,)))
        ],
        st.sampled_from((8, 9)),
        generations,
        members,
    )
    asked = (OffsetFetchRequestTopics(MANY, partition_indexes=(0,)),)
    fetch = st.builds(
        lambda member, epoch: [
            (OFFSET_FETCH, 9, OffsetFetchRequest(groups=(OffsetFetchRequestGroup(GROUP, member, epoch, asked),)))
        ],
        members,
        generations,
    )
    return commit, fetch
