"""What the log says of groups and their offsets when a coordinator starts (Kafka's CoordinatorLoader and replay)."""

from tiering.endpoint.coordinator.committed_offsets import CommittedOffsets
from tiering.endpoint.coordinator.group_metadata_manager import GroupMetadataManager
from tiering.endpoint.coordinator.offsets_log import EndOfTransaction, Loaded
from tiering.endpoint.coordinator.record_messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tiering.endpoint.coordinator.records import committed, read_key, read_value


def replay(found: Loaded | EndOfTransaction, groups: GroupMetadataManager, offsets: CommittedOffsets) -> None:
    """Applies a record or a marker; a group that has committed is there, also if nothing else says so. Raises Corrupt."""
    if isinstance(found, EndOfTransaction):
        offsets.end_transaction(found.transaction, is_committed=found.is_committed)
        return
    key = read_key(found.record.key)
    if key is None:
        return
    value = None if found.record.value is None else read_value(key, found.record.value)
    if isinstance(key, GroupMetadataKey):
        assert value is None or isinstance(value, GroupMetadataValue)
        groups.replay(key.group, value)
        return
    if not isinstance(key, OffsetCommitKey):
        assert not isinstance(value, OffsetCommitValue | GroupMetadataValue)
        groups.replay_consumers(key, value)
        return
    assert value is None or isinstance(value, OffsetCommitValue)
    if value is not None:
        groups.ensure(key.group)
    offsets.replay(key, None if value is None else committed(value, found.offset), found.transaction)
