"""Record batches of magic 2: scans many headers at once into columns. `header_layout` has the table of their fields."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from local_log.errors import Corrupt
from local_log.formats.checksum import FEW_BYTES, crc32, crc32c_for, crc32c_of_few
from local_log.formats.header_layout import (
    APPEND_TIME,
    ATTRIBUTES_AT,
    BATCH_HEADER_BYTES,
    BATCH_SIZE_MIN,
    CODEC,
    CONTROL,
    DELETE_HORIZON,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    TRANSACTIONAL,
)
from local_log.formats.header_rows import BATCH_HEADER
from local_log.formats.kernels.constants import BAD_LENGTH, BAD_MAGIC
from local_log.formats.primitives import INT32_MAX, Buffer
from local_log.formats.record import NO_SEQUENCE, NO_TIMESTAMP, Codec, TimestampType

RECORD_BYTES_MIN = 7
BATCHES_MAX = 1 << 16

_NATIVE = BATCH_HEADER.newbyteorder("=")
_SCAN_PROBLEM = {
    BAD_LENGTH: f"batch length is below the {BATCH_SIZE_MIN} bytes of an empty batch or above 2^31-1",
    BAD_MAGIC: "the batch is not of magic 2",
}

Column = Any
"""A numpy array with one value for each batch."""


@dataclass(frozen=True, slots=True)
class Batches:
    """The headers of consecutive batches. `positions` are bytes in the scanned buffer.

    All are of magic 2, or none is: a message of magic 0 or 1 counts as a batch with the equivalent header fields.
    """

    positions: NDArray[np.uint64]
    header: Column

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, rows: Any) -> "Batches":
        """The batches that a slice or a boolean mask selects."""
        return Batches(self.positions[rows], self.header[rows])

    @property
    def are_messages(self) -> bool:
        """Whether these are messages of magic 0 and 1 (see `message_set`); False if there are no batches."""
        return len(self) > 0 and bool(self.header["magic"][0] < MAGIC)

    @property
    def base_offset(self) -> Column:
        """Offset of the first record that the batch originally had."""
        return self.header["base_offset"]

    @property
    def last_offset(self) -> Column:
        """Offset of the last record that the batch originally had, inclusive."""
        return self.header["base_offset"] + self.header["last_offset_delta"]

    @property
    def size(self) -> Column:
        """Bytes of the whole batch, including the header."""
        return self.header["batch_length"].astype(np.uint64) + np.uint64(LOG_OVERHEAD)

    @property
    def end(self) -> Column:
        """Positions after the batches."""
        return self.positions + self.size

    @property
    def count(self) -> Column:
        """The number of records in the batch; after compaction it may be less than the offsets span, even 0."""
        return self.header["records_count"]

    @property
    def codec(self) -> Column:
        """See Codec."""
        return self.header["attributes"] & CODEC

    @property
    def timestamp_type(self) -> Column:
        """See TimestampType, as int32."""
        append = (self.header["attributes"] & APPEND_TIME) != 0
        types = np.where(append, TimestampType.LOG_APPEND_TIME, TimestampType.CREATE_TIME).astype(np.int32)
        types[self.header["magic"] == 0] = TimestampType.NO_TIMESTAMP_TYPE
        return types

    @property
    def max_timestamp(self) -> Column:
        """In milliseconds; -1 for none."""
        return self.header["max_timestamp"]

    @property
    def base_timestamp(self) -> Column:
        """The base of the records' timestamp deltas in milliseconds: the first record's timestamp, or the delete horizon."""
        return np.ascontiguousarray(self.header["base_timestamp"])

    @property
    def append_timestamp(self) -> Column:
        """The timestamp of all records of a LogAppendTime batch in milliseconds; -1 if each record has its own."""
        return np.where(self.header["attributes"] & APPEND_TIME, self.header["max_timestamp"], NO_TIMESTAMP)

    @property
    def is_transactional(self) -> Column:
        """Whether the batch is part of a transaction (markers are)."""
        return (self.header["attributes"] & TRANSACTIONAL) != 0

    @property
    def is_control(self) -> Column:
        """Whether the batch contains a control record, which applications do not see."""
        return (self.header["attributes"] & CONTROL) != 0

    @property
    def delete_horizon_ms(self) -> Column:
        """The time in milliseconds from which the cleaner may drop the batch's tombstones and markers; -1 if not set."""
        has = (self.header["attributes"] & DELETE_HORIZON) != 0
        return np.where(has, self.header["base_timestamp"], NO_TIMESTAMP)

    @property
    def last_sequence(self) -> Column:
        """Sequence number of the last record, as `next_sequence` computes it; -1 for none."""
        base, by = self.header["base_sequence"].astype(np.int64), self.header["last_offset_delta"].astype(np.int64)
        wraps = base > (INT32_MAX - by).astype(np.int32)
        last = (base + by - np.where(wraps, 1 << 31, 0)).astype(np.int32)
        return np.where(base == NO_SEQUENCE, NO_SEQUENCE, last)

    @property
    def next_offset(self) -> int:
        """The offset after the last batch; there must be one."""
        return int(self.header["base_offset"][-1]) + int(self.header["last_offset_delta"][-1]) + 1

    @property
    def next_position(self) -> int:
        """The position after the last batch; there must be one."""
        return int(self.positions[-1]) + int(self.header["batch_length"][-1]) + LOG_OVERHEAD

    def split(self, weight_max: int) -> Iterator["Batches"]:
        """Consecutive groups of batches of about `weight_max` bytes each; compressed bytes count four times."""
        if 0 < 4 * int(self.size.sum()) <= weight_max:
            yield self
            return
        weight = np.cumsum(self.size * np.where(self.codec == Codec.none, np.uint64(1), np.uint64(4)))
        start = 0
        while start < len(self):
            done = int(weight[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(weight, done + weight_max, side="right")))
            yield self[start:stop]
            start = stop


