"""The offsets that all groups have committed: what the records say, applied in order.

Those of a transaction are pending until its marker. Then they are committed, unless a later record has committed another one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.coordinator.offsets_log import Transaction
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
from tiering.endpoint.coordinator.records import OffsetAndMetadata

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
        for offsets in (self._stable, *self._pending.values()):
            for of_group in offsets.values():
                yield from (one.metadata for one in of_group.values())

    def keys(self, group: str) -> Iterator[OffsetCommitKey]:
        """Every key of a group, each once."""
        found = dict.fromkeys((*self.of_group(group), *self._open.get(group, ())))
        return (OffsetCommitKey(group, topic, number) for topic, number in found)

    def of_topic(self, topic: str, topic_id: str) -> dict[str, list[OffsetCommitKey]]:
        """The keys of a topic's offsets by group, each once; also of offsets that do not say which topic of the name it was."""
        found: dict[str, dict[OffsetCommitKey, None]] = defaultdict(dict)
        for offsets in (self._stable, *self._pending.values()):
            for group, of_group in offsets.items():
                for (name, number), offset in of_group.items():
                    if name == topic and offset.topic_id in (topic_id, ZERO_TOPIC_ID):
                        found[group][OffsetCommitKey(group, name, number)] = None
        return {group: list(keys) for group, keys in found.items()}

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


def _remove(offsets: _Offsets, group: str, partition: Partition) -> None:
    of_group = offsets.get(group)
    if of_group is not None:
        of_group.pop(partition, None)
        if not of_group:
            del offsets[group]
