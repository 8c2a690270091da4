"""What a member of a consumer group is refused, with Kafka's codes and messages."""

from collections.abc import Callable, Collection
from typing import Any, Final, TypeVar

from tiering.endpoint.coordinator.consumer_group_messages import ClassicMemberMetadata
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup
from tiering.endpoint.coordinator.modern.member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ConsumerGroupMember,
    Epochs,
)
from tiering.endpoint.coordinator.modern.reconciliation import Owned
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

T = TypeVar("T")

_OWN_MEMBER_ID_SINCE: Final = 1
"""The version of ConsumerGroupHeartbeat since which a client makes its member id itself (KIP-1082)."""
_MEMBERS_COMMIT_SINCE: Final = 9
"""The version of OffsetCommit since which members of consumer groups may commit."""


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Collection[str]) -> None:
    """Raises GroupError for a request that makes no sense."""
    epoch = request.member_epoch
    if (version >= _OWN_MEMBER_ID_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH) and not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    for name, text in (("GroupId", request.group_id), ("InstanceId", request.instance_id), ("RackId", request.rack_id)):
        if text is not None and not text.strip():
            raise _invalid(f"{name} can't be empty.")
    if epoch == JOIN_EPOCH:
        _check_join(request)
    elif epoch == LEAVE_STATIC_EPOCH and request.instance_id is None:
        raise _invalid("InstanceId can't be null.")
    elif epoch < LEAVE_STATIC_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        told = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}."
        raise GroupError(ErrorCode.UNSUPPORTED_ASSIGNOR, told)


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def check_epoch(member: ConsumerGroupMember, epoch: int, owned: Owned) -> None:
    """Raises GroupError for another epoch than the member's. It is the former one if the answer with the new one was lost."""
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    if epoch < member.epoch and epoch == member.previous_epoch and _is_subset(owned, member.assigned):
        return
    which = "greater" if epoch > member.epoch else "smaller"
    told = (
        f"The consumer group member has a {which} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.epoch}). The member must abandon all its partitions and rejoin."
    )
    raise GroupError(ErrorCode.FENCED_MEMBER_EPOCH, told)


def _is_subset(owned: Owned, of: Epochs) -> bool:
    if owned is None:
        return False
    return all(topic.topic_id in of and of[topic.topic_id].keys() >= set(topic.partitions) for topic in owned)


def static_member(group: ConsumerGroup, instance_id: str, member_id: str) -> ConsumerGroupMember:
    """The static member with this name, if it is the one that asks. Raises GroupError."""
    known = group.static_members.get(instance_id)
    if known is None:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if known != member_id:
        told = f"Static member {member_id} with instance id {instance_id} was fenced by member {known}."
        raise GroupError(ErrorCode.FENCED_INSTANCE_ID, told)
    return group.members[known]


def classic_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[ConsumerGroupMember, ClassicMemberMetadata]:
    """A member of the classic protocol that asks in its generation. Raises GroupError."""
    member = group.member(member_id) if instance_id is None else static_member(group, instance_id, member_id)
    if member.classic is None:
        raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} does not use the classic protocol.")
    if member.epoch != generation:
        raise GroupError(ErrorCode.ILLEGAL_GENERATION)
    return member, member.classic


def check_released(member: ConsumerGroupMember, member_id: str) -> None:
    """Raises GroupError if a static member has not left whose name another one wants."""
    if member.epoch != LEAVE_STATIC_EPOCH:
        told = (
            f"Static member {member_id} with instance id {member.instance_id} cannot join the group because the instance id is "
            f"owned by {member.member_id} member."
        )
        raise GroupError(ErrorCode.UNRELEASED_INSTANCE_ID, told)


def check_transactional_commit(group: ConsumerGroup, member_id: str, epoch: int) -> Callable[[str, int], None]:
    """As `check_commit`, for a producer, which knows nothing of epochs of members: to it they are generations."""

    def translated(check: Callable[..., T], *said: Any) -> T:
        try:
            return check(*said)
        except GroupError as e:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION if e.code is ErrorCode.STALE_MEMBER_EPOCH else e.code) from e

    check = translated(check_commit, group, member_id, epoch, _MEMBERS_COMMIT_SINCE)
    return lambda topic_id, partition: translated(check, topic_id, partition)


def check_commit(group: ConsumerGroup, member_id: str, epoch: int, version: int) -> Callable[[str, int], None]:
    """Raises GroupError if offsets may not be committed; the call that is returned does, for a topic id and a partition.

    A member may be an epoch behind: partitions that it had then, and has still, are its own. Without a member id, and in a group
    without members, anybody may.
    """
    if epoch < 0 and not group.members:
        return lambda topic_id, partition: None
    member = group.member(member_id)
    if member.classic is None and version < _MEMBERS_COMMIT_SINCE:
        raise GroupError(ErrorCode.UNSUPPORTED_VERSION)
    if epoch > member.epoch:
        raise _of_another_epoch(member)

    def check(topic_id: str, partition: int) -> None:
        if epoch < member.epoch:
            since = member.epoch_of(topic_id, partition)
            if since is None or epoch < since:
                raise _of_another_epoch(member)

    return check


def check_fetch(group: ConsumerGroup, member_id: str | None, epoch: int) -> None:
    """Raises GroupError if a member asks for offsets that is none, or is in another epoch."""
    if member_id is None and epoch < 0:
        return
    member = group.member(member_id or "")
    if member.epoch != epoch:
        raise _of_another_epoch(member)


def _of_another_epoch(member: ConsumerGroupMember) -> GroupError:
    """To a classic member its epoch is a generation."""
    return GroupError(ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION)


def _invalid(told: str) -> GroupError:
    return GroupError(ErrorCode.INVALID_REQUEST, told)
