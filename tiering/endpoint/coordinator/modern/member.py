"""A member of a consumer group, and the state of its reconciliation (Kafka's ConsumerGroupMember): what the records say of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from tiering.endpoint.coordinator.consumer_group_messages import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
    CurrentTopicPartitions,
)

Epochs = Mapping[str, Mapping[int, int]]
"""Partitions by topic id and number, each with the epoch in which the member got it."""
NO_PARTITIONS: Final[Epochs] = {}
NO_TIMEOUT: Final = -1
JOIN_EPOCH, LEAVE_EPOCH, LEAVE_STATIC_EPOCH = 0, -1, -2
"""The epochs by which a member says that it joins, that it leaves, and that a static one will be back."""


class MemberState(IntEnum):
    """As records have it."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """A member. One that has just come has epoch 0."""

    member_id: str
    epoch: int = JOIN_EPOCH
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = NO_TIMEOUT
    names: frozenset[str] = frozenset()
    """The topics that it subscribes by name."""
    regex: str | None = ""
    """The regular expression of the topics that it subscribes, if any."""
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    """What it says of itself besides, if it is one of the classic protocol."""
    assigned: Epochs = field(default_factory=dict)
    revoked: Epochs = field(default_factory=dict)
    """Partitions that it is to give up, and has not yet."""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """Whether it has what the target assignment of this epoch gives it."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def with_epoch(self, epoch: int) -> "ConsumerGroupMember":
        """In another epoch; a request that comes once more with the former one is understood."""
        return replace(self, epoch=epoch, previous_epoch=self.epoch)

    def having(self, partitions: Mapping[str, Iterable[int]], epoch: int) -> "ConsumerGroupMember":
        """With these partitions, in an epoch that it has come to with them."""
        assigned = {topic: dict.fromkeys(sorted(numbers), epoch) for topic, numbers in partitions.items()}
        return replace(self, epoch=epoch, previous_epoch=epoch, assigned=assigned)

    def metadata(self) -> ConsumerGroupMemberMetadataValue:
        """What it says of itself, for a record."""
        return ConsumerGroupMemberMetadataValue(
            self.instance_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            tuple(sorted(self.names)),
            self.regex,
            self.rebalance_timeout_ms,
            self.server_assignor,
            self.classic,
        )

    def with_metadata(self, value: ConsumerGroupMemberMetadataValue) -> "ConsumerGroupMember":
        """As a record says. A classic member has protocols: a record without them was written before there were such members."""
        classic = value.classic_member_metadata
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            names=frozenset(value.subscribed_topic_names),
            regex=value.subscribed_topic_regex,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            server_assignor=value.server_assignor,
            classic=classic if classic is not None and classic.supported_protocols else None,
        )

    def assignment(self) -> ConsumerGroupCurrentMemberAssignmentValue:
        """What it has, for a record."""
        return ConsumerGroupCurrentMemberAssignmentValue(
            self.epoch, self.previous_epoch, self.state, _of_epochs(self.assigned), _of_epochs(self.revoked)
        )

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> "ConsumerGroupMember":
        """As a record says. States of a later version are unknown."""
        known = value.state in MemberState._value2member_map_
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if known else MemberState.UNKNOWN,
            assigned=_epochs(value.assigned_partitions, value.member_epoch),
            revoked=_epochs(value.partitions_pending_revocation, value.member_epoch),
        )

    def epoch_of(self, topic_id: str, partition: int) -> int | None:
        """The epoch in which it got a partition; None if it does not have it."""
        found = self.assigned.get(topic_id, {}).get(partition)
        return self.revoked.get(topic_id, {}).get(partition) if found is None else found


def _of_epochs(epochs: Epochs) -> tuple[CurrentTopicPartitions, ...]:
    return tuple(CurrentTopicPartitions(topic, tuple(of), tuple(of.values())) for topic, of in epochs.items())


def _epochs(of: Iterable[CurrentTopicPartitions], epoch: int) -> Epochs:
    """Records of Kafka before 4.3 have no epochs of partitions: they are those of the member."""
    found = {}
    for topic in of:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = (max(epoch, 0),) * len(topic.partitions)
        found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return found
