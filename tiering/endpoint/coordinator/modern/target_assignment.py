"""The target assignment of a group's epoch (Kafka's TargetAssignmentBuilder)."""

from collections.abc import Mapping

from local_log.formats.primitives import INT32_MAX
from tiering.endpoint.coordinator.modern.assignors.group_spec import Assignor, GroupSpec, MemberSpec, Partitions, frozen
from tiering.endpoint.coordinator.modern.changes import Changes
from tiering.endpoint.coordinator.modern.consumer_group import NO_PARTITION, ConsumerGroup
from tiering.endpoint.coordinator.modern.member import ConsumerGroupMember
from tiering.endpoint.coordinator.modern.topics import Topics


def subscribed_ids(group: ConsumerGroup, member: ConsumerGroupMember, topics: Topics) -> frozenset[str]:
    """The ids of the topics that a member subscribes and that there are."""
    found = (topics.topic(name) for name in group.topics_of(member))
    return frozenset(topic.topic_id for topic in found if topic is not None)


def assign_targets(changes: Changes, assignor: Assignor, topics: Topics, now_ms: int) -> None:
    """Assigns all partitions anew; the members' targets that change are records."""
    group = changes.group
    found = assignor(_spec(group, topics)) if group.members else {}
    for member_id in group.members:
        partitions = found.get(member_id, NO_PARTITION)
        if group.targets.get(member_id) != partitions:
            changes.target(member_id, partitions)
    changes.target_epoch(group.epoch, now_ms)


def _spec(group: ConsumerGroup, topics: Topics) -> GroupSpec:
    known = {name: topic for name in group.subscribed if (topic := topics.topic(name)) is not None}
    ids: dict[frozenset[str], frozenset[str]] = {}
    partitions = {topic.topic_id: topic.partitions for topic in known.values()}
    members = {}
    for member_id, member in group.members.items():
        names = group.topics_of(member)
        if names not in ids:  # most members subscribe the same
            ids[names] = frozenset(known[name].topic_id for name in names if name in known)
        assigned = _existing(group.targets.get(member_id, NO_PARTITION), partitions)
        members[member_id] = MemberSpec(member.instance_id, ids[names], assigned)
    return GroupSpec(members, partitions, group.is_homogeneous)


def _existing(assigned: Partitions, partitions: Mapping[str, int]) -> Partitions:
    """Without partitions that a topic had when more of it was known."""
    if all(max(numbers) < partitions.get(topic, INT32_MAX) for topic, numbers in assigned.items()):
        return assigned
    return frozen({topic: (n for n in numbers if n < partitions.get(topic, 0)) for topic, numbers in assigned.items()})
