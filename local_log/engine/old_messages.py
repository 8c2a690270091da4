"""What is in a message of magic 0 or 1: itself, or the messages that its compressed value holds (AbstractLegacyRecordBatch).

    at  bytes  field
     0      8  offset; of a compressed message, of the last one in it
     8      4  size, counted from byte 12
    12      4  CRC-32
    16      1  magic
    17      1  attributes: codec in bits 0 to 2, bit 3 says that the timestamp is that of the append
    18      8  timestamp, with magic 1 only
     …         key and value, each a length (-1: null) and that many bytes

Inside a compressed message of magic 1 offsets count from 0; inside one of magic 0 they are the log's.
"""

from struct import Struct
from typing import NamedTuple

from local_log.errors import Corrupt
from local_log.formats.compression import inflate
from local_log.formats.primitives import Buffer, need
from local_log.formats.record import NO_TIMESTAMP, Codec

_PREFIX = Struct(">qi")
_HEADER = Struct(">qiIbB")
_TIMESTAMP = Struct(">q")
_LENGTH = Struct(">i")
_SIZE_MIN = 14
_CODEC, _APPEND_TIME = 0x07, 0x08


class OldMessage(NamedTuple):
    """A message's offset and its timestamp in ms, -1 where it has none."""

    offset: int
    timestamp: int


class _Header(NamedTuple):
    message: OldMessage
    magic: int
    attributes: int
    key_at: int
    end: int


def messages_in(buffer: Buffer, pos: int) -> list[OldMessage]:
    """The messages in the one at `pos`, in order. Raises Corrupt for what Kafka cannot take apart either."""
    outer = _read(buffer, pos)
    codec = outer.attributes & _CODEC
    if codec == Codec.none:
        return [outer.message]
    if codec == Codec.zstd:
        raise Corrupt("a message of a format that is older than zstd, and compressed with it", position=pos)
    payload = inflate(codec, _value(buffer, outer))
    inner: list[OldMessage] = []
    at = 0
    while len(payload) - at >= _PREFIX.size:
        _, size = _PREFIX.unpack_from(payload, at)
        if size < _SIZE_MIN:
            raise Corrupt(f"a message of {size} bytes in a compressed one; the smallest takes {_SIZE_MIN}", position=pos)
        if len(payload) - at - _PREFIX.size < size:
            break
        found = _read(payload, at)
        if found.attributes & _CODEC:
            raise Corrupt("a compressed message in a compressed one", position=pos)
        takes_outer_time = found.magic == 1 and outer.attributes & _APPEND_TIME
        inner.append(found.message._replace(timestamp=outer.message.timestamp) if takes_outer_time else found.message)
        at = found.end
    if not inner:
        raise Corrupt("a compressed message without messages in it", position=pos)
    return inner if outer.magic == 0 else _absolute(inner, outer.message.offset, pos)


def _absolute(inner: list[OldMessage], last_offset: int, pos: int) -> list[OldMessage]:
    if last_offset == 0:
        return inner  # some producers left it to the broker
    if last_offset < inner[-1].offset:
        raise Corrupt(f"a compressed message of offset {last_offset} with {inner[-1].offset} as its last offset", position=pos)
    first = last_offset - inner[-1].offset
    return [message._replace(offset=first + message.offset) for message in inner]


def _read(buffer: Buffer, pos: int) -> _Header:
    need(buffer, pos, _HEADER.size, "a message")
    offset, size, _, magic, attributes = _HEADER.unpack_from(buffer, pos)
    key_at, timestamp = pos + _HEADER.size, NO_TIMESTAMP
    if magic > 0:
        need(buffer, key_at, _TIMESTAMP.size, "a message's timestamp")
        (timestamp,) = _TIMESTAMP.unpack_from(buffer, key_at)
        key_at += _TIMESTAMP.size
    return _Header(OldMessage(offset, timestamp), magic, attributes, key_at, pos + _PREFIX.size + size)


def _value(buffer: Buffer, outer: _Header) -> Buffer:
    view = memoryview(buffer)[: outer.end]
    need(view, outer.key_at, _LENGTH.size, "a message's key")
    value_at = outer.key_at + _LENGTH.size + max(0, _LENGTH.unpack_from(view, outer.key_at)[0])
    need(view, value_at, _LENGTH.size, "a message's value")
    size = _LENGTH.unpack_from(view, value_at)[0]
    if size < 0:
        raise Corrupt("a compressed message without a value", position=value_at)
    need(view, value_at + _LENGTH.size, size, "a message's value")
    return view[value_at + _LENGTH.size : value_at + _LENGTH.size + size]
