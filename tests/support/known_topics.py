"""Topics that a broker knows when it first starts, so that it serves folders which lie in its log directory already.

A formatted log directory has the first records of its cluster's metadata in `bootstrap.checkpoint`, from which the controller
begins; here those of topics and their partitions are appended. Source: Kafka's BootstrapDirectory, TopicRecord, PartitionRecord
and UserScramCredentialRecord.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import hand_made
import real_kafka
from random_messages import encoded

from local_log.formats.filenames import TopicPartition, parse_partition_dir
from local_log.formats.metadata_records import FRAME_VERSION
from local_log.formats.partition_metadata import read_topic_id
from tiering.endpoint.authentication.scram import ScramCredential
from tiering.endpoint.protocol.fields import INT32, UUID, array, binary, int8, int32, string, uuid

BROKER = 1
_TOPIC, _PARTITION, _SCRAM = 2, 3, 11
_AFTER_ALL = 1000


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """Of version 0."""

    name: str = string()
    topic_id: str = uuid()


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """Of version 1."""

    partition_id: int = int32()
    topic_id: str = uuid()
    replicas: tuple[int, ...] = array(INT32)
    isr: tuple[int, ...] = array(INT32)
    removing_replicas: tuple[int, ...] = array(INT32)
    adding_replicas: tuple[int, ...] = array(INT32)
    leader: int = int32()
    leader_epoch: int = int32()
    partition_epoch: int = int32()
    directories: tuple[str, ...] = array(UUID)


@dataclass(frozen=True, slots=True)
class UserScramCredentialRecord:
    """Of version 0."""

    name: str = string()
    mechanism: int = int8()
    salt: bytes = binary()
    stored_key: bytes = binary()
    server_key: bytes = binary()
    iterations: int = int32()


Users = Mapping[str, Mapping[str, ScramCredential]]
"""Credentials by user and mechanism."""


def know(data: Path, pom: Path = real_kafka.BROKER, users: Users = MappingProxyType({})) -> None:
    """Formats a log directory so that its broker leads the partitions whose folders are there, by the topic ids in them.

    And so that it knows users.
    """
    real_kafka.format_log_dir(data, pom)
    properties = dict(line.partition("=")[::2] for line in (data / "meta.properties").read_text().splitlines())
    topics = defaultdict[tuple[str, str], list[bytes]](list)
    for file in sorted(data.glob("*/partition.metadata")):
        topic_id, partition = read_topic_id(file.read_bytes()), parse_partition_dir(file.parent.name)
        assert partition is not None
        topics[partition.topic, topic_id].append(
            _led(partition, topic_id, _newest_epoch(file.parent), properties["directory.id"])
        )
    values = [value for topic, of_it in topics.items() for value in (_value(_TOPIC, 0, TopicRecord(*topic)), *of_it)]
    values += [_user(name, mechanism, one) for name, kept in users.items() for mechanism, one in kept.items()]
    records = (hand_made.record(number, key=None, value=value) for number, value in enumerate(values))
    with (data / "bootstrap.checkpoint").open("ab") as file:
        file.write(hand_made.batch(*records, base_offset=_AFTER_ALL))


def _led(partition: TopicPartition, topic_id: str, epoch: int, directory: str) -> bytes:
    us = (BROKER,)
    return _value(_PARTITION, 1, PartitionRecord(partition.partition, topic_id, us, us, (), (), BROKER, epoch, 0, (directory,)))


def _user(name: str, mechanism: str, of: ScramCredential) -> bytes:
    number = 1 + ("SCRAM-SHA-256", "SCRAM-SHA-512").index(mechanism)
    kept = UserScramCredentialRecord(name, number, of.salt, of.stored_key, of.server_key, of.iterations)
    return _value(_SCRAM, 0, kept)


def _value(kind: int, version: int, message: object) -> bytes:
    return bytes([FRAME_VERSION, kind, version]) + encoded(message, version, flexible=True)


def _newest_epoch(folder: Path) -> int:
    file = folder / "leader-epoch-checkpoint"
    lines = file.read_text().splitlines()[2:] if file.exists() else []
    return int(lines[-1].split()[0]) if lines else 0
