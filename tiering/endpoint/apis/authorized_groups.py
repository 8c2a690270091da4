"""What of the requests of members of groups, and of those who look after these, a client may ask (see `authorized`)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tiering.endpoint.apis.auth_helper import is_authorized
from tiering.endpoint.apis.context import Context
from tiering.endpoint.authorization.acls import CLUSTER_NAME, Operation, ResourceType
from tiering.endpoint.protocol.api_keys import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    SYNC_GROUP,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_describe import DescribedConsumerGroup
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from tiering.endpoint.protocol.messages.delete_groups import DeletableGroupResult
from tiering.endpoint.protocol.messages.describe_groups import DescribedGroup
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatResponse
from tiering.endpoint.protocol.messages.join_group import JoinGroupResponse
from tiering.endpoint.protocol.messages.leave_group import LeaveGroupResponse
from tiering.endpoint.protocol.messages.sync_group import SyncGroupResponse
from tiering.endpoint.request_context import RequestContext

Answer = Callable[[Any, RequestContext, Context], Any]
Rule = Callable[[Answer, Any, RequestContext, Context], Any]

_FAILED: Final = ErrorCode.GROUP_AUTHORIZATION_FAILED


def _may(operation: Operation, request_context: RequestContext, context: Context, group: str) -> bool:
    return is_authorized(context, request_context, operation, ResourceType.GROUP, group)


def _of_member(refused: object, answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    if _may(Operation.READ, request_context, context, message.group_id):
        return answer(message, request_context, context)
    return refused


def _sync_group(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    if message.lacks_protocol(request_context.version):
        return answer(message, request_context, context)  # which refuses it, whoever asks
    return _of_member(SyncGroupResponse(error_code=_FAILED), answer, message, request_context, context)


def _describe_groups(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    allowed = frozenset(filter(partial(_may, Operation.DESCRIBE, request_context, context), message.groups))
    asked = tuple(group for group in message.groups if group in allowed)
    found = answer(replace(message, groups=asked), request_context, context)
    refused = (DescribedGroup(_FAILED, group_id=group) for group in message.groups if group not in allowed)
    return replace(found, groups=(*found.groups, *refused))


def _consumer_group_heartbeat(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    if not _may(Operation.READ, request_context, context, message.group_id):
        return ConsumerGroupHeartbeatResponse(error_code=_FAILED)
    names = dict.fromkeys(message.subscribed_topic_names or ())
    if any([not _may_describe(request_context, context, name) for name in names]):  # noqa: C419  # all are told to the audit
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    return answer(message, request_context, context)


def _consumer_group_describe(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    allowed = frozenset(filter(partial(_may, Operation.DESCRIBE, request_context, context), message.group_ids))
    asked = tuple(group for group in message.group_ids if group in allowed)
    refused = (DescribedConsumerGroup(_FAILED, group_id=group) for group in message.group_ids if group not in allowed)
    found = answer(replace(message, group_ids=asked), request_context, context)
    told = {name: _may_describe(request_context, context, name) for group in found.groups for name in _topics(group)}
    groups = (group if all(map(told.__getitem__, _topics(group))) else _hidden(group.group_id) for group in found.groups)
    return replace(found, groups=(*refused, *groups))


def _may_describe(request_context: RequestContext, context: Context, topic: str) -> bool:
    return is_authorized(context, request_context, Operation.DESCRIBE, ResourceType.TOPIC, topic)


def _topics(group: DescribedConsumerGroup) -> frozenset[str]:
    of = (assignment for member in group.members for assignment in (member.assignment, member.target_assignment))
    return frozenset(one.topic_name for assignment in of for one in assignment.topic_partitions)


def _hidden(group_id: str) -> DescribedConsumerGroup:
    told = "The group has described topic(s) that the client is not authorized to describe."
    return DescribedConsumerGroup(ErrorCode.TOPIC_AUTHORIZATION_FAILED, told, group_id)


def _delete_groups(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    allowed = frozenset(filter(partial(_may, Operation.DELETE, request_context, context), message.groups_names))
    asked = tuple(group for group in message.groups_names if group in allowed)
    found = answer(replace(message, groups_names=asked), request_context, context)
    refused = (DeletableGroupResult(group, _FAILED) for group in dict.fromkeys(message.groups_names) if group not in allowed)
    return replace(found, results=(*found.results, *refused))


def _list_groups(answer: Answer, message: Any, request_context: RequestContext, context: Context) -> Any:
    found = answer(message, request_context, context)
    if is_authorized(context, request_context, Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME, is_told=False):
        return found

    def may(group: str) -> bool:
        return is_authorized(context, request_context, Operation.DESCRIBE, ResourceType.GROUP, group, is_told=False)

    return replace(found, groups=tuple(one for one in found.groups if may(one.group_id)))


GROUP_RULES: Final[Mapping[int, Rule]] = {
    JOIN_GROUP.key: partial(_of_member, JoinGroupResponse(error_code=_FAILED)),
    HEARTBEAT.key: partial(_of_member, HeartbeatResponse(error_code=_FAILED)),
    LEAVE_GROUP.key: partial(_of_member, LeaveGroupResponse(error_code=_FAILED)),
    SYNC_GROUP.key: _sync_group,
    DESCRIBE_GROUPS.key: _describe_groups,
    LIST_GROUPS.key: _list_groups,
    DELETE_GROUPS.key: _delete_groups,
    CONSUMER_GROUP_HEARTBEAT.key: _consumer_group_heartbeat,
    CONSUMER_GROUP_DESCRIBE.key: _consumer_group_describe,
}
