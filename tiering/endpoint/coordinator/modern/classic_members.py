"""JoinGroup, SyncGroup, Heartbeat and LeaveGroup of members of the classic protocol in a consumer group (of Kafka's
GroupMetadataManager).

A member that joins is told at once, and that somebody else leads, since the coordinator assigns. It is told to join again when
its group has another epoch, to give up partitions first and to get others then; its member epoch is its generation.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tiering.endpoint.coordinator.classic_group import CONSUMER
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.joining import KNOWN_ID_SINCE, Client
from tiering.endpoint.coordinator.modern.changes import Changes
from tiering.endpoint.coordinator.modern.classic_protocol import (
    assignment,
    becomes_classic_by,
    has_only_classic,
    is_behind,
    joined,
    owned,
    subscription_of,
    supports,
)
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup, ConsumerGroupState
from tiering.endpoint.coordinator.modern.consumer_groups import ConsumerGroups
from tiering.endpoint.coordinator.modern.member import ConsumerGroupMember, MemberState
from tiering.endpoint.coordinator.modern.reconciliation import Owned
from tiering.endpoint.coordinator.modern.validation import classic_member, static_member
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from tiering.endpoint.protocol.messages.leave_group import MemberIdentity
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse


@dataclass(frozen=True, slots=True)
class ClassicMembers:
    """Members of the classic protocol in all consumer groups. `new_id` makes ids that nobody has."""

    of: ConsumerGroups
    new_id: Callable[[], str]

    def join(self, group: ConsumerGroup, request: JoinGroupRequest, client: Client) -> JoinGroupResponse:
        """A member joins a group that has members. Raises GroupError."""
        member_id, instance_id = request.member_id or self.new_id(), request.group_instance_id
        self.of.check_room(group, member_id)
        if not supports(group, request):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")
        if not request.member_id and instance_id is None and client.version >= KNOWN_ID_SINCE:
            return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, protocol_name=None, member_id=member_id)
        changes = Changes(group)
        before, subscription = self._member(changes, request, member_id), subscription_of(request)
        after, has = joined(before, request, subscription, client), owned(subscription, self.of.topics)
        former = None if instance_id is None else group.static_members.get(instance_id)
        if former is not None and becomes_classic_by(group, group.members[former], self.of.config):
            reached = self._downgrade(changes, before, after, has, group.epoch)
        else:
            reached = self.of.advance(changes, before, after, has).member
            self.of.keep(changes)
            self.of.sessions.joined(group.group_id, reached)
        return JoinGroupResponse(
            generation_id=reached.epoch,
            protocol_type=CONSUMER,
            protocol_name=request.protocols[0].name,
            member_id=member_id,
        )

    def _downgrade(
        self, changes: Changes, before: ConsumerGroupMember, after: ConsumerGroupMember, has: Owned, epoch: int
    ) -> ConsumerGroupMember:
        """The group becomes a classic one: the member goes on, or a rebalance follows.

        That is if partitions are to be assigned anew, or if members do not have yet what they are to have: a classic group tells
        nobody that partitions have been given up.
        """
        self.of.subscribe(changes, before, after)
        is_stale = changes.group.assignment_epoch < changes.group.epoch
        reached = after if is_stale else self.of.reconcile(changes, after, has, has_changed=False)
        is_stable = changes.group.state is ConsumerGroupState.STABLE
        self.of.downgrade(changes, (), epoch, begins_rebalance=not is_stable)
        return reached

    def _member(self, changes: Changes, request: JoinGroupRequest, member_id: str) -> ConsumerGroupMember:
        """The member that asks, as it was; it may be new, or take the place of a static one. Raises GroupError."""
        group, instance_id = changes.group, request.group_instance_id
        if instance_id is not None and request.member_id:
            return static_member(group, instance_id, member_id)
        if instance_id is not None and instance_id in group.static_members:
            return changes.replace(group.members[group.static_members[instance_id]], member_id)
        return group.members.get(member_id) or ConsumerGroupMember(member_id)

    def sync(self, group: ConsumerGroup, request: SyncGroupRequest) -> SyncGroupResponse:
        """The partitions of a member. Raises GroupError."""
        member, classic = classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
        protocol = classic.supported_protocols[0]
        if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, protocol.name):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.assignment_epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            self.of.sessions.expect_join(group.group_id, member)
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)
        self.of.sessions.synced(group.group_id, member)
        found = assignment(member.assigned, protocol.metadata, self.of.topics)
        return SyncGroupResponse(0, ErrorCode.NONE, request.protocol_type, request.protocol_name, found)

    def heartbeat(self, group: ConsumerGroup, request: HeartbeatRequest) -> ErrorCode:
        """Whether a member is to join again. Raises GroupError."""
        member, _ = classic_member(group, request.member_id, request.group_instance_id, request.generation_id)
        self.of.sessions.expect_heartbeat(group.group_id, member)
        if not is_behind(group, member) and not self._may_assign(group):
            return ErrorCode.NONE
        self.of.sessions.expect_join(group.group_id, member)
        return ErrorCode.REBALANCE_IN_PROGRESS

    def _may_assign(self, group: ConsumerGroup) -> bool:
        """Whether the next member that joins assigns the partitions of a new epoch, which no other member does meanwhile."""
        return group.epoch > group.assignment_epoch and has_only_classic(group) and self.of.may_assign(group)

    def leave(self, group: ConsumerGroup, identities: Iterable[MemberIdentity]) -> list[ErrorCode]:
        """Whether each member has left: an administrator removes members of KIP-848 in this way, too. Raises GroupError."""
        codes, members = [], dict[str, ConsumerGroupMember]()
        for one in identities:
            try:
                member = self._leaving(group, one)
            except GroupError as e:
                codes.append(e.code)
            else:
                codes.append(ErrorCode.NONE)
                members[member.member_id] = member
        if members:
            self.of.remove(group, tuple(members.values()))
        return codes

    def _leaving(self, group: ConsumerGroup, identity: MemberIdentity) -> ConsumerGroupMember:
        instance_id = identity.group_instance_id
        if instance_id is None:
            return group.member(identity.member_id)
        return static_member(group, instance_id, identity.member_id or group.static_members.get(instance_id, ""))
