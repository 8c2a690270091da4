"""`partition.metadata` in a partition's folder: version 0 and the topic's id, as Kafka prints uuids (22 characters of base64).

Source: Kafka's PartitionMetadataFile.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer

ZERO_TOPIC_ID = "A" * 22
"""Kafka's Uuid.ZERO_UUID: the id of a topic from before topic ids."""

_TEXT = re.compile(r"version: 0\s+topic_id: ([A-Za-z0-9_-]{22})\s*")


def read_topic_id(buffer: Buffer) -> str:
    """The topic id. Raises Corrupt."""
    match = _TEXT.fullmatch(bytes(buffer).decode("ascii", errors="replace"))
    if match is None:
        raise Corrupt("not a partition.metadata file of version 0 with a topic id")
    return match[1]


def write_topic_id(topic_id: str) -> bytes:
    """The bytes of the file."""
    return f"version: 0\ntopic_id: {topic_id}".encode()


def new_uuid(new_id: Callable[[], str]) -> str:
    """A new id as Kafka prints uuids, from ids of 32 hexadecimal digits. As in Kafka none starts with a dash."""
    while (text := urlsafe_b64encode(bytes.fromhex(new_id())).decode().rstrip("=")).startswith("-"):
        pass
    return text
