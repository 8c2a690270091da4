"""What a consumer says when it joins: the topics that it subscribes (Kafka's ConsumerProtocolSubscription).

int16 version | topics: array of strings | user data and more since later versions, which come after
"""

from struct import Struct
from typing import Final

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer, need

_VERSION: Final = Struct(">h")
_COUNT: Final = Struct(">i")
_LENGTH: Final = Struct(">h")


def subscribed_topics(metadata: Buffer) -> frozenset[str]:
    """The topics of a subscription. Raises Corrupt."""
    need(metadata, 0, _VERSION.size + _COUNT.size, "a subscription")
    (count,) = _COUNT.unpack_from(metadata, _VERSION.size)
    pos, found = _VERSION.size + _COUNT.size, set()
    if count < 0:
        raise Corrupt(f"a subscription of {count} topics", position=_VERSION.size)
    need(metadata, pos, count * _LENGTH.size, f"{count} topics of a subscription")
    for _ in range(count):
        need(metadata, pos, _LENGTH.size, "the length of a topic")
        (length,) = _LENGTH.unpack_from(metadata, pos)
        pos += _LENGTH.size
        need(metadata, pos, max(length, 0), "a topic")
        found.add(bytes(metadata[pos : pos + max(length, 0)]).decode("utf-8", "replace"))
        pos += max(length, 0)
    return frozenset(found)
