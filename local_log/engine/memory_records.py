"""The batches of an append, one by one: what Kafka's MemoryRecords takes for batches, with what their headers say.

An append is mostly one batch, for which columns would cost more than the rest of the append.
"""

import struct
import zlib
from typing import NamedTuple

from local_log.engine.errors import CorruptMessage
from local_log.formats.checksum import crc32c
from local_log.formats.primitives import Buffer, next_sequence
from local_log.formats.record import NO_EPOCH, NO_SEQUENCE, NO_TIMESTAMP
from local_log.formats.record_batch.batch_v2 import CRC_FROM, HEADER_BYTES
from local_log.formats.record_batch.header import APPEND_TIME, CODEC, CONTROL, FIELDS, LOG_OVERHEAD, TRANSACTIONAL

_PREFIX = struct.Struct(">qi")
_LEGACY = struct.Struct(">qiIbb")
_TIMESTAMP = struct.Struct(">q")
_MAGIC_AT, _TIMESTAMP_AT = 16, 18
_SIZE_MIN = (14, 22, HEADER_BYTES - LOG_OVERHEAD)
_LEGACY_CRC_FROM = 16


class MemoryBatch(NamedTuple):
    """A batch at byte `position` of an append. A message of magic 0 or 1 has its offset as base and last offset."""

    position: int
    size: int
    magic: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    last_sequence: int
    records_count: int
    base_timestamp: int

    @property
    def codec(self) -> int:
        """See Codec."""
        return self.attributes & CODEC

    @property
    def is_append_time(self) -> bool:
        """Whether all records have the time of their append, `max_timestamp`."""
        return bool(self.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether it is part of a transaction (markers are)."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it holds a control record."""
        return bool(self.attributes & CONTROL)

    def is_valid(self, records: Buffer) -> bool:
        """Whether it has the size and the checksum that its format asks for."""
        if self.size < LOG_OVERHEAD + _SIZE_MIN[self.magic]:
            return False
        view, end = memoryview(records), self.position + self.size
        if self.magic == 2:
            return crc32c(view[self.position + CRC_FROM : end]) == self.crc
        return zlib.crc32(view[self.position + _LEGACY_CRC_FROM : end]) == self.crc


def memory_batches(records: Buffer) -> list[MemoryBatch]:
    """All whole batches, in order. Raises CorruptMessage for a size or a magic that none has."""
    found: list[MemoryBatch] = []
    pos, end = 0, len(records)
    while end - pos >= LOG_OVERHEAD:
        _, length = _PREFIX.unpack_from(records, pos)
        if length < _SIZE_MIN[0]:
            raise CorruptMessage(f"byte {pos} of the append: a batch of {length} bytes is smaller than any message")
        if end - pos <= _MAGIC_AT:
            break
        magic = records[pos + _MAGIC_AT]
        if magic > 2:
            raise CorruptMessage(f"byte {pos} of the append: magic {magic}; Kafka has 0 to 2")
        if end - pos < LOG_OVERHEAD + length:
            break
        if magic == 2 and length >= _SIZE_MIN[2]:
            found.append(batch_at(records, pos))
        elif magic == 2:
            raise CorruptMessage(f"byte {pos} of the append: a batch of {length} bytes is smaller than its header")
        else:
            found.append(_message(records, pos))
        pos += LOG_OVERHEAD + length
    return found


def batch_at(records: Buffer, pos: int) -> MemoryBatch:
    """The record batch at a position; its whole header has to be there."""
    (
        base_offset, length, epoch, magic, crc, attributes, last_delta, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, count,
    ) = FIELDS.unpack_from(records, pos)  # fmt: skip
    last_sequence = NO_SEQUENCE if base_sequence == NO_SEQUENCE else next_sequence(base_sequence, last_delta)
    return MemoryBatch(
        pos, LOG_OVERHEAD + length, magic, base_offset, base_offset + last_delta, epoch, crc, attributes, max_timestamp,
        producer_id, producer_epoch, base_sequence, last_sequence, count, base_timestamp,
    )  # fmt: skip


def _message(records: Buffer, pos: int) -> MemoryBatch:
    offset, length, crc, magic, attributes = _LEGACY.unpack_from(records, pos)
    has_timestamp = magic == 1 and length >= _SIZE_MIN[1]
    timestamp = _TIMESTAMP.unpack_from(records, pos + _TIMESTAMP_AT)[0] if has_timestamp else NO_TIMESTAMP
    return MemoryBatch(
        pos, LOG_OVERHEAD + length, magic, offset, offset, NO_EPOCH, crc, attributes & 0x0F, timestamp,
        -1, -1, NO_SEQUENCE, NO_SEQUENCE, 1, timestamp,
    )  # fmt: skip
