"""Consumer groups as they are described."""

from collections.abc import Iterable, Mapping

from tiering.endpoint.coordinator.modern.consumer_group import NO_PARTITION, ConsumerGroup
from tiering.endpoint.coordinator.modern.member import ConsumerGroupMember
from tiering.endpoint.coordinator.modern.topics import Topics
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_describe import (
    Assignment,
    DescribedConsumerGroup,
    Member,
    TopicPartitions,
)

_CLASSIC_MEMBER, _CONSUMER_MEMBER = 0, 1


def not_found(group_id: str, *, is_classic: bool) -> DescribedConsumerGroup:
    """The answer for a group that is not there, or is of another type."""
    told = f"Group {group_id} is not a consumer group." if is_classic else f"Group {group_id} not found."
    return DescribedConsumerGroup(ErrorCode.GROUP_ID_NOT_FOUND, told, group_id)


def described(group: ConsumerGroup, assignor: str, topics: Topics) -> DescribedConsumerGroup:
    """A group with its members. Topics that are gone are left out."""
    return DescribedConsumerGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=assignor,
        members=tuple(_member(group, member, topics) for member in group.members.values()),
    )


def _member(group: ConsumerGroup, member: ConsumerGroupMember, topics: Topics) -> Member:
    has: dict[str, list[int]] = {}
    for topic_id, epochs in (*member.assigned.items(), *member.revoked.items()):
        has.setdefault(topic_id, []).extend(epochs)
    return Member(
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.epoch,
        member.client_id,
        member.client_host,
        tuple(member.names),
        member.regex,
        _assignment(has, topics),
        _assignment(group.targets.get(member.member_id, NO_PARTITION), topics),
        _CONSUMER_MEMBER if member.classic is None else _CLASSIC_MEMBER,
    )


def _assignment(of: Mapping[str, Iterable[int]], topics: Topics) -> Assignment:
    found = ((topic_id, topics.name_of(topic_id), numbers) for topic_id, numbers in of.items())
    return Assignment(tuple(TopicPartitions(one, name, tuple(numbers)) for one, name, numbers in found if name is not None))
