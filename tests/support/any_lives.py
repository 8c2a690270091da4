"""Lives of groups that Hypothesis makes: members that share partitions, then requests of them and of others, right and wrong."""

from collections.abc import Mapping, Sequence
from typing import Any

from compared_groups import CURRENT, GROUP, Step
from compared_groups import OTHER as OTHER_GROUP
from group_members import subscription
from hypothesis import strategies as st

from tiering.endpoint.protocol.api_keys import (
    DELETE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    Api,
)
from tiering.endpoint.protocol.messages.delete_groups import DeleteGroupsRequest
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
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
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

SUBSCRIBED, OTHER = "g-tiny", "g-mixed"
_SESSION_MS, _REBALANCE_MS = 30_000, 60_000
_RANGE = JoinGroupRequestProtocol("range", subscription(SUBSCRIBED))
_ROUND_ROBIN = JoinGroupRequestProtocol("roundrobin", subscription(SUBSCRIBED, OTHER))
_PROTOCOLS = (
    *((_RANGE,), (_RANGE,), (_RANGE, _ROUND_ROBIN), (_ROUND_ROBIN, _RANGE)),
    *((_ROUND_ROBIN,), (), (_RANGE, _RANGE), (JoinGroupRequestProtocol("range", b"\xff"),), (JoinGroupRequestProtocol("", b""),)),
)
_INSTANCES = (None, None, None, "i0", "i1", "")
_MEMBERS = ("@0", "@1", "@2")
_ODD_MEMBERS = ("", "nobody", "@3")
_GENERATIONS = (CURRENT, CURRENT, CURRENT, CURRENT, CURRENT - 1, CURRENT + 1, -1, 0)
_ASSIGNMENTS = tuple(SyncGroupRequestAssignment(one, one.encode()) for one in _MEMBERS)


def lives() -> st.SearchStrategy[list[Step]]:
    """Steps for `ComparedGroups`."""
    begun = st.sampled_from((_begun(0), _begun(1), _begun(2), _begun(3), _begun(1, is_static=True), _begun(2, is_static=True)))
    return st.builds(lambda first, then: [*first, *then], begun, st.lists(_steps(), min_size=1, max_size=8))


def _begun(count: int, *, is_static: bool = False) -> list[Step]:
    """So many members of a stable group."""
    steps: list[Step] = []
    for number in range(count):
        instance = f"i{number}" if is_static else None
        if is_static:
            steps.append((JOIN_GROUP, 9, _join("", instance)))
        else:
            steps += [(JOIN_GROUP, 9, _join("")), (JOIN_GROUP, 9, _join(f"@{number}"))]
        steps += [(JOIN_GROUP, 9, _join(f"@{one}", f"i{one}" if is_static else None)) for one in range(number)]
        steps += [(SYNC_GROUP, 5, _sync(f"@{one}")) for one in range(number + 1)]
    return steps


