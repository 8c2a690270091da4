"""The records of a KRaft cluster's metadata log about topics: topics, partitions and leaders, settings.

A record's value is a frame of unsigned varints, then the record:

    frame version, 1
    record kind (apiKey)
    record version
    …  fields, big-endian; strings as varint length + 1 and UTF-8, arrays as varint count + 1; 0 where there is none
    …  tagged fields: varint count, then for each varint tag, varint size and its bytes

    kind  name                    what is read of it
       2  TopicRecord             name string, topic id uuid
       3  PartitionRecord         partition int32, topic id uuid, four arrays of int32, leader int32
       4  ConfigRecord            resource type int8, resource, name, value strings; a setting without a value is deleted
       5  PartitionChangeRecord   partition int32, topic id uuid; tag 1: leader int32
       9  RemoveTopicRecord       topic id uuid
      23  BeginTransactionRecord, 24 EndTransactionRecord, 25 AbortTransactionRecord

Kafka's other kinds (brokers, users, quotas and more, about twenty) are skipped. Source: Kafka's MetadataRecordSerde and the
messages in metadata/src/main/resources/common/metadata.
"""

import base64
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Final

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer, need, read_uvarint

FRAME_VERSION: Final = 1
TOPIC_RESOURCE: Final = 2
BROKER_RESOURCE: Final = 4

_UUID_BYTES: Final = 16
_INT32 = struct.Struct(">i")
_REPLICA_LISTS: Final = 4
_LEADER_TAG: Final = 1


class TransactionMark(IntEnum):
    """The begin, end and abort of a transaction, whose records apply together or not at all (KIP-868)."""

    begin = 23
    end = 24
    abort = 25


@dataclass(frozen=True, slots=True)
class TopicMade:
    """A created topic, with the id that distinguishes it from other topics of its name (22 characters of base64)."""

    name: str
    topic_id: str


@dataclass(frozen=True, slots=True)
class TopicRemoved:
    """The topic with this id is deleted."""

    topic_id: str


@dataclass(frozen=True, slots=True)
class LeaderNamed:
    """A partition's new leader, by broker id; -1 for none."""

    topic_id: str
    partition: int
    leader: int


@dataclass(frozen=True, slots=True)
class ConfigSet:
    """A setting of a resource (see TOPIC_RESOURCE; BROKER_RESOURCE has the name "" for all brokers). None deletes it."""

    resource_type: int
    resource: str
    name: str
    value: str | None


MetadataRecord = TopicMade | TopicRemoved | LeaderNamed | ConfigSet | TransactionMark


def read_metadata_record(value: Buffer) -> MetadataRecord | None:
    """The record of a value; None if it is of another kind or does not change the leader. Raises Corrupt."""
    frame, pos = read_uvarint(value, 0, "a metadata record's frame version")
    if frame != FRAME_VERSION:
        raise Corrupt(f"a metadata record of frame version {frame}; version {FRAME_VERSION} is known: upgrade kafka-tiering")
    kind, pos = read_uvarint(value, pos, "a metadata record's kind")
    version, pos = read_uvarint(value, pos, "a metadata record's version")
    if kind not in _READERS:
        return None
    version_max, read = _READERS[kind]
    if version > version_max:
        raise Corrupt(
            f"a metadata record of kind {kind}, version {version}; versions up to {version_max} are known: upgrade kafka-tiering"
        )
    return read(value, pos)


def _topic(value: Buffer, pos: int) -> TopicMade:
    name, pos = _string(value, pos, "a topic's name")
    return TopicMade(name, _uuid(value, pos)[0])


def _removed(value: Buffer, pos: int) -> TopicRemoved:
    return TopicRemoved(_uuid(value, pos)[0])


def _partition(value: Buffer, pos: int) -> LeaderNamed:
    partition, pos = _int32(value, pos, "a partition's number")
    topic_id, pos = _uuid(value, pos)
    for _ in range(_REPLICA_LISTS):
        count, pos = read_uvarint(value, pos, "a list of replicas")
        size = _INT32.size * max(0, count - 1)
        need(value, pos, size, "a list of replicas")
        pos += size
    return LeaderNamed(topic_id, partition, _int32(value, pos, "a partition's leader")[0])


def _change(value: Buffer, pos: int) -> LeaderNamed | None:
    partition, pos = _int32(value, pos, "a partition's number")
    topic_id, pos = _uuid(value, pos)
    tags, pos = read_uvarint(value, pos, "a count of tagged fields")
    for _ in range(tags):
        tag, pos = read_uvarint(value, pos, "a tag")
        size, pos = read_uvarint(value, pos, "a tagged field's size")
        need(value, pos, size, "a tagged field")
        if tag == _LEADER_TAG:
            return LeaderNamed(topic_id, partition, _int32(value, pos, "a partition's leader")[0])
        pos += size
    return None


def _config(value: Buffer, pos: int) -> ConfigSet:
    need(value, pos, 1, "a resource's type")
    resource, after = _string(value, pos + 1, "a resource's name")
    name, after = _string(value, after, "a setting's name")
    text, _ = _nullable_string(value, after, "a setting's value")
    return ConfigSet(value[pos], resource, name, text)


def _mark(mark: TransactionMark, _value: Buffer, _pos: int) -> TransactionMark:
    return mark


_READERS: Mapping[int, tuple[int, Callable[[Buffer, int], MetadataRecord | None]]] = {
    2: (0, _topic),
    3: (2, _partition),
    4: (0, _config),
    5: (2, _change),
    9: (0, _removed),
    **{mark: (0, partial(_mark, mark)) for mark in TransactionMark},
}
"""By kind: the newest known version, and the reader."""


def _int32(value: Buffer, pos: int, what: str) -> tuple[int, int]:
    need(value, pos, _INT32.size, what)
    return _INT32.unpack_from(value, pos)[0], pos + _INT32.size


def _uuid(value: Buffer, pos: int) -> tuple[str, int]:
    need(value, pos, _UUID_BYTES, "a topic's id")
    end = pos + _UUID_BYTES
    return base64.urlsafe_b64encode(value[pos:end]).decode().rstrip("="), end


def _string(value: Buffer, pos: int, what: str) -> tuple[str, int]:
    text, after = _nullable_string(value, pos, what)
    if text is None:
        raise Corrupt(f"{what} is missing", position=pos)
    return text, after


def _nullable_string(value: Buffer, pos: int, what: str) -> tuple[str | None, int]:
    length, start = read_uvarint(value, pos, what)
    if length == 0:
        return None, start
    end = start + length - 1
    need(value, start, length - 1, what)
    try:
        return bytes(value[start:end]).decode(), end
    except UnicodeDecodeError as e:
        raise Corrupt(f"{what} is not UTF-8", position=start) from e
