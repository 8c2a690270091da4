"""The records of `__consumer_offsets`, as bytes and as values.

    key    int16 record type | the key's class
    value  int16 version | the value's class; null deletes the key

A record type names the classes of both; types 0 and 1 are both committed offsets, and 3 to 8 and 16 keep consumer groups. The
others are those of share groups and streams groups, and are left alone. Source: the message schemas of Kafka's group
coordinator, GroupCoordinatorRecordSerde and -Helpers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final, TypeVar

from local_log.errors import Corrupt
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.formats.primitives import need
from tiering.endpoint.coordinator import consumer_group_messages as modern
from tiering.endpoint.coordinator.record_messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tiering.endpoint.protocol.reading import read_message
from tiering.endpoint.protocol.writing import Output, writer

T = TypeVar("T")

_BATCH_BYTES: Final = 256 << 10
"""Of texts in a batch of tombstones: far less than any topic of a coordinator takes, and more than the longest key."""
_EXPIRING, _WITH_TOPIC_ID, _OF_GROUPS = 1, 4, 3
_NUMBER = Struct(">h")
NO_EXPIRY: Final = -1

ConsumerGroupKey = (
    modern.ConsumerGroupMetadataKey
    | modern.ConsumerGroupPartitionMetadataKey
    | modern.ConsumerGroupMemberMetadataKey
    | modern.ConsumerGroupTargetAssignmentMetadataKey
    | modern.ConsumerGroupTargetAssignmentMemberKey
    | modern.ConsumerGroupCurrentMemberAssignmentKey
    | modern.ConsumerGroupRegularExpressionKey
)
ConsumerGroupValue = (
    modern.ConsumerGroupMetadataValue
    | modern.ConsumerGroupPartitionMetadataValue
    | modern.ConsumerGroupMemberMetadataValue
    | modern.ConsumerGroupTargetAssignmentMetadataValue
    | modern.ConsumerGroupTargetAssignmentMemberValue
    | modern.ConsumerGroupCurrentMemberAssignmentValue
    | modern.ConsumerGroupRegularExpressionValue
)
Key = OffsetCommitKey | GroupMetadataKey | ConsumerGroupKey
Value = OffsetCommitValue | GroupMetadataValue | ConsumerGroupValue


@dataclass(frozen=True, slots=True)
class _RecordType:
    """The classes of a type of records, the last version of its values, and the first one with tagged fields."""

    number: int
    key: type
    value: type
    last: int = 0
    flexible: int = 0


_TYPES: Final = (
    _RecordType(0, OffsetCommitKey, OffsetCommitValue, 4, 4),
    _RecordType(1, OffsetCommitKey, OffsetCommitValue, 4, 4),
    _RecordType(2, GroupMetadataKey, GroupMetadataValue, 4, 4),
    _RecordType(3, modern.ConsumerGroupMetadataKey, modern.ConsumerGroupMetadataValue),
    _RecordType(4, modern.ConsumerGroupPartitionMetadataKey, modern.ConsumerGroupPartitionMetadataValue),
    _RecordType(5, modern.ConsumerGroupMemberMetadataKey, modern.ConsumerGroupMemberMetadataValue),
    _RecordType(6, modern.ConsumerGroupTargetAssignmentMetadataKey, modern.ConsumerGroupTargetAssignmentMetadataValue),
    _RecordType(7, modern.ConsumerGroupTargetAssignmentMemberKey, modern.ConsumerGroupTargetAssignmentMemberValue),
    _RecordType(8, modern.ConsumerGroupCurrentMemberAssignmentKey, modern.ConsumerGroupCurrentMemberAssignmentValue),
    _RecordType(16, modern.ConsumerGroupRegularExpressionKey, modern.ConsumerGroupRegularExpressionValue),
)
_BY_NUMBER: Final[Mapping[int, _RecordType]] = {of.number: of for of in _TYPES}
_BY_KEY: Final[Mapping[type, _RecordType]] = {of.key: of for of in _TYPES}
"""A committed offset is written with the later one of its types."""


@dataclass(frozen=True, slots=True)
class Record:
    """A key and its value; None deletes it."""

    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset. `record_offset` is where it stands in its partition of the topic, -1 before it is appended."""

    committed_offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY
    topic_id: str = ZERO_TOPIC_ID
    record_offset: int = -1


def record(key: Key, value: Value | None, version: int = 0) -> Record:
    """A key and its value in a version; without a value it deletes the key."""
    of = _BY_KEY[type(key)]
    data = None if value is None else _written(value, version, version, is_flexible=version >= of.flexible)
    return Record(_written(key, of.number, 0, is_flexible=False), data)


def offset_commit_record(key: OffsetCommitKey, offset: OffsetAndMetadata) -> Record:
    """Keeps an offset. The version with a time of expiry has neither leader epoch nor topic id, as in Kafka."""
    value = OffsetCommitValue(
        offset.committed_offset,
        offset.leader_epoch,
        offset.metadata,
        offset.commit_timestamp_ms,
        offset.expire_timestamp_ms,
        offset.topic_id,
    )
    version = _WITH_TOPIC_ID if offset.expire_timestamp_ms == NO_EXPIRY else _EXPIRING
    return record(key, value, version)


def offset_commit_tombstone(key: OffsetCommitKey) -> Record:
    """Forgets an offset."""
    return record(key, None)


def group_metadata_record(group: str, value: GroupMetadataValue) -> Record:
    """Keeps a group's generation."""
    return record(GroupMetadataKey(group), value, _OF_GROUPS)


def group_metadata_tombstone(group: str) -> Record:
    """Forgets a group."""
    return record(GroupMetadataKey(group), None)


def in_batches(of: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """The same in order, as many at once as fit in a batch. A group may have more offsets than that."""
    batch, used = list[T](), 0
    for one in of:
        if batch and used + size(one) > _BATCH_BYTES:
            yield batch
            batch, used = [], 0
        batch.append(one)
        used += size(one)
    if batch:
        yield batch


def read_key(data: bytes) -> Key | None:
    """The key, None for one of another kind of record. Raises Corrupt."""
    record_type, pos = _number(data, "a key")
    of = _BY_NUMBER.get(record_type)
    return None if of is None else read_message(of.key, 0, data, pos, flexible=False)


def read_value(key: Key, data: bytes) -> Value:
    """The value of a key. Raises Corrupt, also for a version that Kafka 4.3 does not have."""
    version, pos = _number(data, "a value")
    of = _BY_KEY[type(key)]
    if not 0 <= version <= of.last:
        raise Corrupt(f"version {version} of the value of {key}; versions 0 to {of.last} are known")
    found: Value = read_message(of.value, version, data, pos, flexible=version >= of.flexible)
    return found


def committed(value: OffsetCommitValue, record_offset: int) -> OffsetAndMetadata:
    """The offset that a record keeps."""
    return OffsetAndMetadata(
        value.offset,
        value.leader_epoch,
        value.metadata,
        value.commit_timestamp,
        value.expire_timestamp,
        value.topic_id,
        record_offset,
    )


def _number(data: bytes, what: str) -> tuple[int, int]:
    need(data, 0, _NUMBER.size, what)
    return _NUMBER.unpack_from(data)[0], _NUMBER.size


def _written(message: Key | Value, number: int, version: int, *, is_flexible: bool) -> bytes:
    out = Output()
    of: Any = type(message)
    out.buffer += _NUMBER.pack(number)
    writer(of, version, flexible=is_flexible)(out, message)
    return b"".join(out.finish()[0])
