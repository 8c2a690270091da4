"""Scans the batches of a log file, of every message format, by the same rules as Kafka's FileLogInputStream.

Kafka's reader checks only a batch's size and magic: magic 0 and 1 are messages, all others record batches. The scan ends at an
incomplete batch or leftover bytes; only a size that is too small is corruption, so zeros are.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from local_log.errors import Corrupt
from local_log.formats.header_layout import (
    BATCH_HEADER_BYTES,
    BATCH_SIZE_MIN,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    MESSAGE_ATTRIBUTES_AT,
    MESSAGE_BYTES_MIN,
    MESSAGE_CRC_AT,
    MESSAGE_SIZE_MIN,
    MESSAGE_TIMESTAMP_AT,
)
from local_log.formats.header_rows import BATCH_HEADER
from local_log.formats.kernels.constants import BAD_LENGTH, DONE
from local_log.formats.messages.message_set import offsets_and_times
from local_log.formats.primitives import Buffer
from local_log.formats.record import NO_TIMESTAMP
from local_log.formats.record_batch.batch_v2 import BATCHES_MAX, Batches, crcs

WINDOW_BYTES = 16 << 20
_MESSAGE_CRC = slice(MESSAGE_CRC_AT, MAGIC_AT)
_MESSAGE_TIMESTAMP = slice(MESSAGE_TIMESTAMP_AT, MESSAGE_TIMESTAMP_AT + 8)

_NATIVE = BATCH_HEADER.newbyteorder("=")


@dataclass(frozen=True, slots=True)
class Scanned:
    """Consecutive batches of a file. `buffer` has the file's bytes from `position` on.

    In `batches` a message of magic 0 or 1 has the fields of a record batch: its offset as base and last offset, its timestamp as
    the max timestamp, no epoch, no producer.
    """

    position: int
    buffer: Buffer
    batches: Batches

    @property
    def starts(self) -> np.ndarray:
        """Positions of the batches in the file."""
        return self.batches.positions + np.uint64(self.position)

    def head(self, rows: int) -> "Scanned":
        """The first `rows` batches."""
        return self if rows >= len(self.batches) else Scanned(self.position, self.buffer, self.batches[:rows])

    def base_offset(self, row: int) -> int:
        """The first offset in a batch. A compressed message has only its last offset: its inner messages determine the first."""
        if self.is_old(row) and self.batches.codec[row]:
            return int(self.old_messages(row)[0][0])
        return int(self.batches.base_offset[row])

    def is_old(self, row: int) -> bool:
        """Whether a batch is a message of magic 0 or 1."""
        return int(self.batches.header["magic"][row]) < MAGIC

    def old_messages(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Offsets and timestamps (ms) in a message of magic 0 or 1. Raises Corrupt with the position, without the file."""
        try:
            return offsets_and_times(self.buffer, self.batches, row)
        except Corrupt as e:
            raise Corrupt(e.problem, position=int(self.starts[row])) from e

    def first_invalid(self) -> int:
        """The row of the first batch with an invalid size or checksum; the number of batches if all are valid."""
        b = self.batches
        stated = b.header["crc"].tolist()
        legacy = b.header["magic"] < MAGIC
        if not legacy.any() and int(b.header["batch_length"].min(initial=BATCH_SIZE_MIN)) >= BATCH_SIZE_MIN:
            for row, found in enumerate(crcs(self.buffer, b)):
                if found != stated[row]:
                    return row
            return len(b)
        return next((row for row in range(len(b)) if not self._is_valid(row)), len(b))

    def _is_valid(self, row: int) -> bool:
        start = int(self.batches.positions[row])
        end = int(self.batches.end[row])
        magic = int(self.batches.header["magic"][row])
        if magic >= MAGIC:
            one = self.batches[row : row + 1]
            return end - start >= BATCH_HEADER_BYTES and next(crcs(self.buffer, one)) == int(one.header["crc"][0])
        if end - start - LOG_OVERHEAD < MESSAGE_SIZE_MIN[magic > 0]:
            return False
        stated = int.from_bytes(self.buffer[start:end][_MESSAGE_CRC], "big")
        return zlib.crc32(memoryview(self.buffer)[start + MAGIC_AT : end]) == stated


def scan_any(buffer: Buffer, file_end: int, pos: int = 0) -> tuple[Batches, int, int]:
    """The batches in `buffer` from `pos` on, the position after them, the kernel's status. The file ends at byte `file_end`."""
    from local_log.formats.kernels.scan import walk_any

    data = np.frombuffer(buffer, np.uint8)
    room = min(BATCHES_MAX, (len(data) - pos) // MESSAGE_BYTES_MIN + 1)
    positions = np.empty(room, np.uint64)
    headers = np.empty((room, BATCH_HEADER_BYTES), np.uint8)
    status, n, stop = walk_any(data, pos, len(data), file_end, positions, headers)
    native = headers[:n].view(BATCH_HEADER)[:, 0].astype(_NATIVE)
    legacy = (native["magic"] < MAGIC).nonzero()[0]
    if len(legacy):
        _as_batches(native, headers, legacy)
    return Batches(positions[:n], native), int(stop), int(status)


def _as_batches(native: np.ndarray, headers: np.ndarray, rows: np.ndarray) -> None:
    magic = native["magic"][rows]
    timestamps = headers[rows, _MESSAGE_TIMESTAMP].copy().view(">i8")[:, 0]
    native["partition_leader_epoch"][rows] = -1
    attributes = headers[rows, MESSAGE_ATTRIBUTES_AT]
    native["attributes"][rows] = np.where(magic > 0, attributes & 0x0F, attributes & 0x07)
    native["last_offset_delta"][rows] = 0
    native["base_timestamp"][rows] = native["max_timestamp"][rows] = np.where(magic > 0, timestamps, NO_TIMESTAMP)
    native["producer_id"][rows] = -1
    native["producer_epoch"][rows] = -1
    native["base_sequence"][rows] = -1
    native["records_count"][rows] = 1


def scan_file(
    read: Callable[[int, int], Buffer], file: str, start: int, end: int, window: int = WINDOW_BYTES
) -> Iterator[Scanned]:
    """The batches of a file from byte `start`, where one must start, to byte `end`, read `window` bytes at a time.

    Raises Corrupt for an invalid size, after the batches before it. Checksums are not verified.
    """
    size = window
    while start < end:
        buffer = read(start, min(start + size, end))
        if len(buffer) < min(start + size, end) - start:
            end = start + len(buffer)  # the file was truncated meanwhile
        batches, stop, status = scan_any(buffer, end - start)
        if len(batches):
            yield Scanned(start, buffer, batches)
        if status == BAD_LENGTH:
            raise Corrupt("a batch's size is below that of the smallest message", file=file, position=start + stop)
        if status == DONE:
            return
        size = window if len(batches) else size * 2
        start += stop
