"""The header of one record batch of magic 2, for appends of single batches; `header_layout` has the table of its fields."""

from typing import NamedTuple

from local_log.formats.header_layout import (
    APPEND_TIME,
    BATCH_FIELDS,
    BATCH_HEADER_BYTES,
    BATCH_SIZE_MIN,
    CODEC,
    CONTROL,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
)
from local_log.formats.primitives import Buffer, need
from local_log.formats.record import NO_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, TimestampType


class BatchHeader(NamedTuple):
    """The fields, in their order; a named tuple, since every append reads and writes one."""

    base_offset: int = 0
    batch_length: int = BATCH_SIZE_MIN
    partition_leader_epoch: int = NO_EPOCH
    magic: int = MAGIC
    crc: int = 0
    attributes: int = 0
    last_offset_delta: int = 0
    base_timestamp: int = NO_TIMESTAMP
    max_timestamp: int = NO_TIMESTAMP
    producer_id: int = -1
    producer_epoch: int = NO_EPOCH
    base_sequence: int = NO_SEQUENCE
    records_count: int = 0

    @property
    def size(self) -> int:
        """Bytes of the whole batch, including the header."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        """Offset of the last record that the batch originally had, inclusive."""
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        """See Codec; 5 to 7 are not valid in Kafka."""
        return self.attributes & CODEC

    @property
    def timestamp_type(self) -> TimestampType:
        """Whether each record has its own timestamp or all have that of the append."""
        return TimestampType.LOG_APPEND_TIME if self.attributes & APPEND_TIME else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        """Whether the batch is part of a transaction (markers are)."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether the batch contains a control record, which applications do not see."""
        return bool(self.attributes & CONTROL)

    def pack(self) -> bytes:
        """The 61 bytes of the header."""
        return BATCH_FIELDS.pack(*self)


def read_batch_header(buffer: Buffer, pos: int = 0) -> BatchHeader:
    """The header at `pos`; its values are not validated. Raises Corrupt if it is incomplete."""
    need(buffer, pos, BATCH_HEADER_BYTES, "a batch's header")
    return BatchHeader._make(BATCH_FIELDS.unpack_from(buffer, pos))
