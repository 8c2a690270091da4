"""How much memory groups, their members and their offsets may take together: a broker's is its heap, and here is none.

What requests add is summed up, and what there is counted anew when that might be too much; so a request costs a sum.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from remote.clock import Time
from tiering.endpoint.at_hand import NotAtHand
from tiering.endpoint.coordinator.classic_group import ClassicGroup, Member, Protocols
from tiering.endpoint.coordinator.committed_offsets import CommittedOffsets, Partition
from tiering.endpoint.coordinator.consumer_group_messages import ClassicProtocol
from tiering.endpoint.coordinator.modern.classic_protocol import subscribed_by
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup
from tiering.endpoint.coordinator.modern.member import ConsumerGroupMember
from tiering.endpoint.coordinator.modern.topics import Topics
from tiering.endpoint.coordinator.records import OffsetAndMetadata
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest
from tiering.endpoint.protocol.messages.offset_commit import OffsetCommitRequest
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest
from tiering.endpoint.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest

MEMBER_BYTES: Final = 2_500
"""Of a member, of an id that was handed out, or of a group, besides its texts: measured, and rounded up."""
OFFSET_BYTES: Final = 800
PROTOCOL_BYTES: Final = 250
"""Of a protocol that a member names, besides its texts: measured, and rounded up."""
PARTITION_BYTES: Final = 250
"""Of a partition that a member has, or is to have."""
TEXT_BYTES: Final = 100
"""Of a topic's name in a subscription, besides its letters."""
RECOUNT_MS: Final = 1_000
"""For so long it is taken for full after it was found to be."""


def protocols_size(protocols: Protocols | tuple[ClassicProtocol, ...]) -> int:
    """What a member says of itself."""
    return sum(PROTOCOL_BYTES + texts_size(one.name) + len(one.metadata) for one in protocols)


def texts_size(*texts: str | None) -> int:
    """Of texts that clients choose: one letter beyond ASCII makes Python take up to four bytes for each."""
    return sum(len(text) if text.isascii() else 4 * len(text) for text in texts if text is not None)


def member_size(member: Member) -> int:
    """A member with its assignment."""
    texts = texts_size(member.member_id, member.instance_id, member.client_id)
    return MEMBER_BYTES + texts + protocols_size(member.protocols) + len(member.assignment)


def group_size(group: ClassicGroup) -> int:
    """A group with its members, and the ids that it has handed out."""
    texts = texts_size(group.group_id, group.protocol_type, *group.pending_join)
    return MEMBER_BYTES * (1 + len(group.pending_join)) + texts + sum(map(member_size, group.members.values()))


def consumer_group_size(group: ConsumerGroup) -> int:
    """A group of KIP-848 with its members, what they have and what they are to have."""
    members = sum(MEMBER_BYTES + _said_size(member) for member in group.members.values())
    targets = sum(len(numbers) for of in group.targets.values() for numbers in of.values())
    topics = sum(TEXT_BYTES + texts_size(topic) for one in group.resolved.values() for topic in one.topics)
    assigned = PARTITION_BYTES * (len(group.owners) + targets)
    return MEMBER_BYTES + texts_size(group.group_id, *group.regexes) + members + assigned + topics


def _said_size(member: ConsumerGroupMember) -> int:
    texts = (member.member_id, member.instance_id, member.rack_id, member.client_id, member.regex, *member.names)
    protocols = () if member.classic is None else member.classic.supported_protocols
    return TEXT_BYTES * len(member.names) + texts_size(*texts) + protocols_size(protocols)


def join_size(request: JoinGroupRequest, client_id: str, known: Member | None) -> int:
    """Bytes that a join adds to what is there; a member that says what it has said before adds none."""
    size = protocols_size(request.protocols)
    if known is not None:
        return size - protocols_size(known.protocols)
    of_member = 2 * texts_size(request.group_instance_id, client_id)  # its id begins with one of them
    return size + 2 * MEMBER_BYTES + texts_size(request.group_id, request.protocol_type) + of_member


