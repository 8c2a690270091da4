"""ConsumerGroupHeartbeat: members of KIP-848 join, are heard of, and leave (of Kafka's GroupMetadataManager)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_configs import HEARTBEAT_INTERVAL
from tiering.endpoint.coordinator.group_states import EMPTY
from tiering.endpoint.coordinator.joining import Client
from tiering.endpoint.coordinator.modern.changes import Changes
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup
from tiering.endpoint.coordinator.modern.consumer_groups import ConsumerGroups
from tiering.endpoint.coordinator.modern.conversion import check_upgrade, topics_of, upgraded
from tiering.endpoint.coordinator.modern.member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_PARTITIONS,
    ConsumerGroupMember,
    Epochs,
)
from tiering.endpoint.coordinator.modern.subscriptions import is_look_due, needs_resolving, updated
from tiering.endpoint.coordinator.modern.validation import check_epoch, check_released, static_member
from tiering.endpoint.coordinator.records import group_metadata_tombstone
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)


@dataclass(frozen=True, slots=True)
class Heard:
    """The answer to a heartbeat; `regexes` are to be resolved after it."""

    response: ConsumerGroupHeartbeatResponse
    regexes: tuple[str, ...] = ()


@dataclass(slots=True)
class Heartbeats:
    """Heartbeats of members of all groups. `new_id` makes ids that nobody has."""

    of: ConsumerGroups
    new_id: Callable[[], str]

    def hear(self, request: ConsumerGroupHeartbeatRequest, client: Client) -> Heard:
        """A member joins or is heard of. Raises GroupError."""
        changes = self._group(request)
        before = changes.group
        self.of.check_room(before, request.member_id)
        member = self._member(changes, request)
        after = updated(member, request, client.client_id, client.host)
        found = self.of.advance(changes, member, after, request.topic_partitions)
        reached = found.member
        self.of.keep(changes)
        self._expect(request.group_id, member, after, reached)
        names = self.of.topics.names() if changes.group.regexes else ()
        interval_ms = self.of.config.consumer_group_regex_refresh_interval_ms
        brings_regex = found.subscription.brings_regex
        is_due = needs_resolving(before, changes.group, self.of.now_ms(), interval_ms, names, brings_regex=brings_regex)
        return Heard(self._response(request, member, reached), tuple(changes.group.regexes) if is_due else ())

    def topics_to_look_at(self, request: ConsumerGroupHeartbeatRequest) -> frozenset[str] | None:
        """The topics that the next heartbeat depends on, None if it depends on none that may have changed since the last one."""
        names = frozenset(request.subscribed_topic_names or ())
        group, classic = self.of.groups.get(request.group_id), self.of.classics.get(request.group_id)
        if classic is not None:
            return names | topics_of(classic)
        is_due = group is None or is_look_due(group, self.of.now_ms())
        if not is_due and not names and not request.subscribed_topic_regex:
            return None
        return names | group.subscribed if group is not None and is_due else names

    def _group(self, request: ConsumerGroupHeartbeatRequest) -> Changes:
        """The group as it is, made anew, or in the place of a classic one. Raises GroupError."""
        group_id, joins = request.group_id, request.member_epoch == JOIN_EPOCH
        group, classic = self.of.groups.get(group_id), self.of.classics.get(group_id)
        if group is not None:
            return Changes(group)
        if not joins:
            told = f"Consumer group {group_id} not found." if classic is None else f"Group {group_id} is not a consumer group."
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, told)
        if classic is None:
            return Changes.of_new(group_id)
        if classic.state is EMPTY:
            return Changes.of_new(group_id, [group_metadata_tombstone(group_id)])
        check_upgrade(classic, self.of.config, self.of.topics)
        return upgraded(classic, self.of.topics)

    def _member(self, changes: Changes, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupMember:
        """The member that asks, as it was; one that joins may be new, or take the place of a static one."""
        group, member_id, instance_id = changes.group, request.member_id or self.new_id(), request.instance_id
        joins = request.member_epoch == JOIN_EPOCH
        if instance_id is None or (joins and instance_id not in group.static_members):
            known = group.members.get(member_id)
            member = ConsumerGroupMember(member_id) if known is None and joins else group.member(member_id)
            if instance_id is None:
                check_epoch(member, request.member_epoch, request.topic_partitions)
            return member
        if not joins:
            member = static_member(group, instance_id, member_id)
            check_epoch(member, request.member_epoch, request.topic_partitions)
            return member
        before = group.members[group.static_members[instance_id]]
        if before.classic is None:
            check_released(before, member_id)
        return changes.replace(before, member_id)

    def _expect(
        self, group_id: str, before: ConsumerGroupMember, after: ConsumerGroupMember, reached: ConsumerGroupMember
    ) -> None:
        self.of.sessions.expect_heartbeat(group_id, reached)
        if reached != after:
            self.of.sessions.expect_revocation(group_id, reached)
        if before.classic is not None:
            self.of.sessions.is_of_classic_no_more(group_id, reached.member_id)

    def leave(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """A member leaves; a static one may say that it will be back. Raises GroupError."""
        group = self.of.groups.get(request.group_id)
        if group is None:
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        member_id, instance_id = request.member_id, request.instance_id
        member = group.member(member_id) if instance_id is None else static_member(group, instance_id, member_id)
        if instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
            self._leave_for_a_time(group, member)
        else:
            self.of.remove(group, [member])
        return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)

    def _leave_for_a_time(self, group: ConsumerGroup, member: ConsumerGroupMember) -> None:
        changes = Changes(group)
        assigned: Epochs = {topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()}
        changes.assign(replace(member, epoch=LEAVE_STATIC_EPOCH, assigned=assigned, revoked=NO_PARTITIONS))
        self.of.keep(changes)

    def _response(
        self, request: ConsumerGroupHeartbeatRequest, before: ConsumerGroupMember, after: ConsumerGroupMember
    ) -> ConsumerGroupHeartbeatResponse:
        has_subscription = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        is_full = request.rebalance_timeout_ms != -1 and has_subscription and request.topic_partitions is not None
        assignment = None
        if request.member_epoch == JOIN_EPOCH or is_full or before.assigned != after.assigned:
            assignment = Assignment(tuple(TopicPartitions(topic, tuple(of)) for topic, of in after.assigned.items()))
        return ConsumerGroupHeartbeatResponse(
            member_id=after.member_id,
            member_epoch=after.epoch,
            heartbeat_interval_ms=self.of.configs.get(
                request.group_id, HEARTBEAT_INTERVAL, self.of.config.consumer_group_heartbeat_interval_ms
            ),
            assignment=assignment,
        )
