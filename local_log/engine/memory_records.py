"""Iterates over the batches of an append with their headers (Kafka's MemoryRecords).

An append is mostly one batch: building columns would cost more than the rest of the append.
"""

import struct
import zlib
from typing import NamedTuple

from local_log.engine.errors import CorruptMessage
from local_log.formats.checksum import crc32c
from local_log.formats.header_layout import (
    APPEND_TIME,
    ATTRIBUTES_AT,
    BATCH_FIELDS,
    BATCH_SIZE_MIN,
    CODEC,
    CONTROL,
    LOG_OVERHEAD,
    MAGIC_AT,
    MESSAGE_FIELDS,
    MESSAGE_SIZE_MIN,
    MESSAGE_TIMESTAMP_AT,
    OFFSET_LENGTH,
    TRANSACTIONAL,
)
from local_log.formats.primitives import Buffer, next_sequence
from local_log.formats.record import NO_EPOCH, NO_SEQUENCE, NO_TIMESTAMP

_TIMESTAMP = struct.Struct(">q")
_SIZE_MIN = (*MESSAGE_SIZE_MIN, BATCH_SIZE_MIN)
"""The minimum size field, by magic."""


class MemoryBatch(NamedTuple):
    """A batch at byte `position` of an append. For a message of magic 0 or 1 both base and last offset are its offset."""

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
        """Whether all records have `max_timestamp`, the time of their append (LogAppendTime)."""
        return bool(self.attributes & APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Whether it is part of a transaction (markers are)."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it contains a control record."""
        return bool(self.attributes & CONTROL)

    def is_valid(self, records: Buffer) -> bool:
        """Whether its size and its checksum are valid."""
        if self.size < LOG_OVERHEAD + _SIZE_MIN[self.magic]:
            return False
        view, end = memoryview(records), self.position + self.size
        if self.magic == 2:
            return crc32c(view[self.position + ATTRIBUTES_AT : end]) == self.crc
        return zlib.crc32(view[self.position + MAGIC_AT : end]) == self.crc


class BatchFacts(NamedTuple):
    """The fields of an appended batch that the indexes need."""

    last_offset: int
    max_timestamp: int
    size: int


def memory_batches(records: Buffer) -> list[MemoryBatch]:
    """All complete batches, in order. Raises CorruptMessage for an invalid size or magic."""
    found: list[MemoryBatch] = []
    pos, end = 0, len(records)
    while end - pos >= LOG_OVERHEAD:
        _, length = OFFSET_LENGTH.unpack_from(records, pos)
        if length < _SIZE_MIN[0]:
            raise CorruptMessage(f"byte {pos} of the append: a batch of {length} bytes is smaller than any message")
        if end - pos <= MAGIC_AT:
            break
        magic = records[pos + MAGIC_AT]
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
    """The record batch at a position, where a complete header must be."""
    (
        base_offset, length, epoch, magic, crc, attributes, last_delta, base_timestamp, max_timestamp,
        producer_id, producer_epoch, base_sequence, count,
    ) = BATCH_FIELDS.unpack_from(records, pos)  # fmt: skip
    last_sequence = NO_SEQUENCE if base_sequence == NO_SEQUENCE else next_sequence(base_sequence, last_delta)
    return MemoryBatch(
        pos, LOG_OVERHEAD + length, magic, base_offset, base_offset + last_delta, epoch, crc, attributes, max_timestamp,
        producer_id, producer_epoch, base_sequence, last_sequence, count, base_timestamp,
    )  # fmt: skip


def _message(records: Buffer, pos: int) -> MemoryBatch:
    offset, length, crc, magic, attributes = MESSAGE_FIELDS.unpack_from(records, pos)
    has_timestamp = magic == 1 and length >= _SIZE_MIN[1]
    timestamp = _TIMESTAMP.unpack_from(records, pos + MESSAGE_TIMESTAMP_AT)[0] if has_timestamp else NO_TIMESTAMP
    return MemoryBatch(
        pos, LOG_OVERHEAD + length, magic, offset, offset, NO_EPOCH, crc, attributes & 0x0F, timestamp,
        -1, -1, NO_SEQUENCE, NO_SEQUENCE, 1, timestamp,
    )  # fmt: skip
