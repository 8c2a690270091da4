"""Reads single messages of magic 0 or 1, for lookups and appends; `header_layout` has the table of their fields.

As in Kafka, a field is validated only when it is used, and a checksum only by `is_valid`.
Source: Kafka's LegacyRecord, AbstractLegacyRecordBatch.
"""

from struct import Struct
from typing import NamedTuple

from local_log.errors import Corrupt
from local_log.formats.checksum import crc32
from local_log.formats.compression import inflate, is_lz4_that_kafka_reads, with_sound_lz4_header
from local_log.formats.header_layout import (
    APPEND_TIME,
    CODEC,
    MAGIC_AT,
    MESSAGE_FIELDS,
    MESSAGE_SIZE_MIN,
    MESSAGE_TIMESTAMP_AT,
    OFFSET_LENGTH,
)
from local_log.formats.primitives import INT64_MAX, Buffer, need
from local_log.formats.record import NO_TIMESTAMP, Codec

_INT32, _INT64 = Struct(">i"), Struct(">q")


class Message(NamedTuple):
    """A message and its bytes from the offset field on; `size` is the value of the size field."""

    buffer: memoryview
    offset: int
    size: int
    crc: int
    magic: int
    attributes: int

    @property
    def codec(self) -> int:
        """See Codec; 5 to 7 are not valid in Kafka."""
        return self.attributes & CODEC

    @property
    def is_append_time(self) -> bool:
        """Whether its timestamp is that of its append; a wrapper's then applies to all its inner messages."""
        return self.magic != 0 and bool(self.attributes & APPEND_TIME)

    @property
    def timestamp(self) -> int:
        """In ms; -1 for none, always in magic 0."""
        return int(_INT64.unpack_from(self.buffer, MESSAGE_TIMESTAMP_AT)[0]) if self.magic else NO_TIMESTAMP

    @property
    def is_valid(self) -> bool:
        """Whether its bytes have the CRC-32 in its header."""
        return crc32(self.buffer[MAGIC_AT:]) == self.crc

    @property
    def has_key(self) -> bool:
        """Whether its key is not null. Raises Corrupt if the message ends before the key's length."""
        return self._length(self._key_at) >= 0

    @property
    def key(self) -> memoryview | None:
        """The key, None for null. Raises Corrupt if it is longer than the rest of the message."""
        return self._field(self._key_at)

    @property
    def value(self) -> memoryview | None:
        """The value, None for null. Raises Corrupt as `key` does."""
        return self._field(self._key_at + _INT32.size + max(0, self._length(self._key_at)))

    @property
    def _key_at(self) -> int:
        return MESSAGE_TIMESTAMP_AT + (_INT64.size if self.magic else 0)

    def _length(self, pos: int) -> int:
        self._need(pos + _INT32.size)
        return int(_INT32.unpack_from(self.buffer, pos)[0])

    def _field(self, pos: int) -> memoryview | None:
        start, size = pos + _INT32.size, self._length(pos)
        self._need(start + size)
        return self.buffer[start : start + size] if size >= 0 else None

    def _need(self, end: int) -> None:
        if end > len(self.buffer):
            raise Corrupt("a key or value is longer than what is left of its message")


def read_message(buffer: Buffer, pos: int = 0) -> tuple[Message, int]:
    """The message at `pos` and the position after it. Raises Corrupt if it is incomplete or too small."""
    need(buffer, pos, OFFSET_LENGTH.size, "a message's offset and size")
    _, size = OFFSET_LENGTH.unpack_from(buffer, pos)
    if size < MESSAGE_SIZE_MIN[0]:
        raise Corrupt(f"a message's size of {size} bytes is below that of an empty message", position=pos)
    need(buffer, pos, OFFSET_LENGTH.size + size, "a message")
    end = pos + OFFSET_LENGTH.size + size
    return Message(memoryview(buffer)[pos:end], *MESSAGE_FIELDS.unpack_from(buffer, pos)), end


def read_messages(message_set: Buffer) -> list[Message]:
    """All complete messages; as in Kafka, an incomplete last one is ignored. Raises Corrupt for one that is too small."""
    found: list[Message] = []
    pos, end = 0, len(message_set)
    while end - pos >= OFFSET_LENGTH.size:
        _, size = OFFSET_LENGTH.unpack_from(message_set, pos)
        if size >= MESSAGE_SIZE_MIN[0] and end - pos < OFFSET_LENGTH.size + size:
            break
        message, pos = read_message(message_set, pos)
        found.append(message)
    return found


def held_set(wrapper: Message) -> Buffer:
    """The decompressed message set of a compressed message. Raises Corrupt if it has none or cannot be decompressed."""
    if wrapper.magic not in (0, 1):
        raise Corrupt(f"a compressed message of magic {wrapper.magic}")
    if wrapper.codec == Codec.zstd:
        raise Corrupt(f"a message of magic {wrapper.magic} with codec zstd, which came with magic 2")
    value = wrapper.value
    if value is None:
        raise Corrupt("a compressed message with a null value")
    if wrapper.codec == Codec.lz4:
        if wrapper.magic == 0:
            # Clients of magic 0 wrote a wrong checksum of the lz4 frame's header (KAFKA-3160), so it is not checked.
            return inflate(wrapper.codec, with_sound_lz4_header(value))
        if not is_lz4_that_kafka_reads(value):
            raise Corrupt("an lz4 frame that is cut or whose blocks depend on each other")
    return inflate(wrapper.codec, value)


def offset_shift(wrapper: Message, last_offset: int) -> int:
    """The difference between absolute and relative offsets of a wrapper's messages, the last of which has `last_offset`.

    Raises Corrupt if `last_offset` is above the wrapper's own offset.
    """
    if wrapper.magic == 0 or wrapper.offset == 0:  # librdkafka has written wrappers with offset 0
        return 0
    if wrapper.offset < last_offset:
        raise Corrupt(f"a compressed message of offset {wrapper.offset} is below its last inner message's relative {last_offset}")
    return as_int64(wrapper.offset - last_offset)


def first_offset(buffer: Buffer, start: int, end: int) -> int:
    """The first absolute offset of the message at `buffer[start:end]`: its own, or that of a wrapper's first inner message.

    Raises Corrupt, at position `start`, for a wrapper without valid messages.
    """
    try:
        message, _ = read_message(memoryview(buffer)[start:end])
        return message.offset if message.codec == Codec.none else _first_inner_offset(message)
    except Corrupt as e:
        raise Corrupt(e.problem, position=start) from e


def _first_inner_offset(wrapper: Message) -> int:
    inner = read_messages(held_set(wrapper))
    if not inner:
        raise Corrupt("a compressed message without inner messages")
    if inner[0].codec != Codec.none:
        raise Corrupt("a compressed message within a compressed message")
    return as_int64(inner[0].offset + offset_shift(wrapper, inner[-1].offset))


def as_int64(value: int) -> int:
    """The signed 64-bit result of an addition that may overflow, as in Java."""
    return (value + INT64_MAX + 1) % (1 << 64) - INT64_MAX - 1
