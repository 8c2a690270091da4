"""The messages of Kafka 0.7 and earlier, where an offset is a byte position in the log.

    at      bytes  field
     0          4  length, counted from byte 4
     4          1  magic, 0 or 1
     5          1  attributes, with magic 1 only: bits 0-1 codec (none, gzip, snappy)
     5 or 6     4  CRC-32 of the payload alone
     9 or 10    …  payload

Everything is big-endian. A message contains no offset, key or timestamp: its offset is its position among all bytes ever written
to the log, and the next read starts after it. With a codec the payload is a message set, compressed with gzip or with snappy in
xerial framing. The messages in it all have the wrapper's offset, and the next read starts at the wrapper until the last of them
is read. Source: the design page of 0.7; its classes Message and ByteBufferMessageSet.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from local_log.errors import Corrupt, Invalid
from local_log.formats.checksum import crc32
from local_log.formats.compression import INFLATED_BYTES_MAX, inflate
from local_log.formats.primitives import INT32_MAX, Buffer, need
from local_log.formats.record import Codec
from local_log.formats.record_batch.columns import INFLATED_GROUP_BYTES

MESSAGE_BYTES_MIN = 9
WRAPPERS_MAX = 8
_LENGTH = struct.Struct(">i")
_HEADERS = {0: struct.Struct(">ibI"), 1: struct.Struct(">ibBI")}
_MAGIC_AT, _CODEC_MASK = 4, 0x03
_CODECS = (Codec.none, Codec.gzip, Codec.snappy)

SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("next_offset", pa.int64(), nullable=False),
        pa.field("value", pa.binary(), nullable=False),
    ]
)


@dataclass(frozen=True, slots=True)
class Message:
    """A message at `[position, next_position)` of its buffer. `crc` is the one in its header."""

    position: int
    next_position: int
    magic: int
    codec: int
    crc: int
    payload: memoryview

    @property
    def size(self) -> int:
        """Bytes of the whole message, including the length field."""
        return self.next_position - self.position

    @property
    def is_valid(self) -> bool:
        """Whether the payload has the CRC-32 in the header. Length, magic and attributes have no checksum."""
        return crc32(self.payload) == self.crc


def read_message(buffer: Buffer, pos: int) -> tuple[Message, int]:
    """The message at `pos` and the position after it; its checksum is not checked. Raises Corrupt if it is invalid or cut off."""
    need(buffer, pos, MESSAGE_BYTES_MIN, "a message of Kafka 0.7")
    header = _HEADERS.get(buffer[pos + _MAGIC_AT])
    if header is None:
        raise Corrupt(f"the message is of magic {buffer[pos + _MAGIC_AT]}; Kafka 0.7 has 0 and 1", position=pos)
    need(buffer, pos, header.size, "a message of Kafka 0.7")
    length, magic, *attributes, crc = header.unpack_from(buffer, pos)
    end = pos + _LENGTH.size + length
    if end < pos + header.size:
        raise Corrupt(f"a message of {length} bytes; an empty one has {header.size - _LENGTH.size}", position=pos)
    need(buffer, pos, end - pos, "a message of Kafka 0.7")
    codec = attributes[0] & _CODEC_MASK if attributes else Codec.none
    return Message(pos, end, magic, codec, crc, memoryview(buffer)[pos + header.size : end]), end


def write_message(payload: Buffer, *, magic: int = 1, codec: int = Codec.none) -> bytes:
    """The bytes of a message with `payload`, which must be a compressed message set if there is a codec. Raises Invalid."""
    if magic not in _HEADERS or codec not in _CODECS or (magic == 0 and codec):
        raise Invalid(f"Kafka 0.7 has no message of magic {magic} with codec {codec}; magic 1 has 0 to 2, magic 0 has none")
    header = _HEADERS[magic]
    length = header.size - _LENGTH.size + len(payload)
    if length > INT32_MAX:
        raise Invalid(f"a message of {length} bytes; the most that its length can say is {INT32_MAX}")
    return header.pack(length, magic, *([codec] if magic else []), crc32(payload)) + bytes(payload)


def scan(buffer: Buffer, pos: int = 0) -> tuple[tuple[Message, ...], int]:
    """The complete messages in `buffer` from `pos` on, and the position after them.

    Checksums are not checked, and wrappers are not decompressed. Raises Corrupt with the position for an invalid message, but
    returns the messages before it first: the next scan, which starts at it, raises.
    """
    found: list[Message] = []
    while len(buffer) - pos >= MESSAGE_BYTES_MIN:
        length = _LENGTH.unpack_from(buffer, pos)[0]
        if len(buffer) - pos - _LENGTH.size < length:
            break
        try:
            message, pos = read_message(buffer, pos)
        except Corrupt:
            if found:
                break
            raise
        found.append(message)
    return tuple(found), pos


def payloads(message: Message, *, bytes_max: int = INFLATED_BYTES_MAX) -> Iterator[memoryview]:
    """The payloads for an application: the message's own, or those of the messages in a wrapper, which may be empty.

    Wrappers may contain wrappers; the limit is on all bytes decompressed. Raises Corrupt with the message's position if a
    checksum is wrong, a wrapper contains no message set, or a limit is exceeded.
    """
    try:
        yield from _payloads(message, bytes_max)
    except Corrupt as e:
        raise Corrupt(e.problem, position=message.position) from e


def decode(messages: Iterable[Message], base: int = 0) -> Iterator[pa.RecordBatch]:
    """The records of messages as Arrow (see SCHEMA), a few MB at a time, none empty; byte 0 of the buffer has offset `base`.

    `next_offset` is where the next read starts: after the message, or for a message in a wrapper at the wrapper until its last
    one. Raises Corrupt as `payloads` does.
    """
    offsets: list[int] = []
    next_offsets: list[int] = []
    values: list[memoryview] = []
    size = 0
    for message in messages:
        before = len(values)
        for value in payloads(message):
            values.append(value)
            size += len(value)
        if len(values) > before:
            offsets += [message.position + base] * (len(values) - before)
            next_offsets += [message.position + base] * (len(values) - before - 1) + [message.next_position + base]
        if size >= INFLATED_GROUP_BYTES:
            yield _records(offsets, next_offsets, values)
            offsets, next_offsets, values, size = [], [], [], 0
    if values:
        yield _records(offsets, next_offsets, values)


def _records(offsets: list[int], next_offsets: list[int], values: list[memoryview]) -> pa.RecordBatch:
    ends = np.zeros(len(values) + 1, np.int32)
    np.cumsum([len(value) for value in values], out=ends[1:])
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))]
    column = pa.Array.from_buffers(pa.binary(), len(values), buffers, 0)
    return pa.RecordBatch.from_arrays([pa.array(offsets, pa.int64()), pa.array(next_offsets, pa.int64()), column], schema=SCHEMA)


def _payloads(message: Message, bytes_max: int) -> Iterator[memoryview]:
    waiting = [(message, 0)]
    while waiting:
        one, depth = waiting.pop()
        if not one.is_valid:
            raise Corrupt(f"a payload has CRC-32 {crc32(one.payload):08x} where its message states {one.crc:08x}")
        if one.codec == Codec.none:
            yield one.payload
            continue
        if one.codec not in _CODECS:
            raise Corrupt(f"compression codec {one.codec}; Kafka 0.7 has {', '.join(codec.name for codec in _CODECS)}")
        if depth == WRAPPERS_MAX:
            raise Corrupt(f"more than {WRAPPERS_MAX} compressed messages, one within the other")
        inner_set = inflate(one.codec, one.payload, bytes_max=bytes_max)
        bytes_max -= len(inner_set)
        waiting += [(inner, depth + 1) for inner in reversed(_inner(inner_set))]


def _inner(inner_set: Buffer) -> tuple[Message, ...]:
    """The messages of a wrapper. As in Kafka, an incomplete last message is ignored, unless it is the first."""
    found, stop = scan(inner_set)
    if not found and len(inner_set) >= _LENGTH.size:
        raise Corrupt("a compressed message whose first inner message is cut")
    if stop < len(inner_set):
        scan(inner_set, stop)
    return found
