"""What a request changes of a group: records, and the group as it is with them. Nothing is changed until they are kept."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from tiering.endpoint.coordinator import consumer_group_messages as messages
from tiering.endpoint.coordinator.modern.assignors.group_spec import Partitions
from tiering.endpoint.coordinator.modern.consumer_group import NO_PARTITION, ConsumerGroup
from tiering.endpoint.coordinator.modern.member import JOIN_EPOCH, ConsumerGroupMember
from tiering.endpoint.coordinator.records import ConsumerGroupKey, ConsumerGroupValue, Record, record


@dataclass(slots=True)
class Changes:
    """`group` is another one than before as soon as there are records."""

    group: ConsumerGroup
    records: list[Record] = field(default_factory=list)
    _is_own: bool = False

    @classmethod
    def of_new(cls, group_id: str, records: Iterable[Record] = ()) -> "Changes":
        """Of a group that is not there yet; what its records make room for is deleted by the first ones."""
        return cls(ConsumerGroup(group_id), list(records), True)

    def put(self, key: ConsumerGroupKey, value: ConsumerGroupValue | None) -> None:
        """A record more; None deletes what the key names."""
        if not self._is_own:
            self.group, self._is_own = self.group.copy(), True
        self.records.append(record(key, value))
        self.group.replay(key, value)

    def begin_epoch(self, metadata_hash: int) -> None:
        """The next epoch of the group, so that partitions are assigned anew."""
        self.epoch(self.group.epoch + 1, metadata_hash)

    def epoch(self, epoch: int, metadata_hash: int) -> None:
        """This epoch of the group."""
        key = messages.ConsumerGroupMetadataKey(self.group.group_id)
        self.put(key, messages.ConsumerGroupMetadataValue(epoch, metadata_hash))

    def tell(self, member: ConsumerGroupMember) -> None:
        """What a member says of itself."""
        self.put(messages.ConsumerGroupMemberMetadataKey(self.group.group_id, member.member_id), member.metadata())

    def assign(self, member: ConsumerGroupMember) -> None:
        """What a member has."""
        self.put(messages.ConsumerGroupCurrentMemberAssignmentKey(self.group.group_id, member.member_id), member.assignment())

    def target(self, member_id: str, partitions: Partitions) -> None:
        """What a member is to have."""
        found = (messages.TargetTopicPartitions(topic, tuple(sorted(numbers))) for topic, numbers in partitions.items())
        value = messages.ConsumerGroupTargetAssignmentMemberValue(tuple(found))
        self.put(messages.ConsumerGroupTargetAssignmentMemberKey(self.group.group_id, member_id), value)

    def target_epoch(self, epoch: int, now_ms: int) -> None:
        """The epoch that the target assignment is made for."""
        value = messages.ConsumerGroupTargetAssignmentMetadataValue(epoch, now_ms)
        self.put(messages.ConsumerGroupTargetAssignmentMetadataKey(self.group.group_id), value)

    def forget_partition_metadata(self) -> None:
        """Deletes what Kafka before 4.1 has written of the group's topics."""
        self.put(messages.ConsumerGroupPartitionMetadataKey(self.group.group_id), None)

    def resolve(self, regex: str, topics: Iterable[str], now_ms: int) -> None:
        """The topics that a regular expression names. The version is one that any metadata of a broker is newer than."""
        value = messages.ConsumerGroupRegularExpressionValue(tuple(sorted(topics)), 0, now_ms)
        self.put(messages.ConsumerGroupRegularExpressionKey(self.group.group_id, regex), value)

    def forget_regex(self, regex: str) -> None:
        """Nobody subscribes a regular expression any more."""
        self.put(messages.ConsumerGroupRegularExpressionKey(self.group.group_id, regex), None)

    def remove(self, member_id: str) -> None:
        """A member less, with all that it had."""
        group_id = self.group.group_id
        self.put(messages.ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None)
        self.put(messages.ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None)
        self.put(messages.ConsumerGroupMemberMetadataKey(group_id, member_id), None)

    def replace(self, before: ConsumerGroupMember, member_id: str) -> ConsumerGroupMember:
        """Another member takes the place of a static one, with what that was to have, but in no epoch yet."""
        after = replace(before, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        target = self.group.targets.get(before.member_id, NO_PARTITION)
        self.remove(before.member_id)
        self.tell(after)
        self.target(member_id, target)
        self.assign(after)
        return after


def tombstones(group: ConsumerGroup) -> list[Record]:
    """Records that delete a group, and all that it has."""
    group_id, members = group.group_id, tuple(group.members)
    keys: list[ConsumerGroupKey] = [messages.ConsumerGroupCurrentMemberAssignmentKey(group_id, one) for one in members]
    keys += (messages.ConsumerGroupTargetAssignmentMemberKey(group_id, one) for one in members)
    keys.append(messages.ConsumerGroupTargetAssignmentMetadataKey(group_id))
    keys += (messages.ConsumerGroupMemberMetadataKey(group_id, one) for one in members)
    keys += (messages.ConsumerGroupRegularExpressionKey(group_id, one) for one in group.resolved)
    keys.append(messages.ConsumerGroupPartitionMetadataKey(group_id))
    keys.append(messages.ConsumerGroupMetadataKey(group_id))
    return [record(key, None) for key in keys]