def classic_join_size(request: JoinGroupRequest, client_id: str, group: ConsumerGroup, topics: Topics) -> int:
    """Bytes that the join of a classic member adds to a consumer group, which has its topics and partitions, as by heartbeats."""
    known = group.members.get(request.member_id)
    new = subscribed_by(request) - (frozenset() if known is None else known.names)
    found = (topics.topic(name) for name in new if not group.is_subscribed(name))
    partitions = sum(topic.partitions for topic in found if topic is not None)
    of_topics = TEXT_BYTES * len(new) + texts_size(*new) + 2 * PARTITION_BYTES * partitions
    if known is not None and known.classic is not None:
        return of_topics + protocols_size(request.protocols) - protocols_size(known.classic.supported_protocols)
    return of_topics + join_size(request, client_id, None)


def sync_size(request: SyncGroupRequest) -> int:
    """Bytes of the assignments that a leader makes."""
    return sum(len(one.assignment) for one in request.assignments)


def commit_size(
    request: OffsetCommitRequest | TxnOffsetCommitRequest, known: Mapping[Partition, OffsetAndMetadata], *, is_new: bool
) -> int:
    """Bytes that a commit adds to what its group has committed, and to the groups if it is a new one."""
    size = (MEMBER_BYTES + texts_size(request.group_id)) * is_new
    for topic in request.topics:
        for one in topic.partitions:
            before = known.get((topic.name, one.partition_index))
            size += texts_size(one.committed_metadata) + (OFFSET_BYTES if before is None else -texts_size(before.metadata))
    return size


def heartbeat_size(request: ConsumerGroupHeartbeatRequest, group: ConsumerGroup | None, topics: Topics) -> int:
    """Bytes that a heartbeat may add: of a member that joins, and of what it says anew."""
    known = None if group is None else group.members.get(request.member_id)
    names, before = request.subscribed_topic_names or (), frozenset() if known is None else known.names
    new = [name for name in names if name not in before]
    found = (topics.topic(name) for name in new if group is None or not group.is_subscribed(name))
    partitions = sum(topic.partitions for topic in found if topic is not None)
    regex = request.subscribed_topic_regex  # the member has it, and so has the group
    texts = texts_size(regex, regex, request.rack_id, *new)
    of_member = (
        0 if known is not None else 2 * MEMBER_BYTES + texts_size(request.group_id, request.member_id, request.instance_id)
    )
    return of_member + texts + TEXT_BYTES * len(new) + 2 * PARTITION_BYTES * partitions


def counted(groups: Iterable[ClassicGroup], consumers: Iterable[ConsumerGroup], offsets: CommittedOffsets) -> int:
    """All that there is."""
    of_groups = sum(map(group_size, groups)) + sum(map(consumer_group_size, consumers))
    return of_groups + sum(OFFSET_BYTES + texts_size(metadata) for metadata in offsets.metadata())


@dataclass(slots=True)
class GroupMemory:
    """Bytes, about. `count` counts all that there is."""

    bytes_max: int
    count: Callable[[], int]
    clock: Time
    _used: int = 0
    """Not less than what there is."""
    _full_until_ms: int = 0

    def recount(self) -> None:
        """Counts what there is."""
        self._used = self.count()

    def takes(self, size: int, *, may_count: bool = True) -> bool:
        """Whether there is room for so many bytes more, which are taken then. Raises NotAtHand if it had to count and may not."""
        if size > 0 and self._used + size > self.bytes_max:
            now_ms = self.clock.hi_res_clock_ms()
            if now_ms < self._full_until_ms:
                return False
            if not may_count:
                raise NotAtHand
            self.recount()
            if self._used + size > self.bytes_max:
                self._full_until_ms = now_ms + RECOUNT_MS
                return False
        self._used += max(0, size)
        return True
