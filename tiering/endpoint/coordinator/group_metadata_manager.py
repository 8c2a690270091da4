"""The groups, and their requests other than those about offsets (Kafka's GroupMetadataManager)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from tiering.endpoint.coordinator.classic_group import ClassicGroup, Member, Waiter
from tiering.endpoint.coordinator.consumer_group_messages import ConsumerGroupMetadataKey
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_configs import GroupConfigs
from tiering.endpoint.coordinator.group_states import (
    COMPLETING,
    EMPTY,
    ON_DELETE,
    ON_HEARTBEAT,
    PREPARING,
    STABLE,
)
from tiering.endpoint.coordinator.joining import Client, Joining
from tiering.endpoint.coordinator.modern.changes import tombstones
from tiering.endpoint.coordinator.modern.classic_members import ClassicMembers
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup
from tiering.endpoint.coordinator.modern.consumer_groups import ConsumerGroups
from tiering.endpoint.coordinator.modern.heartbeats import Heartbeats
from tiering.endpoint.coordinator.modern.topics import Topics
from tiering.endpoint.coordinator.rebalancing import NO_TIME, Rebalancing
from tiering.endpoint.coordinator.record_messages import GroupMetadataValue, MemberMetadata
from tiering.endpoint.coordinator.records import ConsumerGroupKey, ConsumerGroupValue, Record, group_metadata_tombstone
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.leave_group import MemberIdentity
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_NO_REBALANCE_TIMEOUT: Final = -1


@dataclass(slots=True)
class GroupMetadataManager:
    """All groups by id, and what their members ask."""

    rebalancing: Rebalancing
    joining: Joining
    of_consumers: ConsumerGroups
    classic_members: ClassicMembers
    heartbeats: Heartbeats

    @classmethod
    def of(
        cls, rebalancing: Rebalancing, new_id: Callable[[], str], topics: Topics, configs: GroupConfigs
    ) -> "GroupMetadataManager":
        """Without groups."""
        of_consumers = ConsumerGroups(rebalancing, topics, configs, {}, {})
        members, heartbeats = ClassicMembers(of_consumers, new_id), Heartbeats(of_consumers, new_id)
        return cls(rebalancing, Joining(rebalancing, new_id), of_consumers, members, heartbeats)

    @property
    def groups(self) -> dict[str, ClassicGroup]:
        """The classic groups."""
        return self.of_consumers.classics

    @property
    def consumers(self) -> dict[str, ConsumerGroup]:
        """The consumer groups, of KIP-848. No id is in both."""
        return self.of_consumers.groups

    def get_or_create(self, group_id: str) -> ClassicGroup:
        """A group; one that is not there is empty."""
        if group_id not in self.groups:
            self.groups[group_id] = ClassicGroup(group_id, self.rebalancing.clock.now_ms())
        return self.groups[group_id]

    def ensure(self, group_id: str) -> None:
        """Makes a group that is not there: a simple one."""
        if group_id not in self.consumers:
            self.get_or_create(group_id)

    def any_group(self, group_id: str) -> ClassicGroup | ConsumerGroup:
        """A group of either type. Raises GroupError."""
        return self.consumers.get(group_id) or self.group(group_id)

    def all_groups(self) -> tuple[ClassicGroup | ConsumerGroup, ...]:
        """The groups of both types."""
        return (*self.groups.values(), *self.consumers.values())

    def group(self, group_id: str, code: ErrorCode = ErrorCode.GROUP_ID_NOT_FOUND) -> ClassicGroup:
        """A group that is there. Raises GroupError with `code`."""
        found = self.groups.get(group_id)
        if found is None:
            raise GroupError(code)
        return found

    def join(self, request: JoinGroupRequest, client: Client, waiter: Waiter) -> None:
        """JoinGroup. A group that is not there is made, if who joins has no member id yet.

        A consumer group gives way to a classic one if it has no members; else it gets a member of the classic protocol.
        """
        consumers = self.consumers.get(request.group_id)
        if consumers is not None and consumers.members:
            self._join_consumers(consumers, request, client, waiter)
            return
        is_new = request.group_id not in self.groups
        if is_new and request.member_id:
            self.rebalancing.refuse_join(waiter, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return
        if consumers is not None and not self._gives_way(consumers, request, waiter):
            return
        group = self.get_or_create(request.group_id)
        if is_new:
            try:
                self.rebalancing.write(group, {})
            except GroupError as e:
                del self.groups[request.group_id]
                self.rebalancing.refuse_join(waiter, e.code)
                return
        self.joining.join(group, request, client, waiter)

    def _join_consumers(self, group: ConsumerGroup, request: JoinGroupRequest, client: Client, waiter: Waiter) -> None:
        try:
            self.rebalancing.answer(waiter, self.classic_members.join(group, request, client))
        except GroupError as e:
            self.rebalancing.refuse_join(waiter, e.code)

    def _gives_way(self, consumers: ConsumerGroup, request: JoinGroupRequest, waiter: Waiter) -> bool:
        try:
            if self.rebalancing.journal is not None:
                self.rebalancing.journal.write(request.group_id, tombstones(consumers))
        except GroupError as e:
            self.rebalancing.refuse_join(waiter, e.code, request.member_id)
            return False
        del self.consumers[request.group_id]
        return True

    def sync(self, request: SyncGroupRequest, waiter: Waiter) -> None:
        """SyncGroup: answered when the leader has assigned, in a consumer group at once. Raises GroupError."""
        consumers = self.consumers.get(request.group_id)
        if consumers is not None:
            self.rebalancing.answer(waiter, self.classic_members.sync(consumers, request))
            return
        group = self.group(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        if group.state is EMPTY:
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        group.validate_member(request.member_id, request.group_instance_id)
        group.validate_generation(request.generation_id)
        if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol):
            raise GroupError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if group.state is PREPARING:
            raise GroupError(ErrorCode.REBALANCE_IN_PROGRESS)
        member = group.members[request.member_id]
        self.rebalancing.synced(group, request.member_id)
        if group.state is STABLE:
            self.rebalancing.answer(
                waiter, SyncGroupResponse(0, ErrorCode.NONE, group.protocol_type, group.protocol, member.assignment)
            )
            return
        self.rebalancing.refuse_former(member)
        member.awaiting_sync = waiter
        if request.member_id == group.leader_id:
            self.rebalancing.assign(group, {one.member_id: one.assignment for one in request.assignments})

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        """Heartbeat. Raises GroupError."""
        consumers = self.consumers.get(request.group_id)
        if consumers is not None:
            return self.classic_members.heartbeat(consumers, request)
        group = self.group(request.group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        group.validate_member(request.member_id, request.group_instance_id)
        group.validate_generation(request.generation_id)
        self.rebalancing.expect_heartbeat(group, group.members[request.member_id])
        return ON_HEARTBEAT[group.state]

    def leave(self, group_id: str, members: Iterable[MemberIdentity]) -> list[ErrorCode]:
        """LeaveGroup: whether each has left. Raises GroupError."""
        consumers = self.consumers.get(group_id)
        if consumers is not None:
            return self.classic_members.leave(consumers, members)
        group = self.group(group_id, ErrorCode.UNKNOWN_MEMBER_ID)
        codes = [self._left(group, member) for member in members]
        if ErrorCode.NONE in codes and group.state in (STABLE, COMPLETING, PREPARING):
            self.rebalancing.begin_or_complete(group)
        return codes

    def _left(self, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
        member_id, instance_id = identity.member_id, identity.group_instance_id
        if not member_id:  # an administrator removes a static member
            member_id = group.static_members.get(instance_id or "", "")
        elif member_id not in group.pending_join:
            try:
                group.validate_member(member_id, instance_id)
            except GroupError as e:
                return e.code
        if not member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
        self.rebalancing.expect_no_more(group, member_id)
        if member_id in group.members:
            self.rebalancing.refuse_waiting(group.members[member_id])
        group.remove(member_id)
        return ErrorCode.NONE

    def validate_delete(self, group_id: str) -> None:
        """Raises GroupError if a group may not be deleted."""
        group = self.any_group(group_id)
        if isinstance(group, ConsumerGroup):
            code = ErrorCode.NON_EMPTY_GROUP if group.members else ErrorCode.NONE
        else:
            code = ON_DELETE[group.state]
        if code:
            raise GroupError(code)

    def tombstones(self, group_id: str) -> list[Record]:
        """Records that delete a group."""
        consumers = self.consumers.get(group_id)
        return [group_metadata_tombstone(group_id)] if consumers is None else tombstones(consumers)

    def remove(self, group_id: str) -> None:
        """Forgets a group."""
        self.consumers.pop(group_id, None)
        self.remove_classic(group_id)

    def remove_classic(self, group_id: str) -> None:
        """Forgets a classic group."""
        group = self.groups.pop(group_id, None)
        if group is not None:
            self.rebalancing.end(group)

    def replay(self, group_id: str, value: GroupMetadataValue | None) -> None:
        """Applies a record of a classic group; None forgets the group."""
        if value is None:
            self.remove_classic(group_id)
            return
        self.remove(group_id)
        state_ms = None if value.current_state_timestamp == NO_TIME else value.current_state_timestamp
        group = ClassicGroup(group_id, state_ms, STABLE if value.members else EMPTY, generation=value.generation)
        for member in value.members:
            group.add(_loaded(member, value.protocol), value.protocol_type)
        group.protocol_type, group.protocol, group.leader_id = value.protocol_type or None, value.protocol, value.leader
        group.topics = group.subscribed()
        self.groups[group_id] = group

    def replay_consumers(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """Applies a record of a group of KIP-848; it takes the place of a simple one, which its offsets have made."""
        if key.group_id not in self.consumers:
            if value is None:
                return
            self.remove(key.group_id)
            self.consumers[key.group_id] = ConsumerGroup(key.group_id)
        if isinstance(key, ConsumerGroupMetadataKey) and value is None:
            del self.consumers[key.group_id]
        else:
            self.consumers[key.group_id].replay(key, value)

    def loaded(self) -> None:
        """All records are applied: members are expected to be heard of."""
        self.of_consumers.loaded()
        for group in self.groups.values():
            for member in group.members.values():
                self.rebalancing.expect_heartbeat(group, member)
            has_leader = group.leader_id is not None or not group.members
            if not has_leader:  # it has just been a consumer group
                group.leader_id = next(iter(group.members))
            if not has_leader or len(group.members) > self.rebalancing.config.group_max_size:
                self.rebalancing.begin(group)

    def unload(self) -> None:
        """Answers all that waits: its client looks for the coordinator again."""
        for group in self.groups.values():
            for member in group.members.values():
                if member.awaiting_join is not None:
                    self.rebalancing.refuse_join(member.awaiting_join, ErrorCode.NOT_COORDINATOR, member.member_id)
                    member.awaiting_join = None
                self.rebalancing.complete_sync(member, SyncGroupResponse(error_code=ErrorCode.NOT_COORDINATOR))


def _differs(said: str | None, known: str | None) -> bool:
    return said is not None and known is not None and said != known


def _loaded(member: MemberMetadata, protocol: str | None) -> Member:
    timeout_ms = member.rebalance_timeout
    return Member(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.session_timeout if timeout_ms == _NO_REBALANCE_TIMEOUT else timeout_ms,
        member.session_timeout,
        (JoinGroupRequestProtocol(protocol or "", member.subscription),),
        member.assignment,
    )
