"""Writes messages of magic 0 and 1 from columns, alone or in a compressed wrapper, as Kafka does for clients before 0.11.

A wrapper has the offset of its last inner message. Inner offsets are absolute in magic 0 and count from the first message in
magic 1. Source: Kafka's MemoryRecordsBuilder, LegacyRecord.
"""

from dataclasses import dataclass
from struct import Struct

import numpy as np
import pyarrow as pa

from local_log.errors import Invalid
from local_log.formats.checksum import crc32
from local_log.formats.compression import compress, with_former_lz4_checksum
from local_log.formats.header_layout import APPEND_TIME, LOG_OVERHEAD, MAGIC_AT, MESSAGE_SIZE_MIN, OFFSET_LENGTH
from local_log.formats.primitives import INT32_MAX, Buffer
from local_log.formats.record import Codec
from local_log.formats.record_batch.writer import PROBLEM, binary_buffers, bytes_of, int64_of

_MESSAGE_BYTES_MAX = LOG_OVERHEAD + MESSAGE_SIZE_MIN[1]
"""Bytes of a message of magic 1 without key and value: one of magic 0 has less."""

_INT32, _NULL = Struct(">i"), b"\xff\xff\xff\xff"
_MAGIC_ATTRIBUTES, _TIMESTAMP = Struct(">bB"), Struct(">q")


@dataclass(frozen=True, slots=True)
class NewMessages:
    """The form of new messages: magic 0 or 1, and the codec of the wrapper around them, none for messages without a wrapper.

    `level` is the codec's, None for Kafka's default. With `is_append_time` messages of magic 1 have LogAppendTime, and in a
    wrapper all have the same timestamp; magic 0 has no timestamps.
    """

    magic: int
    codec: Codec = Codec.none
    level: int | None = None
    is_append_time: bool = False

    @property
    def attributes(self) -> int:
        """The attributes of each message; a wrapper's have its codec, too."""
        return APPEND_TIME if self.magic and self.is_append_time else 0


def write_messages(new: NewMessages, records: pa.RecordBatch) -> bytes:
    """The bytes of messages with the offset, timestamp, key and value of `records`; empty if there are no records.

    Headers have no place in a message and are left out. Raises Invalid for what Kafka's builder rejects: another magic, zstd,
    offsets that do not increase, negative timestamps, a wrapper whose offsets span more than 2^31.
    """
    if new.magic not in (0, 1) or new.codec == Codec.zstd:
        raise Invalid(f"messages of magic {new.magic} with codec {new.codec.name}; magic is 0 or 1, and zstd came with magic 2")
    if not records.num_rows:
        return b""
    from local_log.formats.kernels import encode_messages as kernels

    offsets, timestamps = int64_of(records.column("offset")), int64_of(records.column("timestamp"))
    keys, values = records.column("key"), records.column("value")
    is_relative = new.magic == 1 and new.codec != Codec.none
    out = np.empty(bytes_of(keys) + bytes_of(values) + records.num_rows * _MESSAGE_BYTES_MAX, np.uint8)
    status, row, end, latest = kernels.encode_messages(
        new.magic, new.attributes, int(offsets[0]) if is_relative else 0, offsets, timestamps,
        *binary_buffers(keys), *binary_buffers(values), out,
    )  # fmt: skip
    if status:
        raise Invalid(f"record {row} of the messages from offset {offsets[0]} on: {PROBLEM[status]}")
    if new.codec == Codec.none:
        return out[:end].tobytes()
    if int(offsets[-1]) - int(offsets[0]) > INT32_MAX:
        raise Invalid(f"a compressed message of offsets {offsets[0]} to {offsets[-1]}; they may be up to {INT32_MAX} apart")
    return _wrapper(new, int(offsets[-1]), latest, out.data[:end])


def _wrapper(new: NewMessages, offset: int, timestamp: int, message_set: Buffer) -> bytes:
    """The compressed message that contains `message_set`."""
    value = compress(new.codec, message_set, new.level)
    if new.codec == Codec.lz4 and new.magic == 0:
        value = with_former_lz4_checksum(value)
    size = MESSAGE_SIZE_MIN[new.magic] + len(value)
    if size > INT32_MAX:
        raise Invalid(f"a compressed message of {size} bytes; it may have up to {INT32_MAX}")
    head = _MAGIC_ATTRIBUTES.pack(new.magic, new.attributes | new.codec)
    head += (_TIMESTAMP.pack(timestamp) if new.magic else b"") + _NULL + _INT32.pack(len(value))
    crc = crc32(value, crc32(head))
    return b"".join((OFFSET_LENGTH.pack(offset, size), crc.to_bytes(MAGIC_AT - LOG_OVERHEAD, "big"), head, value))
