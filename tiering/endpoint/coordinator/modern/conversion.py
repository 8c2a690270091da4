"""A classic group as a consumer group, and the other way round (Kafka's `fromClassicGroup` and `fromConsumerGroup`).

Members stay what they are: those of the classic protocol, which share partitions as they did. Whoever converts a group begins a
rebalance.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from local_log.errors import Corrupt
from tiering.endpoint.coordinator.classic_group import CONSUMER, ClassicGroup, Member
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.consumer_group_messages import ClassicMemberMetadata, ClassicProtocol
from tiering.endpoint.coordinator.consumer_protocol import read_assignment, read_subscription
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_states import STABLE
from tiering.endpoint.coordinator.modern.assignors.group_spec import Partitions
from tiering.endpoint.coordinator.modern.changes import Changes
from tiering.endpoint.coordinator.modern.classic_protocol import assignment, by_topic_id
from tiering.endpoint.coordinator.modern.consumer_group import NO_PARTITION, ConsumerGroup
from tiering.endpoint.coordinator.modern.member import ConsumerGroupMember
from tiering.endpoint.coordinator.modern.topics import Topics, metadata_hash
from tiering.endpoint.coordinator.records import group_metadata_tombstone
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequestProtocol

_NOT_ASSIGNED_HERE: Final = 0
"""When the target assignment was made that a leader has made: nobody waits until another one may be."""
_NO_TOPICS: Final = 0
"""The hash of no topics. Another one is found if there are topics, and an epoch begins."""


def topics_of(group: ClassicGroup) -> frozenset[str]:
    """The names of all topics that the members of a classic group subscribe or have; none if that cannot be told.

    For any thread, also while another one changes the members.
    """
    try:
        found = (read_assignment(one.assignment).assigned_partitions for one in tuple(group.members.values()) if one.assignment)
        return (group.topics or frozenset()) | {one.topic for of in found for one in of}
    except Corrupt:
        return frozenset()


def check_upgrade(group: ClassicGroup, config: GroupCoordinatorConfig, topics: Topics) -> None:
    """Raises GroupError if a classic group with members may not become a consumer group."""
    if not config.consumer_group_migration_policy.is_upgrade_enabled:
        raise _refused(group, "online upgrade is disabled")
    if group.protocol_type != CONSUMER:
        raise _refused(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > config.consumer_group_max_size:
        raise _refused(group, "the group size exceeds the consumer group maximum size")
    # Nobody could be told partitions of these, and whoever reads them now would stop without an error.
    without_id = [name for name in sorted(topics_of(group).intersection(topics.names())) if topics.topic(name) is None]
    if without_id:
        raise _refused(group, f"topic {without_id[0]} has no id, or cannot be read now")


def upgraded(group: ClassicGroup, topics: Topics) -> Changes:
    """The records that make a consumer group of a classic one, and that group. Raises GroupError."""
    try:
        members = [(_upgraded(group, one), _assigned(group, one, topics)) for one in group.members.values()]
    except Corrupt as e:
        raise _refused(group, "the embedded consumer protocol is malformed") from e
    changes = Changes.of_new(group.group_id, [group_metadata_tombstone(group.group_id)])
    for member, _ in members:
        changes.tell(member)
    # A static member in its own place subscribes nothing else, and would begin no epoch in which the rest is assigned.
    has_all = group.state is STABLE and _has_all(members, changes.group.subscribed, topics)
    changes.epoch(group.generation, metadata_hash(changes.group.subscribed, topics) if has_all else _NO_TOPICS)
    for member, partitions in members:
        changes.target(member.member_id, partitions)
    changes.target_epoch(group.generation, _NOT_ASSIGNED_HERE)
    for member, partitions in members:
        changes.assign(member.having(partitions, group.generation))
    return changes


def _upgraded(group: ClassicGroup, member: Member) -> ConsumerGroupMember:
    # While the first members join, they have not voted yet.
    subscription = read_subscription(member.metadata(group.protocol or group.select_protocol()))
    return ConsumerGroupMember(
        member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id or None,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        names=frozenset(subscription.topics),
        classic=ClassicMemberMetadata(
            member.session_timeout_ms, tuple(ClassicProtocol(one.name, one.metadata) for one in member.protocols)
        ),
    )


def _assigned(group: ClassicGroup, member: Member, topics: Topics) -> Partitions:
    """What its leader has given to a member: nothing yet to one that has just joined."""
    if not member.assignment:
        return NO_PARTITION
    found = read_assignment(member.assignment)
    if found.user_data:
        raise _refused(
            group,
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default assignor before "
            "re-attempting the upgrade",
        )
    return by_topic_id(found.assigned_partitions, topics)


def _has_all(members: Iterable[tuple[ConsumerGroupMember, Partitions]], names: Iterable[str], topics: Topics) -> bool:
    """Whether each partition of these topics is assigned to a member."""
    assigned = {(topic_id, number) for _, of in members for topic_id, numbers in of.items() for number in numbers}
    found = [topic for name in names if (topic := topics.topic(name)) is not None]
    return all((topic.topic_id, number) in assigned for topic in found for number in range(topic.partitions))


def _refused(group: ClassicGroup, why: str) -> GroupError:
    told = f"Cannot upgrade classic group {group.group_id} to consumer group because {why}."
    return GroupError(ErrorCode.GROUP_ID_NOT_FOUND, told)


def downgraded(group: ConsumerGroup, gone: Collection[str], generation: int, topics: Topics, now_ms: int) -> ClassicGroup:
    """A classic group of those members that have not gone, which are all of the classic protocol.

    One whose subscription cannot be read has no assignment. It does not keep the group as it is, or others could not leave that.
    """
    found = ClassicGroup(group.group_id, now_ms, STABLE, generation=generation)
    for member_id, member in group.members.items():
        if member_id not in gone:
            found.add(_downgraded(member), CONSUMER)
    found.protocol = found.select_protocol()
    found.topics = found.subscribed()
    for one in found.members.values():
        with suppress(Corrupt):
            target = group.targets.get(one.member_id, NO_PARTITION)
            one.assignment = assignment(target, one.metadata(found.protocol), topics)
    return found


def _downgraded(member: ConsumerGroupMember) -> Member:
    assert member.classic is not None
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        tuple(JoinGroupRequestProtocol(one.name, one.metadata) for one in member.classic.supported_protocols),
    )
