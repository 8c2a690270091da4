"""Groups as they are listed and described."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tiering.endpoint.coordinator.classic_group import ClassicGroup
from tiering.endpoint.coordinator.committed_offsets import Partition
from tiering.endpoint.coordinator.group_states import DEAD, STABLE
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup
from tiering.endpoint.coordinator.records import OffsetAndMetadata
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from tiering.endpoint.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
"""The types of groups, as they are told."""
_NOT_FOUND_SINCE: Final = 6
"""The version of DescribeGroups since which a group that is not there has an error (KIP-1043)."""


class GroupOffsets(NamedTuple):
    """A group at one moment, with what it has committed."""

    group_id: str
    group_type: str
    state: str
    members: int
    offsets: Mapping[Partition, OffsetAndMetadata]


def with_offsets(group: ClassicGroup | ConsumerGroup, offsets: Mapping[Partition, OffsetAndMetadata]) -> GroupOffsets:
    """A group with a copy of its offsets."""
    return GroupOffsets(group.group_id, _type(group), group.state, len(group.members), dict(offsets))


def listed(groups: Iterable[ClassicGroup | ConsumerGroup], request: ListGroupsRequest) -> ListGroupsResponse:
    """The groups in the states and of the types that are asked for, in whatever case, or all."""
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.strip().lower() for kind in request.types_filter}
    found = (
        ListedGroup(group.group_id, group.protocol_type or "", group.state, _type(group))
        for group in groups
        if (not types or _type(group) in types) and (not states or group.state.lower() in states)
    )
    return ListGroupsResponse(groups=tuple(found))


def _type(group: ClassicGroup | ConsumerGroup) -> str:
    return CONSUMER if isinstance(group, ConsumerGroup) else CLASSIC


def described(group_id: str, group: ClassicGroup | ConsumerGroup | None, version: int) -> DescribedGroup:
    """A classic group with its members, whose subscriptions are told while it is stable."""
    if group is None or isinstance(group, ConsumerGroup):
        if version < _NOT_FOUND_SINCE:
            return DescribedGroup(group_id=group_id, group_state=DEAD)
        told = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a classic group."
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, told, group_id, DEAD)
    is_stable = group.state is STABLE
    members = (
        DescribedGroupMember(
            one.member_id,
            one.instance_id,
            one.client_id,
            one.client_host,
            one.metadata(group.protocol) if is_stable else b"",
            one.assignment,
        )
        for one in group.members.values()
    )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if is_stable else "",
        members=tuple(members),
    )
