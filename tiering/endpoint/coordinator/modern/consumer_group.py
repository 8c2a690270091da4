"""A consumer group (Kafka's ConsumerGroup): what its records say, applied in order, and what follows from that."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from tiering.endpoint.coordinator import consumer_group_messages as messages
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.modern.assignors.group_spec import Partitions
from tiering.endpoint.coordinator.modern.member import LEAVE_EPOCH, NO_PARTITIONS, ConsumerGroupMember
from tiering.endpoint.coordinator.records import ConsumerGroupKey, ConsumerGroupValue
from tiering.endpoint.protocol.errors import ErrorCode

NO_PARTITION: Final[Partitions] = {}
_NO_ASSIGNMENT_EPOCH: Final = -1


class ConsumerGroupState(StrEnum):
    """As clients are told. It follows from the epochs of the group, of its assignment and of its members.

    Empty        it has no members
    Assigning    its epoch has no target assignment yet
    Reconciling  members do not have yet what the target assignment gives them
    Stable       all of them have
    """

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class ResolvedRegularExpression:
    """The topics that a regular expression named at a time."""

    topics: frozenset[str]
    at_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    """A group. What it knows of topics is not kept: it is asked anew."""

    group_id: str
    epoch: int = 1
    metadata_hash: int = 0
    assignment_epoch: int = 1
    assigned_ms: int = 0
    """When the target assignment was made; 0 if that is not known."""
    members: dict[str, ConsumerGroupMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    """Member ids by instance id."""
    targets: dict[str, Partitions] = field(default_factory=dict)
    """The partitions that each member is to have."""
    resolved: dict[str, ResolvedRegularExpression] = field(default_factory=dict)
    names: Counter[str] = field(default_factory=Counter)
    """How many members subscribe a topic by name."""
    regexes: Counter[str] = field(default_factory=Counter)
    owners: dict[tuple[str, int], str] = field(default_factory=dict)
    """The member that has a partition, or has not given it up yet."""
    has_partition_metadata: bool = False
    """Whether a record of Kafka before 4.1 is there, which is to be deleted."""
    looked_ms: int | None = None
    """When its topics were last compared with those that there are."""
    resolved_of: Collection[str] | None = None
    """The names of all topics when its regular expressions were last resolved."""

    def copy(self) -> "ConsumerGroup":
        """Another one that may be changed. What is inside does not change."""
        return replace(
            self,
            members=dict(self.members),
            static_members=dict(self.static_members),
            targets=dict(self.targets),
            resolved=dict(self.resolved),
            names=Counter(self.names),
            regexes=Counter(self.regexes),
            owners=dict(self.owners),
        )

    @property
    def protocol_type(self) -> str:
        """As a classic group of consumers has it."""
        return "consumer"

    @property
    def state(self) -> ConsumerGroupState:
        """Its state."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def subscribed(self) -> frozenset[str]:
        """The names of all topics that its members subscribe."""
        return frozenset(self.names).union(*(one.topics for one in self.resolved.values()))

    def is_subscribed(self, topic: str) -> bool:
        """Whether its members may read a topic."""
        return topic in self.names or any(topic in one.topics for one in self.resolved.values())

    def topics_of(self, member: ConsumerGroupMember) -> frozenset[str]:
        """The names of the topics that a member subscribes; an expression that is not resolved yet names none."""
        found = self.resolved.get(member.regex or "")
        return member.names if found is None else member.names | found.topics

    @property
    def is_homogeneous(self) -> bool:
        """Whether all members subscribe the same topics, as far as Kafka finds that out."""
        count = len(self.members)
        if not self.regexes:
            return all(of == count for of in self.names.values())
        by_regex = Counter(topic for one in self.resolved.values() for topic in one.topics)
        is_one = next(iter(self.regexes.values())) == count
        return is_one and not self.names and all(of == 1 for of in by_regex.values())

    @property
    def server_assignor(self) -> str | None:
        """The assignor that most members name, None if none does."""
        named = Counter(member.server_assignor for member in self.members.values() if member.server_assignor is not None)
        return max(named, key=lambda one: (named[one], one), default=None)

    def member(self, member_id: str) -> ConsumerGroupMember:
        """One that is there. Raises GroupError."""
        found = self.members.get(member_id)
        if found is None:
            told = f"Member {member_id} is not a member of group {self.group_id}."
            raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, told)
        return found

    def is_owned(self, topic_id: str, partition: int) -> bool:
        """Whether a member has a partition, or has not given it up yet."""
        return (topic_id, partition) in self.owners

    def replay(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """Applies a record; None deletes what the key names."""
        match key, value:
            case messages.ConsumerGroupMetadataKey(), messages.ConsumerGroupMetadataValue():
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case messages.ConsumerGroupPartitionMetadataKey(), _:
                self.has_partition_metadata = value is not None
            case messages.ConsumerGroupTargetAssignmentMetadataKey(), messages.ConsumerGroupTargetAssignmentMetadataValue():
                self.assignment_epoch, self.assigned_ms = value.assignment_epoch, value.assignment_timestamp
            case messages.ConsumerGroupTargetAssignmentMetadataKey(), _:
                self.assignment_epoch, self.assigned_ms = _NO_ASSIGNMENT_EPOCH, 0
            case messages.ConsumerGroupTargetAssignmentMemberKey(), messages.ConsumerGroupTargetAssignmentMemberValue():
                self.targets[key.member_id] = {one.topic_id: frozenset(one.partitions) for one in value.topic_partitions}
            case messages.ConsumerGroupTargetAssignmentMemberKey(), _:
                self.targets.pop(key.member_id, None)
            case messages.ConsumerGroupRegularExpressionKey(), messages.ConsumerGroupRegularExpressionValue():
                found = ResolvedRegularExpression(frozenset(value.topics), value.timestamp)
                self.resolved[key.regular_expression] = found
            case messages.ConsumerGroupRegularExpressionKey(), _:
                self.resolved.pop(key.regular_expression, None)
            case _:
                self._replay_member(key, value)

    def _replay_member(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        match key, value:
            case messages.ConsumerGroupMemberMetadataKey(), messages.ConsumerGroupMemberMetadataValue():
                self._update(self._known(key.member_id).with_metadata(value))
            case messages.ConsumerGroupMemberMetadataKey(), _:
                self._remove(key.member_id)
            case messages.ConsumerGroupCurrentMemberAssignmentKey(), messages.ConsumerGroupCurrentMemberAssignmentValue():
                self._update(self._known(key.member_id).with_assignment(value))
            case messages.ConsumerGroupCurrentMemberAssignmentKey(), _ if key.member_id in self.members:
                gone = replace(
                    self.members[key.member_id],
                    epoch=LEAVE_EPOCH,
                    previous_epoch=LEAVE_EPOCH,
                    assigned=NO_PARTITIONS,
                    revoked=NO_PARTITIONS,
                )
                self._update(gone)
            case _:
                return

    def _known(self, member_id: str) -> ConsumerGroupMember:
        return self.members.get(member_id) or ConsumerGroupMember(member_id)

    def _update(self, member: ConsumerGroupMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._forget(before)
        self.members[member.member_id] = member
        self.names.update(member.names)
        if member.regex:
            self.regexes[member.regex] += 1
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for topic, epochs in (*member.assigned.items(), *member.revoked.items()):
            for number in epochs:
                self.owners[topic, number] = member.member_id

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None:
            self._forget(member)

    def _forget(self, member: ConsumerGroupMember) -> None:
        """Takes back what `_update` has counted."""
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member.member_id:
            del self.static_members[member.instance_id]
        self.names.subtract(member.names)
        for name in member.names:
            if not self.names[name]:
                del self.names[name]
        if member.regex:
            self.regexes[member.regex] -= 1
            if not self.regexes[member.regex]:
                del self.regexes[member.regex]
        for topic, epochs in (*member.assigned.items(), *member.revoked.items()):
            for number in epochs:
                if self.owners.get((topic, number)) == member.member_id:
                    del self.owners[topic, number]
