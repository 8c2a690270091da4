"""The offsets that all groups have committed: what the records say, applied in order.

Those of a transaction are pending until its marker. Then they are committed, unless a later record has committed another one.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.coordinator.offsets_log import Transaction
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
from tiering.endpoint.coordinator.records import NO_EXPIRY, OffsetAndMetadata

Partition = tuple[str, int]
"""A topic's name and the number of a partition."""
_Offsets = defaultdict[str, dict[Partition, OffsetAndMetadata]]
_NOTHING: Mapping[Partition, OffsetAndMetadata] = {}


def _no_offsets() -> _Offsets:
    return defaultdict(dict)


@dataclass(slots=True)
class CommittedOffsets:
    """Offsets by group and partition; the pending ones by transaction, too."""

    _stable: _Offsets = field(default_factory=_no_offsets)
    _pending: dict[Transaction, _Offsets] = field(default_factory=dict)
    _open: dict[str, Counter[Partition]] = field(default_factory=lambda: defaultdict(Counter))
    """How many transactions have a pending offset of a group's partition: there may be thousands that have others."""

    def of_group(self, group: str) -> Mapping[Partition, OffsetAndMetadata]:
        """A group's offsets, in the order of their first commits."""
        return self._stable.get(group, _NOTHING)

    def groups(self) -> tuple[str, ...]:
        """The groups that have offsets."""
        return tuple(self._stable)

    def count(self) -> int:
        """How many are committed, those of open transactions aside."""
        return sum(map(len, self._stable.values()))

    def is_pending(self, group: str, partition: Partition) -> bool:
        """Whether an open transaction has committed an offset of the partition."""
        return group in self._open and partition in self._open[group]

    def has_pending(self, group: str) -> bool:
        """Whether an open transaction has committed offsets of the group."""
        return group in self._open

    def pending(self) -> Iterator[tuple[Transaction, OffsetCommitKey, OffsetAndMetadata]]:
        """The offsets of open transactions."""
        for transaction, offsets in self._pending.items():
            for group, of_group in offsets.items():
                for (topic, number), offset in of_group.items():
                    yield transaction, OffsetCommitKey(group, topic, number), offset

    def metadata(self) -> Iterator[str]:
        """The texts of all offsets, pending ones too."""
        return (offset.metadata for _, _, offset in self._all())

    def keys(self, group: str) -> Iterator[OffsetCommitKey]:
        """Every key of a group, each once."""
        found = dict.fromkeys((*self.of_group(group), *self._open.get(group, ())))
        return (OffsetCommitKey(group, topic, number) for topic, number in found)

    def of_topic(self, topic: str, topic_id: str) -> dict[str, list[OffsetCommitKey]]:
        """The keys of a topic's offsets by group, each once; also of offsets that do not say which topic of the name it was."""
        return self._keys_of(lambda name, offset: name == topic and offset.topic_id in (topic_id, ZERO_TOPIC_ID))

    def of_former(self, topic_ids: Mapping[str, str]) -> dict[str, list[OffsetCommitKey]]:
        """The keys of the offsets of topics that were deleted by group, each once. `topic_ids` has all topics by name.

        These are the offsets of another topic of the name, and those that do not say of which one they are since their client
        has given them a time to live, if there is none of the name. All others that do not say it, which a broker may have
        written, are not: their topic may be restored later. Nor are those of a topic that there is not, which no other one gets.
        """
        return self._keys_of(lambda name, offset: _is_former(offset, topic_ids.get(name)))

    def _keys_of(self, is_one: Callable[[str, OffsetAndMetadata], bool]) -> dict[str, list[OffsetCommitKey]]:
        """The keys all of whose offsets are such: a tombstone would forget the committed one and the pending ones."""
        found = {(group, partition): None for group, partition, offset in self._all() if is_one(partition[0], offset)}
        for group, partition, offset in self._all():
            if (group, partition) in found and not is_one(partition[0], offset):
                del found[group, partition]
        keys: dict[str, list[OffsetCommitKey]] = defaultdict(list)
        for group, (topic, number) in found:
            keys[group].append(OffsetCommitKey(group, topic, number))
        return keys

    def _all(self) -> Iterator[tuple[str, Partition, OffsetAndMetadata]]:
        """Every offset with its group, pending ones too."""
        for offsets in (self._stable, *self._pending.values()):
            for group, of_group in offsets.items():
                for partition, offset in of_group.items():
                    yield group, partition, offset

    def replay(self, key: OffsetCommitKey, offset: OffsetAndMetadata | None, transaction: Transaction | None = None) -> None:
        """Applies a record, of a transaction or of none; None forgets the offset."""
        partition = (key.topic, key.partition)
        if offset is None:
            _remove(self._stable, key.group, partition)
            if self.is_pending(key.group, partition):
                for offsets in self._pending.values():
                    _remove(offsets, key.group, partition)
                self._close(key.group, partition, self._open[key.group][partition])
        elif transaction is None:
            self._stable[key.group][partition] = offset
        else:
            of_group = self._pending.setdefault(transaction, _no_offsets())[key.group]
            self._open[key.group][partition] += partition not in of_group
            of_group[partition] = offset

    def end_transaction(self, transaction: Transaction, *, is_committed: bool) -> None:
        """Applies a transaction's marker."""
        for group, of_group in self._pending.pop(transaction, {}).items():
            for partition, offset in of_group.items():
                self._close(group, partition, 1)
                before = self.of_group(group).get(partition)
                if is_committed and (before is None or before.record_offset < offset.record_offset):
                    self._stable[group][partition] = offset

    def _close(self, group: str, partition: Partition, count: int) -> None:
        """So many transactions have no pending offset of the partition any more."""
        of_group = self._open[group]
        of_group[partition] -= count
        if not of_group[partition]:
            del of_group[partition]
        if not of_group:
            del self._open[group]


def _is_former(offset: OffsetAndMetadata, topic_id: str | None) -> bool:
    """Whether the offset certainly is of another topic than the one that its name has now, None for no topic."""
    if topic_id is None:
        return offset.topic_id == ZERO_TOPIC_ID and offset.expire_timestamp_ms != NO_EXPIRY
    return offset.is_of_another(topic_id)


def _remove(offsets: _Offsets, group: str, partition: Partition) -> None:
    of_group = offsets.get(group)
    if of_group is not None:
        of_group.pop(partition, None)
        if not of_group:
            del offsets[group]
