"""The requests of members of groups in all their versions, from frame to frame."""

from typing import Any

import pytest
from asked_endpoint import Endpoint
from group_members import RANGE
from offsets_kept import MemoryLog

from tiering.endpoint.protocol.api_keys import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    SYNC_GROUP,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.delete_groups import DeleteGroupsRequest
from tiering.endpoint.protocol.messages.describe_groups import DescribeGroupsRequest
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

PROTOCOLS = tuple(JoinGroupRequestProtocol(*one) for one in RANGE.items())


@pytest.fixture
def endpoint() -> Endpoint:
    return Endpoint(None, None, MemoryLog())


def join(endpoint: Endpoint, version: int, member_id: str = "", group: str = "readers", **more: Any) -> Any:
    """What `ask` gives."""
    times = {"rebalance_timeout_ms": 60_000} if version else {}
    request = JoinGroupRequest(group, 10_000, member_id=member_id, protocol_type="consumer", protocols=PROTOCOLS, **times, **more)
    return endpoint.ask(JOIN_GROUP, version, request)


def joined(endpoint: Endpoint, version: int = 9) -> Any:
    """The answer to the first member of a group."""
    told = join(endpoint, version)
    later = told if version < 4 else join(endpoint, version, told.member_id)
    endpoint.clock.now += 3_000
    endpoint.context.groups.tick()
    return endpoint.answer_of(later)


def sync(endpoint: Endpoint, version: int, member_id: str, **more: Any) -> Any:
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    request = SyncGroupRequest("readers", 1, member_id, assignments=(SyncGroupRequestAssignment(member_id, b"all"),))
    return endpoint.ask(SYNC_GROUP, version, SyncGroupRequest(**{**vars_of(request), **protocol, **more}))


def vars_of(message: object) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__slots__}  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", range(10))
def test_a_member_joins_and_is_described_in_every_version(endpoint: Endpoint, version: int) -> None:
    answer = joined(endpoint, version)
    assert (answer.error_code, answer.generation_id, answer.leader, answer.protocol_name) == (0, 1, answer.member_id, "range")
    assert [(one.member_id, one.metadata) for one in answer.members] == [(answer.member_id, RANGE["range"])]
    for of in range(7):
        (found,) = endpoint.ask(DESCRIBE_GROUPS, of, DescribeGroupsRequest(("readers",))).groups
        assert (found.error_code, found.group_state, found.protocol_type) == (0, "CompletingRebalance", "consumer")
        (member,) = found.members
        assert (member.client_id, member.client_host) == ("test", "/192.0.2.1")
    session_ms = endpoint.context.groups._groups.groups["readers"].rebalance_timeout_ms
    assert session_ms == (60_000 if version else 10_000), "version 0 has no rebalance timeout"


def test_an_error_of_an_old_version_has_no_null_in_it(endpoint: Endpoint) -> None:
    assert join(endpoint, 6, "somebody").protocol_name == ""
    assert join(endpoint, 7, "somebody").protocol_name is None


@pytest.mark.parametrize("version", range(6))
def test_a_leader_assigns_in_every_version(endpoint: Endpoint, version: int) -> None:
    member_id = joined(endpoint).member_id
    assert sync(endpoint, version, member_id).assignment == b"all"
    assert sync(endpoint, version, "somebody").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_since_version_5_a_member_says_which_protocol_it_means(endpoint: Endpoint) -> None:
    member_id = joined(endpoint).member_id
    for lacking in ("protocol_type", "protocol_name"):
        assert sync(endpoint, 5, member_id, **{lacking: None}).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", range(5))
def test_heartbeats_of_every_version(endpoint: Endpoint, version: int) -> None:
    member_id = joined(endpoint).member_id
    assert endpoint.ask(HEARTBEAT, version, HeartbeatRequest("readers", 1, member_id)).error_code == 0
    assert endpoint.ask(HEARTBEAT, version, HeartbeatRequest("readers", 2, member_id)).error_code == ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize("version", range(6))
def test_members_leave_in_every_version(endpoint: Endpoint, version: int) -> None:
    def leave(group: str, member_id: str) -> list[int]:
        """The errors of the request and of its members."""
        several = {"members": (MemberIdentity(member_id),)} if version >= 3 else {"member_id": member_id}
        found = endpoint.ask(LEAVE_GROUP, version, LeaveGroupRequest(group, **several))
        return [found.error_code, *(one.error_code for one in found.members)]

    member_id = joined(endpoint).member_id
    unknown = [0, 25] if version >= 3 else [25]
    assert leave("nowhere", member_id) == unknown
    assert leave("readers", "somebody") == unknown
    assert leave("", member_id) == [24]
    assert leave("readers", member_id) == ([0, 0] if version >= 3 else [0])
    assert leave("readers", member_id) == unknown


def test_groups_are_listed_and_deleted_in_every_version(endpoint: Endpoint) -> None:
    for version in range(3):
        member_id = joined(endpoint).member_id
        for of in range(6):
            (found,) = endpoint.ask(LIST_GROUPS, of, ListGroupsRequest()).groups
            assert (found.group_id, found.protocol_type) == ("readers", "consumer")
            assert (found.group_state, found.group_type) == (
                "CompletingRebalance" if of >= 4 else "",
                "classic" if of >= 5 else "",
            )
        asked = DeleteGroupsRequest(("readers", "nowhere"))
        found = endpoint.ask(DELETE_GROUPS, version, asked).results
        assert [(one.group_id, one.error_code) for one in found] == [("readers", 68), ("nowhere", 69)]
        endpoint.ask(LEAVE_GROUP, 5, LeaveGroupRequest("readers", members=(MemberIdentity(member_id),)))
        assert endpoint.ask(DELETE_GROUPS, version, asked).results[0].error_code == 0
    assert endpoint.ask(LIST_GROUPS, 5, ListGroupsRequest()).groups == ()
