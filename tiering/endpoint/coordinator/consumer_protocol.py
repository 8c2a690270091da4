"""What a consumer of the classic protocol says when it joins, and what it is assigned (Kafka's ConsumerProtocol).

int16 version | ConsumerProtocolSubscription, or ConsumerProtocolAssignment

Versions 0 to 3 are known. A later one is read as 3, since it begins with the same fields. Source:
ConsumerProtocolSubscription.json and ConsumerProtocolAssignment.json in Kafka's clients/src/main/resources/common/message.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from local_log.errors import Corrupt
from local_log.formats.primitives import need
from tiering.endpoint.protocol.fields import INT32, STRING, array, binary, int32, string
from tiering.endpoint.protocol.reading import read_message
from tiering.endpoint.protocol.writing import Output, writer

VERSION_MAX: Final = 3
_VERSION: Final = Struct(">h")


@dataclass(frozen=True, slots=True)
class TopicPartition:
    """Partitions of a topic."""

    topic: str = string()
    partitions: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class ConsumerProtocolSubscription:
    """The topics that a consumer subscribes, and the partitions that it has."""

    topics: tuple[str, ...] = array(STRING)
    user_data: bytes | None = binary(nullable="0+", default=None)
    owned_partitions: tuple[TopicPartition, ...] = array(TopicPartition, "1+")
    generation_id: int = int32("2+", default=-1)
    rack_id: str | None = string("3+", nullable="3+", default=None)


@dataclass(frozen=True, slots=True)
class ConsumerProtocolAssignment:
    """The partitions of a consumer. User data is that of an assignor."""

    assigned_partitions: tuple[TopicPartition, ...] = array(TopicPartition)
    user_data: bytes | None = binary(nullable="0+", default=None)


def version_of(data: bytes) -> int:
    """The version of a subscription or an assignment, as far as it is known. Raises Corrupt."""
    need(data, 0, _VERSION.size, "a version of the consumer protocol")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise Corrupt(f"version {version} of the consumer protocol", position=0)
    return min(version, VERSION_MAX)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """A subscription. Raises Corrupt."""
    found: ConsumerProtocolSubscription = _read(ConsumerProtocolSubscription, data, version_of(data))
    return found


def subscribed_topics(data: bytes) -> frozenset[str]:
    """The topics of a subscription of whatever version: what comes after them is not looked at. Raises Corrupt."""
    need(data, 0, _VERSION.size, "a version of the consumer protocol")
    return frozenset(_read(ConsumerProtocolSubscription, data, 0).topics)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """An assignment. Raises Corrupt."""
    found: ConsumerProtocolAssignment = _read(ConsumerProtocolAssignment, data, version_of(data))
    return found


def write_assignment(partitions: Mapping[str, Iterable[int]], version: int) -> bytes:
    """An assignment of partitions by the names of their topics, without user data."""
    found = (TopicPartition(topic, tuple(sorted(numbers))) for topic, numbers in sorted(partitions.items()))
    out = Output()
    out.buffer += _VERSION.pack(version)
    writer(ConsumerProtocolAssignment, version, flexible=False)(out, ConsumerProtocolAssignment(tuple(found)))
    return b"".join(out.finish()[0])


def _read(message: type, data: bytes, version: int) -> Any:
    return read_message(message, version, data, _VERSION.size, flexible=False)
