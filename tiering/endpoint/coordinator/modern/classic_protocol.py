"""Members of the classic protocol in a consumer group, as their group sees them (of Kafka's ConsumerGroup)."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from local_log.errors import Corrupt
from tiering.endpoint.coordinator.classic_group import CONSUMER
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.consumer_group_messages import ClassicMemberMetadata, ClassicProtocol
from tiering.endpoint.coordinator.consumer_protocol import (
    ConsumerProtocolSubscription,
    TopicPartition,
    read_subscription,
    subscribed_topics,
    version_of,
    write_assignment,
)
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.joining import Client
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup
from tiering.endpoint.coordinator.modern.member import NO_TIMEOUT, ConsumerGroupMember, MemberState
from tiering.endpoint.coordinator.modern.topics import Topics
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import TopicPartitions
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest


def supports(group: ConsumerGroup, request: JoinGroupRequest) -> bool:
    """Whether a member may join with its protocols: all classic members of the group support one of them."""
    classic = [one.classic for one in group.members.values() if one.classic is not None]
    known = Counter(name for one in classic for name in {protocol.name for protocol in one.supported_protocols})
    return request.protocol_type == CONSUMER and any(known[one.name] == len(classic) for one in request.protocols)


def subscribed_by(request: JoinGroupRequest) -> frozenset[str]:
    """The topics that a consumer subscribes which joins; none if it does not say that."""
    try:
        return subscribed_topics(request.protocols[0].metadata) if request.protocols else frozenset()
    except Corrupt:
        return frozenset()


def subscription_of(request: JoinGroupRequest) -> ConsumerProtocolSubscription:
    """What a consumer says for its first protocol, as for all of them. Raises GroupError."""
    try:
        return read_subscription(request.protocols[0].metadata)
    except Corrupt as e:
        raise GroupError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the subscription cannot be read: {e}") from e


def joined(
    member: ConsumerGroupMember, request: JoinGroupRequest, subscription: ConsumerProtocolSubscription, client: Client
) -> ConsumerGroupMember:
    """The member as the request says it is."""
    timeout_ms = request.rebalance_timeout_ms
    protocols = tuple(ClassicProtocol(one.name, one.metadata) for one in request.protocols)
    return replace(
        member,
        instance_id=member.instance_id if request.group_instance_id is None else request.group_instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == NO_TIMEOUT else timeout_ms,
        names=frozenset(subscription.topics),
        regex="",
        client_id=client.client_id,
        client_host=client.host,
        classic=ClassicMemberMetadata(request.session_timeout_ms, protocols),
    )


def by_topic_id(partitions: Iterable[TopicPartition], topics: Topics) -> dict[str, frozenset[int]]:
    """Partitions by the ids of their topics, without topics that are not there."""
    found: dict[str, frozenset[int]] = {}
    for one in partitions:
        topic = topics.topic(one.topic)
        if topic is not None and one.partitions:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | frozenset(one.partitions)
    return found


def owned(subscription: ConsumerProtocolSubscription, topics: Topics) -> tuple[TopicPartitions, ...]:
    """The partitions that a consumer says it has: none where its version does not say."""
    found = by_topic_id(subscription.owned_partitions, topics)
    return tuple(TopicPartitions(topic_id, tuple(sorted(numbers))) for topic_id, numbers in found.items())


def assignment(partitions: Mapping[str, Iterable[int]], subscription: bytes, topics: Topics) -> bytes:
    """Partitions by topic id as the consumer with this subscription reads them; topics that are gone are left out."""
    found = {name: numbers for topic_id, numbers in partitions.items() if (name := topics.name_of(topic_id)) is not None}
    return write_assignment(found, version_of(subscription))


def is_behind(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether a member is to join again: for another assignment, to give up partitions, or as all that it is to have is free."""
    if member.epoch < group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS:
        return True
    return member.state is MemberState.UNRELEASED_PARTITIONS and not _waits(group, member)


def has_only_classic(group: ConsumerGroup) -> bool:
    """Whether a group has no member of KIP-848, whose heartbeats would assign partitions anew."""
    return all(one.classic is not None for one in group.members.values())


def _waits(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether others have partitions that a member is to have."""
    target = group.targets.get(member.member_id, {})
    missing = ((topic, number) for topic, of in target.items() for number in of - member.assigned.get(topic, {}).keys())
    return any(group.is_owned(topic, number) for topic, number in missing)


def becomes_classic(group: ConsumerGroup, gone: Collection[ConsumerGroupMember], config: GroupCoordinatorConfig) -> bool:
    """Whether a group becomes a classic one when these members have gone."""
    left = len(group.members) - len(gone)
    return left > 0 and _may_be_classic(group, gone, left, config)


def becomes_classic_by(group: ConsumerGroup, replaced: ConsumerGroupMember, config: GroupCoordinatorConfig) -> bool:
    """Whether a group becomes a classic one when a classic member takes the place of this one, which is static."""
    return replaced.classic is None and _may_be_classic(group, (replaced,), len(group.members), config)


def _may_be_classic(
    group: ConsumerGroup, without: Collection[ConsumerGroupMember], count: int, config: GroupCoordinatorConfig
) -> bool:
    ids = {one.member_id for one in without}
    if any(one.classic is None for one in group.members.values() if one.member_id not in ids):
        return False
    return config.consumer_group_migration_policy.is_downgrade_enabled and count <= config.group_max_size
