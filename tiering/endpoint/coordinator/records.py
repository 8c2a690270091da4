"""The records of `__consumer_offsets`, as bytes and as values.

    key    int16 record type | OffsetCommitKey or GroupMetadataKey
    value  int16 version | OffsetCommitValue or GroupMetadataValue; null deletes the key

A record type names the key's class; types 0 and 1 are both committed offsets. The others are those of newer kinds of groups, and
are left alone. Source: the message schemas of Kafka's group coordinator, GroupCoordinatorRecordSerde and -Helpers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from local_log.errors import Corrupt
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.formats.primitives import need
from tiering.endpoint.coordinator.record_messages import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tiering.endpoint.protocol.reading import read_message
from tiering.endpoint.protocol.writing import Output, writer

_LEGACY_OFFSET_COMMIT, _OFFSET_COMMIT, _GROUP_METADATA = 0, 1, 2
_EXPIRING, _WITH_TOPIC_ID, _OF_GROUPS = 1, 4, 3
_LAST, _FLEXIBLE = 4, 4
_NUMBER = Struct(">h")
NO_EXPIRY: Final = -1

Key = OffsetCommitKey | GroupMetadataKey
Value = OffsetCommitValue | GroupMetadataValue

_KEYS: Final[Mapping[int, type]] = {
    _LEGACY_OFFSET_COMMIT: OffsetCommitKey,
    _OFFSET_COMMIT: OffsetCommitKey,
    _GROUP_METADATA: GroupMetadataKey,
}
_VALUES: Final[Mapping[type, type]] = {OffsetCommitKey: OffsetCommitValue, GroupMetadataKey: GroupMetadataValue}


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
    return Record(_written(key, _OFFSET_COMMIT, 0), _written(value, version, version))


def offset_commit_tombstone(key: OffsetCommitKey) -> Record:
    """Forgets an offset."""
    return Record(_written(key, _OFFSET_COMMIT, 0), None)


def group_metadata_record(group: str, value: GroupMetadataValue) -> Record:
    """Keeps a group's generation."""
    return Record(_written(GroupMetadataKey(group), _GROUP_METADATA, 0), _written(value, _OF_GROUPS, _OF_GROUPS))


def group_metadata_tombstone(group: str) -> Record:
    """Forgets a group."""
    return Record(_written(GroupMetadataKey(group), _GROUP_METADATA, 0), None)


def read_key(data: bytes) -> Key | None:
    """The key, None for one of another kind of record. Raises Corrupt."""
    record_type, pos = _number(data, "a key")
    of = _KEYS.get(record_type)
    return None if of is None else read_message(of, 0, data, pos, flexible=False)


def read_value(key: Key, data: bytes) -> Value:
    """The value of a key. Raises Corrupt, also for a version that Kafka 4.3 does not have."""
    version, pos = _number(data, "a value")
    if not 0 <= version <= _LAST:
        raise Corrupt(f"version {version} of the value of {key}; versions 0 to {_LAST} are known")
    found: Value = read_message(_VALUES[type(key)], version, data, pos, flexible=version >= _FLEXIBLE)
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


def _written(message: Key | Value, number: int, version: int) -> bytes:
    out = Output()
    of: Any = type(message)
    out.buffer += _NUMBER.pack(number)
    writer(of, version, flexible=version >= _FLEXIBLE)(out, message)
    return b"".join(out.finish()[0])
