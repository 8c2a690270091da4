"""The consumer groups, and what a request of a member of either protocol changes of one (of Kafka's GroupMetadataManager).

A change has three steps: what the member says of itself, which may begin an epoch of the group; the target assignment of that
epoch; and what the member gets of it, or has to give up. What follows from them is kept at once, or nothing is.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from tiering.endpoint.coordinator.classic_group import ClassicGroup
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_configs import ASSIGNMENT_INTERVAL, SESSION_TIMEOUT, GroupConfigs
from tiering.endpoint.coordinator.modern.assignors.assignors import ASSIGNORS
from tiering.endpoint.coordinator.modern.changes import Changes, tombstones
from tiering.endpoint.coordinator.modern.classic_protocol import becomes_classic
from tiering.endpoint.coordinator.modern.consumer_group import NO_PARTITION, ConsumerGroup
from tiering.endpoint.coordinator.modern.conversion import downgraded
from tiering.endpoint.coordinator.modern.member import ConsumerGroupMember
from tiering.endpoint.coordinator.modern.reconciliation import Facts, Owned, Target, reconciled
from tiering.endpoint.coordinator.modern.sessions import Sessions
from tiering.endpoint.coordinator.modern.subscriptions import Subscription, resolve, subscribe, update_topics
from tiering.endpoint.coordinator.modern.target_assignment import assign_targets, subscribed_ids
from tiering.endpoint.coordinator.modern.topics import Topics, metadata_hash
from tiering.endpoint.coordinator.rebalancing import Rebalancing
from tiering.endpoint.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class Advanced:
    """A member after the three steps, and what has changed of its subscription."""

    member: ConsumerGroupMember
    subscription: Subscription


@dataclass(slots=True)
class ConsumerGroups:
    """The consumer groups by id, and the classic ones, one of which may become the other."""

    rebalancing: Rebalancing
    topics: Topics
    configs: GroupConfigs
    """What groups have of their own."""
    groups: dict[str, ConsumerGroup]
    classics: dict[str, ClassicGroup]
    sessions: Sessions = field(init=False)

    def __post_init__(self) -> None:
        self.sessions = Sessions(self.rebalancing.timers, self._session_ms, self._expire)

    def now_ms(self) -> int:
        """The time."""
        return self.rebalancing.clock.now_ms()

    @property
    def config(self) -> GroupCoordinatorConfig:
        """The settings of the coordinator."""
        return self.rebalancing.config

    def _session_ms(self, group_id: str) -> int:
        return self.configs.get(group_id, SESSION_TIMEOUT, self.config.consumer_group_session_timeout_ms)

    def check_room(self, group: ConsumerGroup, member_id: str) -> None:
        """Raises GroupError if a group has no room for a member that it does not have yet."""
        most = self.config.consumer_group_max_size
        if len(group.members) >= most and member_id not in group.members:
            told = f"The consumer group has reached its maximum capacity of {most} members."
            raise GroupError(ErrorCode.GROUP_MAX_SIZE_REACHED, told)

    def advance(self, changes: Changes, before: ConsumerGroupMember, after: ConsumerGroupMember, owned: Owned) -> Advanced:
        """The three steps for a member that was `before` and says now that it is `after`. Raises GroupError."""
        subscription = self.subscribe(changes, before, after)
        group = changes.group
        if group.assignment_epoch < group.epoch and self.may_assign(group):
            assign_targets(changes, ASSIGNORS[self.assignor(group)], self.topics, self.now_ms())
        reached = self.reconcile(changes, after, owned, has_changed=subscription.has_changed)
        return Advanced(reached, subscription)

    def subscribe(self, changes: Changes, before: ConsumerGroupMember, after: ConsumerGroupMember) -> Subscription:
        """The first step. Raises GroupError."""
        found = subscribe(changes, before, after)
        update_topics(changes, self.topics, self.now_ms(), begins_epoch=found.begins_epoch)
        return found

    def may_assign(self, group: ConsumerGroup) -> bool:
        """Whether partitions may be assigned anew, since the last time is long enough ago."""
        default_ms = self.config.consumer_group_assignment_interval_ms
        interval_ms = self.configs.get(group.group_id, ASSIGNMENT_INTERVAL, default_ms)
        since_ms = self.now_ms() - group.assigned_ms
        return not group.assigned_ms or not 0 <= since_ms < interval_ms  # less than 0 where the clock was set back

    def assignor(self, group: ConsumerGroup) -> str:
        """The name of the assignor of a group."""
        named = group.server_assignor
        return self.config.consumer_group_assignors[0] if named is None else named

    def reconcile(self, changes: Changes, member: ConsumerGroupMember, owned: Owned, *, has_changed: bool) -> ConsumerGroupMember:
        """What a member gets of its target assignment, or has to give up. Raises GroupError."""
        group = changes.group
        if not has_changed and member.is_reconciled_to(group.assignment_epoch):
            return member
        target = Target(group.assignment_epoch, group.targets.get(member.member_id, NO_PARTITION))
        subscribed = subscribed_ids(group, member, self.topics)
        found = reconciled(member, Facts(target, has_changed, subscribed, owned, group.is_owned))
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
                self.sessions.expect_heartbeat(group.group_id, member)
                self.sessions.expect_revocation(group.group_id, member)

    def remove(self, group: ConsumerGroup, members: Collection[ConsumerGroupMember]) -> None:
        """Members less: their partitions are assigned to others in the next epoch.

        If only classic members are left, the group becomes a classic one, in which one of them assigns. Raises GroupError.
        """
        if becomes_classic(group, members, self.config):
            self.downgrade(Changes(group), [one.member_id for one in members], group.epoch, begins_rebalance=True)
            return
        changes = Changes(group)
        for member in members:
            changes.remove(member.member_id)
        for regex in {member.regex: None for member in members if member.regex}:
            if not changes.group.regexes[regex]:
                changes.forget_regex(regex)
        changes.begin_epoch(metadata_hash(changes.group.subscribed, self.topics))
        self.keep(changes)
        for member in members:
            self.sessions.expect_no_more(group.group_id, member.member_id)

    def resolved(self, group_id: str, found: Mapping[str, Iterable[str]], names: Collection[str]) -> None:
        """Regular expressions of a group are resolved, with these names of all topics. Raises GroupError."""
        group = self.groups.get(group_id)
        if group is not None:
            changes = Changes(group)
            resolve(changes, found, self.topics, self.now_ms())
            changes.group.resolved_of = names
            self.keep(changes)

    def keep(self, changes: Changes) -> None:
        """Keeps the records, and then the group as it is with them; a classic one of its name is no more. Raises GroupError."""
        group = changes.group
        if changes.records and self.rebalancing.journal is not None:
            self.rebalancing.journal.write(group.group_id, changes.records)
        self.groups[group.group_id] = group
        former = self.classics.pop(group.group_id, None)
        if former is not None:
            self.rebalancing.end(former)
            for member in group.members.values():
                self.sessions.expect_heartbeat(group.group_id, member)

    def downgrade(self, changes: Changes, gone: Collection[str], generation: int, *, begins_rebalance: bool) -> None:
        """A group becomes a classic one, with those of its members that have not gone. Raises GroupError."""
        group = changes.group
        found = downgraded(group, gone, generation, self.topics, self.now_ms())
        # A restart before the members have joined again must not leave the partitions of those that have gone to nobody.
        given = {one.member_id: one.assignment for one in found.members.values()}
        kept = self.rebalancing.record(found, given, has_leader=not begins_rebalance)
        if self.rebalancing.journal is not None:
            self.rebalancing.journal.write(group.group_id, [*changes.records, *tombstones(group), kept])
        del self.groups[group.group_id]
        self.classics[group.group_id] = found
        for member_id in group.members:
            self.sessions.expect_no_more(group.group_id, member_id)
        for member in found.members.values():
            self.rebalancing.expect_heartbeat(found, member)
        if begins_rebalance:
            self.rebalancing.begin(found)

    def _expire(self, group_id: str, member_id: str, epoch: int | None) -> None:
        """Removes a member, if it is still in this epoch."""
        group = self.groups.get(group_id)
        member = None if group is None else group.members.get(member_id)
        if group is None or member is None or epoch not in (None, member.epoch):
            return
        try:
            self.remove(group, [member])
        except GroupError:  # the journal has said why; it is tried again
            self.sessions.expect_heartbeat(group_id, member)
