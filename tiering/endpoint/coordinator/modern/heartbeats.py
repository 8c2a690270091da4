"""ConsumerGroupHeartbeat: members join, are heard of, and leave (of Kafka's GroupMetadataManager).

A heartbeat has three steps: what the member says of itself, which may begin an epoch of the group; the target assignment of that
epoch; and what the member gets of it, or has to give up. What follows from them is kept at once, or nothing is.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_configs import ASSIGNMENT_INTERVAL, HEARTBEAT_INTERVAL, SESSION_TIMEOUT, GroupConfigs
from tiering.endpoint.coordinator.joining import Client
from tiering.endpoint.coordinator.journal import Journal
from tiering.endpoint.coordinator.modern.assignors.assignors import ASSIGNORS
from tiering.endpoint.coordinator.modern.changes import Changes
from tiering.endpoint.coordinator.modern.consumer_group import NO_PARTITION, ConsumerGroup
from tiering.endpoint.coordinator.modern.member import (
    JOIN_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_PARTITIONS,
    ConsumerGroupMember,
    Epochs,
    MemberState,
)
from tiering.endpoint.coordinator.modern.reconciliation import Facts, Target, reconciled
from tiering.endpoint.coordinator.modern.subscriptions import (
    is_look_due,
    needs_resolving,
    resolve,
    subscribe,
    update_topics,
    updated,
)
from tiering.endpoint.coordinator.modern.target_assignment import assign_targets, subscribed_ids
from tiering.endpoint.coordinator.modern.topics import Topics, metadata_hash
from tiering.endpoint.coordinator.modern.validation import check_epoch, check_released, static_member
from tiering.endpoint.coordinator.records import Record
from tiering.endpoint.coordinator.timers import Timers
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
    """The consumer groups, by id, and the times that their members have."""

    config: GroupCoordinatorConfig
    journal: Journal | None
    timers: Timers
    topics: Topics
    now_ms: Callable[[], int]
    new_id: Callable[[], str]
    groups: dict[str, ConsumerGroup] = field(default_factory=dict)
    configs: GroupConfigs = field(default_factory=GroupConfigs)
    """What groups have of their own."""

    def hear(self, request: ConsumerGroupHeartbeatRequest, client: Client, before: Iterable[Record] = ()) -> Heard:
        """A member joins or is heard of. `before` are records that make room for a new group. Raises GroupError."""
        group = self._group(request)
        changes = Changes(group, list(before))
        member = self._member(changes, request)
        after = updated(member, request, client.client_id, client.host)
        subscription = subscribe(changes, member, after)
        now_ms = self.now_ms()
        update_topics(changes, self.topics, now_ms, begins_epoch=subscription.begins_epoch)
        self._assign(changes, now_ms)
        reached = self._reconcile(changes, after, request, has_changed=subscription.has_changed)
        self._keep(changes)
        self.expect_heartbeat(request.group_id, reached.member_id)
        if reached != after:
            self.expect_revocation(request.group_id, reached)
        names = self.topics.names() if changes.group.regexes else ()
        interval_ms = self.config.consumer_group_regex_refresh_interval_ms
        is_due = needs_resolving(group, changes.group, now_ms, interval_ms, names, brings_regex=subscription.brings_regex)
        return Heard(self._response(request, member, reached), tuple(changes.group.regexes) if is_due else ())

    def topics_to_look_at(self, request: ConsumerGroupHeartbeatRequest) -> frozenset[str] | None:
        """The topics that the next heartbeat depends on, None if it depends on none that may have changed since the last one."""
        group = self.groups.get(request.group_id)
        is_due = group is None or is_look_due(group, self.now_ms())
        if not is_due and not request.subscribed_topic_names and not request.subscribed_topic_regex:
            return None
        names = frozenset(request.subscribed_topic_names or ())
        return names | group.subscribed if group is not None and is_due else names

    def _group(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroup:
        group = self.groups.get(request.group_id)
        if group is None and request.member_epoch != JOIN_EPOCH:
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {request.group_id} not found.")
        found = ConsumerGroup(request.group_id) if group is None else group
        most = self.config.consumer_group_max_size
        if len(found.members) >= most and request.member_id not in found.members:
            told = f"The consumer group has reached its maximum capacity of {most} members."
            raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED, told)
        return found

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
        check_released(before, member_id)
        member = replace(before, member_id=member_id, epoch=0, previous_epoch=0)
        target = group.targets.get(before.member_id, NO_PARTITION)
        changes.remove(before.member_id)
        changes.tell(member)
        changes.target(member_id, target)
        changes.assign(member)
        return member

    def _assign(self, changes: Changes, now_ms: int) -> None:
        """The target assignment of a new epoch, unless the last one is too recent."""
        group, default_ms = changes.group, self.config.consumer_group_assignment_interval_ms
        interval_ms = self.configs.get(group.group_id, ASSIGNMENT_INTERVAL, default_ms)
        is_early = group.assigned_ms and interval_ms and now_ms < group.assigned_ms + interval_ms
        if group.assignment_epoch < group.epoch and not is_early:
            assign_targets(changes, ASSIGNORS[self.assignor(group)], self.topics, now_ms)

    def assignor(self, group: ConsumerGroup) -> str:
        """The name of the assignor of a group."""
        named = group.server_assignor
        return self.config.consumer_group_assignors[0] if named is None else named

    def _reconcile(
        self, changes: Changes, member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, *, has_changed: bool
    ) -> ConsumerGroupMember:
        group = changes.group
        if not has_changed and member.is_reconciled_to(group.assignment_epoch):
            return member
        target = Target(group.assignment_epoch, group.targets.get(member.member_id, NO_PARTITION))
        subscribed = subscribed_ids(group, member, self.topics)
        found = reconciled(member, Facts(target, has_changed, subscribed, request.topic_partitions, group.is_owned))
        if found is None:
            told = "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin."
            raise GroupError(ErrorCode.FENCED_MEMBER_EPOCH, told)
        if found != member:
            changes.assign(found)
        return found

    def loaded(self) -> None:
        """All records are applied: members are expected to be heard of."""
        for group in self.groups.values():
            for member in group.members.values():
                self.expect_heartbeat(group.group_id, member.member_id)
                self.expect_revocation(group.group_id, member)

    def leave(self, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        """A member leaves; a static one may say that it will be back. Raises GroupError."""
        group = self.groups.get(request.group_id)
        if group is None:
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {request.group_id} not found.")
        member_id, instance_id = request.member_id, request.instance_id
        member = group.member(member_id) if instance_id is None else static_member(group, instance_id, member_id)
        if instance_id is not None and request.member_epoch == LEAVE_STATIC_EPOCH:
            changes = Changes(group)
            assigned: Epochs = {topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()}
            changes.assign(replace(member, epoch=LEAVE_STATIC_EPOCH, assigned=assigned, revoked=NO_PARTITIONS))
            self._keep(changes)
        else:
            self.remove(group, [member])
        return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)

    def remove(self, group: ConsumerGroup, members: Collection[ConsumerGroupMember]) -> None:
        """Members less: their partitions are assigned to others in the next epoch. Raises GroupError."""
        changes = Changes(group)
        for member in members:
            changes.remove(member.member_id)
        for regex in {member.regex: None for member in members if member.regex}:
            if not changes.group.regexes[regex]:
                changes.forget_regex(regex)
        changes.begin_epoch(metadata_hash(changes.group.subscribed, self.topics))
        self._keep(changes)
        for member in members:
            self.expect_no_more(group.group_id, member.member_id)

    def resolved(self, group_id: str, found: Mapping[str, Iterable[str]], names: Collection[str]) -> None:
        """Regular expressions of a group are resolved, with these names of all topics. Raises GroupError."""
        group = self.groups.get(group_id)
        if group is not None:
            changes = Changes(group)
            resolve(changes, found, self.topics, self.now_ms())
            changes.group.resolved_of = names
            self._keep(changes)

    def _keep(self, changes: Changes) -> None:
        group = changes.group
        if changes.records and self.journal is not None:
            self.journal.write(group.group_id, changes.records)
        self.groups[group.group_id] = group

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
            heartbeat_interval_ms=self.configs.get(
                request.group_id, HEARTBEAT_INTERVAL, self.config.consumer_group_heartbeat_interval_ms
            ),
            assignment=assignment,
        )

    def expect_heartbeat(self, group_id: str, member_id: str) -> None:
        """A member that is not heard of any more is removed."""
        timeout_ms = self.configs.get(group_id, SESSION_TIMEOUT, self.config.consumer_group_session_timeout_ms)
        at_ms = self.now_ms() + timeout_ms
        self.timers.schedule(("session", group_id, member_id), at_ms, lambda: self._expire(group_id, member_id))

    def expect_revocation(self, group_id: str, member: ConsumerGroupMember) -> None:
        """A member that does not give up in time what it is to give up is removed."""
        key, member_id, epoch = ("revocation", group_id, member.member_id), member.member_id, member.epoch
        if member.state is not MemberState.UNREVOKED_PARTITIONS:
            self.timers.cancel(key)
            return
        at_ms = self.now_ms() + member.rebalance_timeout_ms
        self.timers.schedule(key, at_ms, lambda: self._expire(group_id, member_id, epoch))

    def expect_no_more(self, group_id: str, member_id: str) -> None:
        """A member is there no more."""
        self.timers.cancel(("session", group_id, member_id))
        self.timers.cancel(("revocation", group_id, member_id))

    def _expire(self, group_id: str, member_id: str, epoch: int | None = None) -> None:
        """Removes a member, if it is still in this epoch."""
        group = self.groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or epoch not in (None, member.epoch):
            return
        try:
            self.remove(group, [member])
        except GroupError:  # the journal has said why; it is tried again
            self.expect_heartbeat(group_id, member_id)
