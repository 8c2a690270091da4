"""The records of `__consumer_offsets`, as bytes and as values.

    key    int16 record type | the key's class
    value  int16 version | the value's class; null deletes the key

A record type names the classes of both; types 0 and 1 are both committed offsets, and 3 to 8 and 16 keep consumer groups. The
others are those of share groups and streams groups, and are left alone. Source: the message schemas of Kafka's group
coordinator, GroupCoordinatorRecordSerde and -Helpers.
"""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final, NamedTuple, TypeVar

from local_log.errors import Corrupt, Invalid
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.formats.primitives import need, write_uvarint
from tiering.endpoint.coordinator import consumer_group_messages as modern
from tiering.endpoint.coordinator.record_messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tiering.endpoint.protocol.reading import read_message
from tiering.endpoint.protocol.writing import INT16_MAX, Output, writer

T = TypeVar("T")

_BATCH_BYTES: Final = 256 << 10
"""Of texts in a batch of tombstones: far less than any topic of a coordinator takes, and more than the longest key."""
_TOMBSTONE_BYTES: Final = 50
"""Of a tombstone besides its texts."""
_EXPIRING, _WITH_TOPIC_ID, _OF_GROUPS = 1, 4, 3
_NUMBER, _INT32, _INT64 = Struct(">h"), Struct(">i"), Struct(">q")
_OFFSET_KEY: Final = _NUMBER.pack(1)
_OFFSET_BEGIN, _EXPIRING_BEGIN, _EXPIRING_END = Struct(">hqi"), Struct(">hq"), Struct(">qq")
"""The version, the offset and the leader epoch; in the version with a time of expiry, both times are at the end."""
_TAGGED_ID: Final = b"\x01\x00\x10"
"""One tagged field, 0, of 16 bytes."""
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


class OffsetAndMetadata(NamedTuple):
    """A committed offset. `record_offset` is where it stands in its partition of the topic, -1 before it is appended.

    A named tuple, since each commit makes two.
    """

    committed_offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY
    topic_id: str = ZERO_TOPIC_ID
    record_offset: int = -1

    def is_of_another(self, topic_id: str) -> bool:
        """Whether it certainly is of another topic of the name: both ids are known, and differ."""
        return ZERO_TOPIC_ID not in (self.topic_id, topic_id) and self.topic_id != topic_id


def record(key: Key, value: Value | None, version: int = 0) -> Record:
    """A key and its value in a version; without a value it deletes the key."""
    of = _BY_KEY[type(key)]
    data = None if value is None else _written(value, version, version, is_flexible=version >= of.flexible)
    return Record(_written(key, of.number, 0, is_flexible=False), data)


def offset_commit_record(key: OffsetCommitKey, offset: OffsetAndMetadata) -> Record:
    """Keeps an offset. The version with a time of expiry has neither leader epoch nor topic id, as in Kafka.

    The bytes are those of `record`, in a fifth of the time, since consumers commit all the time.
    """
    keyed = b"".join((_OFFSET_KEY, _string(key.group), _string(key.topic), _INT32.pack(key.partition)))
    committed_ms = offset.commit_timestamp_ms
    if offset.expire_timestamp_ms != NO_EXPIRY:
        begin, end = _EXPIRING_BEGIN.pack(_EXPIRING, offset.committed_offset), (committed_ms, offset.expire_timestamp_ms)
        return Record(keyed, b"".join((begin, _string(offset.metadata), _EXPIRING_END.pack(*end))))
    value, metadata = bytearray(), offset.metadata.encode()
    value += _OFFSET_BEGIN.pack(_WITH_TOPIC_ID, offset.committed_offset, offset.leader_epoch)
    write_uvarint(value, len(metadata) + 1)
    value += metadata
    value += _INT64.pack(committed_ms)
    if offset.topic_id == ZERO_TOPIC_ID:
        value.append(0)
    else:
        value += _TAGGED_ID
        value += urlsafe_b64decode(f"{offset.topic_id}==")
    return Record(keyed, bytes(value))


def offset_commit_tombstone(key: OffsetCommitKey) -> Record:
    """Forgets an offset."""
    return record(key, None)


def tombstone_size(key: OffsetCommitKey) -> int:
    """Bytes of `offset_commit_tombstone`, at most."""
    return 3 * (len(key.group) + len(key.topic)) + _TOMBSTONE_BYTES


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


def _string(text: str) -> bytes:
    data = text.encode()
    if len(data) > INT16_MAX:
        raise Invalid(f"a string of {len(data)} bytes in a record, where {INT16_MAX} are the most: use shorter names")
    return _NUMBER.pack(len(data)) + data


def _number(data: bytes, what: str) -> tuple[int, int]:
    need(data, 0, _NUMBER.size, what)
    return _NUMBER.unpack_from(data)[0], _NUMBER.size


def _written(message: Key | Value, number: int, version: int, *, is_flexible: bool) -> bytes:
    out = Output()
    of: Any = type(message)
    out.buffer += _NUMBER.pack(number)
    writer(of, version, flexible=is_flexible)(out, message)
    return b"".join(out.finish()[0])
