"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup, ListGroups, DescribeGroups and DeleteGroups: the versions of their messages.

The answers are the group coordinator's; those to joins and syncs may come later.
"""

from concurrent.futures import Future
from dataclasses import replace
from typing import Any, Final

from tiering.endpoint.apis.auth_helper import authorized_operations
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.find_coordinator import check_coordinator
from tiering.endpoint.apis.later import later
from tiering.endpoint.authorization.acls import ResourceType
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.joining import Client
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from tiering.endpoint.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from tiering.endpoint.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tiering.endpoint.request_context import RequestContext

_NULL_PROTOCOL_SINCE: Final = 7
"""The version of JoinGroup since which no protocol is null, and not empty."""
_SEVERAL_MEMBERS_SINCE: Final = 3
"""The version of LeaveGroup since which several members leave at once."""


def join_group(request: JoinGroupRequest, request_context: RequestContext, context: Context) -> "Future[JoinGroupResponse]":
    """The generation that the member belongs to."""
    version = request_context.version
    if version == 0:
        request = replace(request, rebalance_timeout_ms=request.session_timeout_ms)
    client = Client(request_context.client_id, f"/{request_context.client_address}", version)
    try:
        check_coordinator(request.group_id, context)
    except GroupError as e:
        return _done(_readable(JoinGroupResponse(error_code=e.code, member_id=request.member_id), version))
    asked = context.groups.join_group(request, client, may_wait=context.may_wait)
    return later(asked, lambda response: _readable(response, version)) if version < _NULL_PROTOCOL_SINCE else asked


def _readable(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    if version < _NULL_PROTOCOL_SINCE and response.protocol_name is None:
        return replace(response, protocol_name="")
    return response


def sync_group(request: SyncGroupRequest, request_context: RequestContext, context: Context) -> "Future[SyncGroupResponse]":
    """The member's assignment."""
    if request.lacks_protocol(request_context.version):
        return _done(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    try:
        check_coordinator(request.group_id, context)
    except GroupError as e:
        return _done(SyncGroupResponse(error_code=e.code))
    return context.groups.sync_group(request, may_wait=context.may_wait)


def heartbeat(request: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    """Whether the member is to join again."""
    try:
        check_coordinator(request.group_id, context)
        return HeartbeatResponse(error_code=context.groups.heartbeat(request, may_wait=context.may_wait))
    except GroupError as e:
        return HeartbeatResponse(error_code=e.code)


def leave_group(request: LeaveGroupRequest, request_context: RequestContext, context: Context) -> LeaveGroupResponse:
    """Whether the members have left."""
    has_several = request_context.version >= _SEVERAL_MEMBERS_SINCE
    members = request.members if has_several else (MemberIdentity(request.member_id),)
    try:
        check_coordinator(request.group_id, context)
        codes = context.groups.leave_group(request.group_id, members)
    except GroupError as e:
        if e.code is not ErrorCode.UNKNOWN_MEMBER_ID:
            return LeaveGroupResponse(error_code=e.code)
        codes = [e.code] * len(members)  # there is no such group
    if not has_several:
        return LeaveGroupResponse(error_code=codes[0])
    answers = (MemberResponse(one.member_id, one.group_instance_id, code) for one, code in zip(members, codes, strict=True))
    return LeaveGroupResponse(members=tuple(answers))


def list_groups(request: ListGroupsRequest, context: Context) -> ListGroupsResponse:
    """The groups that are coordinated here."""
    return context.groups.list_groups(request)


def describe_groups(request: DescribeGroupsRequest, request_context: RequestContext, context: Context) -> DescribeGroupsResponse:
    """Groups with their members. One that is named several times is described once, and told as often."""
    found: dict[str, DescribedGroup] = {}
    for group_id in dict.fromkeys(request.groups):
        try:
            check_coordinator(group_id, context)
            described = context.groups.describe_group(group_id, request_context.version)
            if request.include_authorized_operations and not described.error_code:
                operations = authorized_operations(context, request_context, ResourceType.GROUP, group_id)
                described = replace(described, authorized_operations=operations)
            found[group_id] = described
        except GroupError as e:
            found[group_id] = DescribedGroup(e.code, group_id=group_id)
    return DescribeGroupsResponse(groups=tuple(map(found.__getitem__, request.groups)))


def delete_groups(request: DeleteGroupsRequest, context: Context) -> DeleteGroupsResponse:
    """Whether the groups are forgotten."""
    found = []
    for group_id in dict.fromkeys(request.groups_names):
        code = ErrorCode.NONE
        try:
            check_coordinator(group_id, context)
            context.groups.delete_group(group_id)
        except GroupError as e:
            code = e.code
        found.append(DeletableGroupResult(group_id, code))
    return DeleteGroupsResponse(results=tuple(found))


def _done(response: Any) -> "Future[Any]":
    found: Future[Any] = Future()
    found.set_result(response)
    return found
