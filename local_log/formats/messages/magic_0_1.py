"""One message of magic 0 or 1 at a time, for who looks for one or appends one; `header_layout` has the table of its fields.

It takes what Kafka takes: a field is only looked at when it is asked for, and checksums when `is_valid` is.
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
    """A message and the bytes that it is made of, from its offset field on; `size` counts as its field does."""

    buffer: memoryview
    offset: int
    size: int
    crc: int
    magic: int
    attributes: int

    @property
    def codec(self) -> int:
        """See Codec; 5 to 7 are none of Kafka's."""
        return self.attributes & CODEC

    @property
    def is_append_time(self) -> bool:
        """Whether its timestamp is that of its append, which in a wrapper is that of all inner messages."""
        return self.magic != 0 and bool(self.attributes & APPEND_TIME)

    @property
    def timestamp(self) -> int:
        """In ms; -1 for none, as always in magic 0."""
        return int(_INT64.unpack_from(self.buffer, MESSAGE_TIMESTAMP_AT)[0]) if self.magic else NO_TIMESTAMP

    @property
    def is_valid(self) -> bool:
        """Whether its bytes have the CRC-32 that it states."""
        return crc32(self.buffer[MAGIC_AT:]) == self.crc

    @property
    def has_key(self) -> bool:
        """Whether its key is not null. Raises Corrupt where not even the key's length is there."""
        return self._length(self._key_at) >= 0

    @property
    def key(self) -> memoryview | None:
        """Raises Corrupt for one that is longer than what is left of the message."""
        return self._field(self._key_at)

    @property
    def value(self) -> memoryview | None:
        """Raises Corrupt as `key` does."""
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
    """The message at `pos` and the position after it. Raises Corrupt for one that is cut or too small to be one."""
    need(buffer, pos, OFFSET_LENGTH.size, "a message's offset and size")
    _, size = OFFSET_LENGTH.unpack_from(buffer, pos)
    if size < MESSAGE_SIZE_MIN[0]:
        raise Corrupt(f"a message's size of {size} bytes is below that of an empty message", position=pos)
    need(buffer, pos, OFFSET_LENGTH.size + size, "a message")
    end = pos + OFFSET_LENGTH.size + size
    return Message(memoryview(buffer)[pos:end], *MESSAGE_FIELDS.unpack_from(buffer, pos)), end


def read_messages(message_set: Buffer) -> list[Message]:
    """All whole messages; of a last one that is cut Kafka takes no notice. Raises Corrupt for one too small to be one."""
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
    """The message set in a compressed message, inflated. Raises Corrupt where it has none or it does not inflate."""
    if wrapper.magic not in (0, 1):
        raise Corrupt(f"a compressed message of magic {wrapper.magic}")
    if wrapper.codec == Codec.zstd:
        raise Corrupt(f"a message of magic {wrapper.magic} with codec zstd, which came with magic 2")
    value = wrapper.value
    if value is None:
        raise Corrupt("a compressed message with a null value")
    if wrapper.codec == Codec.lz4:
        if wrapper.magic == 0:
            # Clients of magic 0 stated a wrong checksum of the lz4 frame's header (KAFKA-3160), so nobody looks at it.
            return inflate(wrapper.codec, with_sound_lz4_header(value))
        if not is_lz4_that_kafka_reads(value):
            raise Corrupt("an lz4 frame that is cut or whose blocks depend on each other")
    return inflate(wrapper.codec, value)


def offset_shift(wrapper: Message, last_offset: int) -> int:
    """What to add to the offsets of a wrapper's messages, the last of which states `last_offset`.

    Raises Corrupt where that is above the wrapper's own.
    """
    if wrapper.magic == 0 or wrapper.offset == 0:  # librdkafka has produced wrappers of offset 0
        return 0
    if wrapper.offset < last_offset:
        raise Corrupt(f"a compressed message of offset {wrapper.offset} is below its last inner message's relative {last_offset}")
    return as_int64(wrapper.offset - last_offset)


def first_offset(buffer: Buffer, start: int, end: int) -> int:
    """The absolute offset of the first message in the one at `buffer[start:end]`: its own, unless it is compressed.

    Raises Corrupt, placed at `start`, for a compressed message that does not say.
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
    """Java's result of a sum that may not fit into 64 bits."""
    return (value + INT64_MAX + 1) % (1 << 64) - INT64_MAX - 1