def _join(member: str, instance: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(GROUP, _SESSION_MS, _REBALANCE_MS, member, instance, "consumer", (_RANGE,))


def _sync(member: str) -> SyncGroupRequest:
    assignments = _ASSIGNMENTS if member == "@0" else ()
    return SyncGroupRequest(GROUP, CURRENT, member, None, "consumer", "range", assignments)


def _steps() -> st.SearchStrategy[Step]:
    groups = st.sampled_from((*[GROUP] * 12, "", OTHER_GROUP))
    members = st.sampled_from((*_MEMBERS * 3, *_ODD_MEMBERS))
    who: Mapping[str, Any] = {"group_id": groups, "group_instance_id": st.sampled_from(_INSTANCES)}
    join = st.builds(
        JoinGroupRequest,
        **who,
        session_timeout_ms=st.sampled_from((*[_SESSION_MS] * 9, 5_999, 1_800_001, -1)),
        rebalance_timeout_ms=st.just(_REBALANCE_MS),
        member_id=st.sampled_from(("", "", "", *_MEMBERS * 2, *_ODD_MEMBERS)),
        protocol_type=st.sampled_from((*["consumer"] * 9, "connect", "")),
        protocols=st.sampled_from(_PROTOCOLS),
    )
    generations = st.sampled_from(_GENERATIONS)
    sync = st.builds(
        SyncGroupRequest,
        **who,
        generation_id=generations,
        member_id=members,
        protocol_type=st.sampled_from((*["consumer"] * 6, "connect", None)),
        protocol_name=st.sampled_from((*["range"] * 6, "roundrobin", None)),
        assignments=st.sampled_from((_ASSIGNMENTS, _ASSIGNMENTS, (), _ASSIGNMENTS[:1], (*_ASSIGNMENTS, *_ASSIGNMENTS))),
    )
    heartbeat = st.builds(HeartbeatRequest, **who, generation_id=generations, member_id=members)
    identity = st.builds(MemberIdentity, members, who["group_instance_id"])
    leave = st.builds(LeaveGroupRequest, groups, members, st.lists(identity, max_size=2).map(tuple))
    kinds = [(JOIN_GROUP, join), (SYNC_GROUP, sync), (JOIN_GROUP, join), (SYNC_GROUP, sync)]
    kinds += [(HEARTBEAT, heartbeat), (LEAVE_GROUP, leave), *_offsets(who, generations, members)]
    kinds += [(DELETE_GROUPS, st.builds(DeleteGroupsRequest, st.lists(groups, max_size=2).map(tuple)))]
    states = st.lists(st.sampled_from(("Empty", "Stable", "preparingRebalance", "Dead", "x")), max_size=2).map(tuple)
    kinds += [(LIST_GROUPS, st.builds(ListGroupsRequest, states, st.sampled_from(((), ("classic",), ("CLASSIC", "consumer")))))]
    return st.sampled_from(kinds).flatmap(lambda kind: _versioned(*kind))


def _offsets(who: Mapping[str, Any], generations: Any, members: Any) -> Sequence[tuple[Api, st.SearchStrategy[Any]]]:
    topics, numbers = st.sampled_from((SUBSCRIBED, OTHER, "nowhere")), st.sampled_from((0, 0, 0, 7, -1))
    one = st.builds(
        OffsetCommitRequestPartition,
        numbers,
        st.sampled_from((5, 7, -1)),
        st.sampled_from((-1, 0)),
        st.sampled_from((None, "", "mine", "x" * 4096, "x" * 4097)),
    )
    of_topic = st.builds(OffsetCommitRequestTopic, name=topics, partitions=st.lists(one, min_size=1, max_size=2).map(tuple))
    commit = st.builds(
        OffsetCommitRequest,
        **who,
        generation_id_or_member_epoch=generations,
        member_id=members,
        topics=st.lists(of_topic, max_size=2).map(tuple),
    )
    indexes = st.lists(numbers, max_size=2).map(tuple)
    old_topics = st.lists(st.builds(OffsetFetchRequestTopic, topics, indexes), max_size=2).map(tuple)
    new_topics = st.lists(st.builds(OffsetFetchRequestTopics, name=topics, partition_indexes=indexes), max_size=2).map(tuple)
    group = st.builds(OffsetFetchRequestGroup, who["group_id"], members, generations, st.one_of(st.none(), new_topics))
    fetch = st.builds(
        OffsetFetchRequest, group_id=who["group_id"], topics=old_topics, groups=st.tuples(group), require_stable=st.booleans()
    )
    deleted = st.builds(OffsetDeleteRequestTopic, topics, st.tuples(st.builds(OffsetDeleteRequestPartition, numbers)))
    delete = st.builds(OffsetDeleteRequest, who["group_id"], st.lists(deleted, max_size=2).map(tuple))
    return (OFFSET_COMMIT, commit), (OFFSET_COMMIT, commit), (OFFSET_FETCH, fetch), (OFFSET_DELETE, delete)


def _versioned(api: Api, requests: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    last = api.last - 1 if api in (OFFSET_COMMIT, OFFSET_FETCH) else api.last  # the last has topic ids
    return st.tuples(st.just(api), st.integers(api.first, last), requests)
