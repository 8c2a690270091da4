"""JoinGroup: who may become a member, stays one, or takes the place of one (of Kafka's GroupMetadataManager)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from tiering.endpoint.coordinator.classic_group import ClassicGroup, Member, Waiter
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_states import COMPLETING, EMPTY, PREPARING, STABLE
from tiering.endpoint.coordinator.rebalancing import Rebalancing, current_generation
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest
from tiering.endpoint.protocol.messages.sync_group import SyncGroupResponse

KNOWN_ID_SINCE: Final = 4
"""The version since which a new member first gets an id, and then joins with it (KIP-394)."""
_SKIP_ASSIGNMENT_SINCE: Final = 9
"""The version since which a leader may be told not to assign anew (KIP-814)."""


@dataclass(frozen=True, slots=True)
class Client:
    """Who asks: the client id and the address, and the version of the request."""

    client_id: str
    host: str
    version: int


@dataclass(slots=True)
class Joining:
    """Joins of all groups. `new_id` makes ids that nobody has."""

    rebalancing: Rebalancing
    new_id: Callable[[], str]

    def join(self, group: ClassicGroup, request: JoinGroupRequest, client: Client, waiter: Waiter) -> None:
        """Answers a join at once, or when the rebalance that it is part of has all members."""
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            self.rebalancing.refuse_join(waiter, ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif not group.supports(request.protocol_type, request.protocols):
            self.rebalancing.refuse_join(waiter, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        elif not request.member_id:
            self._join_new(group, request, client, waiter)
        elif request.member_id in group.pending_join:
            self._add(group, request, client, request.member_id, waiter)
        else:
            self._join_again(group, request, waiter)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Whether the group is not full. While members join, only those count that have."""
        size_max = self.rebalancing.config.group_max_size
        if group.state is EMPTY:
            return True
        member = group.members.get(member_id)
        if group.state is PREPARING:
            joined = sum(1 for one in group.members.values() if one.awaiting_join is not None)
            return (member is not None and member.awaiting_join is not None) or joined < size_max
        return member is not None or len(group.members) < size_max

    def _join_new(self, group: ClassicGroup, request: JoinGroupRequest, client: Client, waiter: Waiter) -> None:
        instance_id = request.group_instance_id
        member_id = f"{client.client_id if instance_id is None else instance_id}-{self.new_id()}"
        if instance_id is not None and instance_id in group.static_members:
            self._replace(group, request, client, member_id, waiter)
        elif instance_id is None and client.version >= KNOWN_ID_SINCE:
            group.pending_join.add(member_id)
            self.rebalancing.expect(group, member_id, request.session_timeout_ms)
            self.rebalancing.refuse_join(waiter, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        else:
            self._add(group, request, client, member_id, waiter)

    def _add(self, group: ClassicGroup, request: JoinGroupRequest, client: Client, member_id: str, waiter: Waiter) -> None:
        if group.state is PREPARING and group.previous is EMPTY:
            group.is_member_added = True
        member = Member(
            member_id,
            request.group_instance_id,
            client.client_id,
            client.host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            request.protocols,
            is_new=True,
            awaiting_join=waiter,
        )
        group.add(member, request.protocol_type)
        # A new member cannot send heartbeats yet, and one whose connection is gone cannot be told from one that waits.
        self.rebalancing.expect_heartbeat(group, member, self.rebalancing.config.new_member_join_timeout_ms)
        self.rebalancing.begin_or_complete(group)

    def _join_again(self, group: ClassicGroup, request: JoinGroupRequest, waiter: Waiter) -> None:
        try:
            group.validate_member(request.member_id, request.group_instance_id)
        except GroupError as e:
            self.rebalancing.refuse_join(waiter, e.code, request.member_id)
            return
        member = group.members[request.member_id]
        is_same = member.protocols == request.protocols
        is_leader = request.member_id == group.leader_id
        if (group.state is COMPLETING and is_same) or (group.state is STABLE and is_same and not is_leader):
            # It has not received the answer to its first join, or it joins for no reason that concerns others.
            # A leader of a stable group has one: it assigns anew, for instance since a topic has more partitions.
            self.rebalancing.answer(waiter, current_generation(group, request.member_id))
        else:
            self._update(group, member, request, waiter)
            self.rebalancing.begin_or_complete(group)

    def _update(self, group: ClassicGroup, member: Member, request: JoinGroupRequest, waiter: Waiter | None) -> None:
        group.set_protocols(member, request.protocols)
        member.rebalance_timeout_ms, member.session_timeout_ms = request.rebalance_timeout_ms, request.session_timeout_ms
        self.rebalancing.refuse_former(member)
        member.awaiting_join = waiter

    def _replace(self, group: ClassicGroup, request: JoinGroupRequest, client: Client, member_id: str, waiter: Waiter) -> None:
        """A static member has started anew: it takes the place of its former self, which is fenced."""
        former, leader_id = self._renamed(group, request.group_instance_id or "", member_id), group.leader_id
        if leader_id == member_id:
            leader_id = former.member_id
        member = group.members[member_id]
        self.rebalancing.expect_heartbeat(group, member)
        self._update(group, member, request, waiter)
        if group.state is COMPLETING:  # the leader may be assigning to the former id
            self.rebalancing.begin(group)
        elif group.state is not STABLE:
            self.rebalancing.complete_if_all_joined(group)
        elif group.select_protocol() != group.protocol:
            self.rebalancing.begin_or_complete(group)
        elif self._has_kept(group, member, former, waiter):
            self._tell_replaced(group, member, leader_id, client)

    def _renamed(self, group: ClassicGroup, instance_id: str, member_id: str) -> Member:
        """The former self of a static member, whose requests are refused."""
        former = group.members[group.static_members[instance_id]]
        if former.awaiting_join is not None:
            self.rebalancing.refuse_join(former.awaiting_join, ErrorCode.FENCED_INSTANCE_ID, former.member_id)
        self.rebalancing.complete_sync(former, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        former.awaiting_join = None
        group.rename(former, member_id)
        return former

    def _has_kept(self, group: ClassicGroup, member: Member, former: Member, waiter: Waiter) -> bool:
        """Keeps the new id of a member of a stable group; if this cannot be, the former one stays."""
        try:
            self.rebalancing.write(group, {one.member_id: one.assignment for one in group.members.values()})
        except GroupError as e:
            group.set_protocols(member, former.protocols)
            group.rename(member, former.member_id)
            restored = group.members[former.member_id]
            restored.rebalance_timeout_ms, restored.session_timeout_ms = former.rebalance_timeout_ms, former.session_timeout_ms
            self.rebalancing.expect_heartbeat(group, restored)
            self.rebalancing.refuse_join(waiter, e.code)
            return False
        return True

    def _tell_replaced(self, group: ClassicGroup, member: Member, leader_id: str | None, client: Client) -> None:
        """Nothing changes for the others. One that leads must not assign anew, which would take another generation."""
        response = current_generation(group, member.member_id, skip_assignment=member.member_id == group.leader_id)
        if client.version < _SKIP_ASSIGNMENT_SINCE:  # it takes itself for a follower
            response = replace(response, leader=leader_id or "", skip_assignment=False, members=())
        self.rebalancing.complete_join(member, response)