NO_BATCHES = Batches(np.empty(0, np.uint64), np.empty(0, _NATIVE))


def scan(buffer: Buffer, pos: int = 0, *, batches_max: int = BATCHES_MAX) -> tuple[Batches, int]:
    """The complete batches in `buffer` from `pos` on, and the position after them.

    That position is below the buffer's end if the batch there is incomplete, or if there are more than `batches_max` batches.
    Raises Corrupt with the position in the buffer for an invalid length or magic.
    Checksums are not checked: see `check_crcs`.
    """
    data = np.frombuffer(buffer, np.uint8)
    room = min(batches_max, max(1, (len(data) - pos) // BATCH_HEADER_BYTES))
    positions = np.empty(room, np.uint64)
    headers = np.empty((room, BATCH_HEADER_BYTES), np.uint8)
    from local_log.formats.kernels.scan import walk

    status, n, stop = walk(data, pos, len(data), positions, headers)
    if status in _SCAN_PROBLEM and n == 0:  # the batches before an invalid one first; the next scan raises
        raise Corrupt(_SCAN_PROBLEM[status], position=int(stop))
    return Batches(positions[:n], headers[:n].view(BATCH_HEADER)[:, 0].astype(_NATIVE)), int(stop)


def crcs(buffer: Buffer, batches: Batches) -> Iterator[int]:
    """The actual CRC-32C of each batch's bytes (for a message: CRC-32)."""
    view = memoryview(buffer)
    size = int(batches.size.sum())
    crc, crc_from = crc32c_of_few if size < FEW_BYTES * len(batches) else crc32c_for(size), ATTRIBUTES_AT
    if batches.are_messages:
        crc, crc_from = crc32, MAGIC_AT
    starts = (batches.positions + np.uint64(crc_from)).tolist()
    return (crc(view[start:end]) for start, end in zip(starts, batches.end.tolist(), strict=True))


def check_crcs(buffer: Buffer, batches: Batches) -> None:
    """Raises Corrupt at the first batch whose bytes do not have the checksum in its header."""
    found = np.fromiter(crcs(buffer, batches), np.uint32, len(batches))
    wrong = (found != batches.header["crc"]).nonzero()[0]
    if len(wrong):
        row = wrong[0]
        name = "CRC-32" if batches.are_messages else "CRC-32C"
        raise Corrupt(
            f"batch of offsets {batches.base_offset[row]} to {batches.last_offset[row]} has {name} {found[row]:08x} "
            f"where its header states {batches.header['crc'][row]:08x}",
            position=int(batches.positions[row]),
        )
