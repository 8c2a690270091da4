"""Scans messages of magic 0 and 1, which Kafka wrote before 0.11 (KIP-31, KIP-32), as batches.

`header_layout` has the table of their fields, `message_columns` decodes them. With a codec the value is a compressed message
set, and the message is its wrapper. A wrapper has the offset of its last inner message. Inner offsets are absolute in magic 0
and relative in magic 1, where the wrapper's offset determines the base. A wrapper with LogAppendTime determines the timestamp
of all inner messages.
Source: Kafka's LegacyRecord, AbstractLegacyRecordBatch.
"""

from typing import Any

import numpy as np

from local_log.errors import Corrupt
from local_log.formats.header_layout import (
    APPEND_TIME,
    CODEC,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC_AT,
    MESSAGE_BYTES_MIN,
)
from local_log.formats.header_rows import BATCH_HEADER, MESSAGE_HEADER
from local_log.formats.kernels.constants import BAD_LENGTH, BAD_MAGIC, DONE, FIELD_PAST_RECORD, TORN
from local_log.formats.messages.magic_0_1 import held_set, offset_shift, read_message
from local_log.formats.primitives import INT64_MAX, Buffer
from local_log.formats.record import NO_EPOCH, NO_PRODUCER, NO_SEQUENCE, NO_TIMESTAMP, Codec
from local_log.formats.record_batch.batch_v2 import BATCHES_MAX, Batches, check_crcs

_HEADER = np.dtype(
    [(name, "i8" if name == "last_offset_delta" else BATCH_HEADER[name].newbyteorder("=")) for name in BATCH_HEADER.names or ()]
)
"""The header fields of a batch of magic 2, for messages. A wrapper's last offset delta has no limit, so it is int64."""

PROBLEM = {
    TORN: "a message set ends within a message",
    BAD_LENGTH: "a message's size is below that of an empty message or above 2^31-1",
    BAD_MAGIC: "an inner message is not of magic 0 or 1",
    FIELD_PAST_RECORD: "a key or value is longer than what is left of its message",
}
"""What is wrong, by the status of a kernel."""


def scan_messages(buffer: Buffer, pos: int = 0, *, batches_max: int = BATCHES_MAX) -> tuple[Batches, int]:
    """The complete messages of magic 0 and 1 in `buffer` from `pos` on, each as a batch, and the position after them.

    It also stops before a batch of magic 2; see also `batch_v2.scan`. Wrappers are decompressed, since only the inner messages
    determine the first offset and the number of records. Raises Corrupt with the position in the buffer, also for a wrapper that
    cannot be decompressed or contains no message set.
    """
    data = np.frombuffer(buffer, np.uint8)
    status, positions, messages, stop = _walk(data, pos, batches_max)
    if not len(positions) and status in (BAD_LENGTH, BAD_MAGIC) and not _is_preallocated(buffer, stop):
        raise Corrupt(PROBLEM[status], position=stop)
    batches = Batches(positions, _headers(messages))
    for row in np.flatnonzero(batches.codec).tolist():
        try:
            first, count = _first_and_count(buffer, batches, row)
        except Corrupt as e:
            if row == 0:
                check_crcs(buffer, batches[:1])
                raise Corrupt(e.problem, position=int(positions[0])) from e
            return batches[:row], int(positions[row])  # the messages before an invalid one first; the next scan raises
        batches.header["last_offset_delta"][row] = int(batches.header["base_offset"][row]) - first
        batches.header["base_offset"][row], batches.header["records_count"][row] = first, count
    return batches, stop


def offsets_and_times(buffer: Buffer, batches: Batches, row: int) -> tuple[Any, Any]:
    """Absolute offsets (int64) and timestamps (ms) of the records in one message, by a header row with the message's own fields.

    Checksums are not checked. Raises Corrupt for a wrapper that cannot be decompressed or contains no message set.
    """
    if batches.codec[row] == Codec.none:
        return batches.header["base_offset"][row : row + 1], batches.max_timestamp[row : row + 1]
    return _inner_offsets_and_times(buffer, batches, row)


def _walk(data: Any, pos: int, messages_max: int) -> tuple[int, Any, Any, int]:
    from local_log.formats.kernels.messages import walk_messages

    room = min(messages_max, max(1, (len(data) - pos) // MESSAGE_BYTES_MIN))
    positions, messages = np.empty(room, np.uint64), np.empty((room, MESSAGE_BYTES_MIN), np.uint8)
    status, n, stop = walk_messages(data, pos, len(data), positions, messages)
    return int(status), positions[:n], messages[:n].view(MESSAGE_HEADER)[:, 0], int(stop)


def _is_preallocated(buffer: Buffer, pos: int) -> bool:
    """Whether offset, size and magic at `pos` are the zeros of a preallocated file's end (see `kernels.scan.walk`)."""
    view = memoryview(buffer)
    return not any(view[pos + LENGTH_AT - 1 : pos + LOG_OVERHEAD]) and not any(view[pos + MAGIC_AT : pos + MAGIC_AT + 1])


def _headers(messages: Any) -> Any:
    """The header rows, as if no message were a wrapper."""
    header = np.zeros(len(messages), _HEADER)
    with_time = messages["magic"] != 0
    header["base_offset"], header["batch_length"] = messages["offset"], messages["size"]
    header["magic"], header["crc"] = messages["magic"], messages["crc"]
    header["attributes"] = messages["attributes"] & np.where(with_time, CODEC | APPEND_TIME, CODEC)
    header["base_timestamp"] = header["max_timestamp"] = np.where(with_time, messages["timestamp"], NO_TIMESTAMP)
    header["partition_leader_epoch"] = header["producer_epoch"] = NO_EPOCH
    header["producer_id"], header["base_sequence"] = NO_PRODUCER, NO_SEQUENCE
    header["records_count"] = 1
    return header


def _first_and_count(buffer: Buffer, batches: Batches, row: int) -> tuple[int, int]:
    """The absolute offset of a wrapper's first inner message, and the number of inner messages."""
    wrapper_offset = int(batches.header["base_offset"][row])
    offsets, _ = _inner_offsets_and_times(buffer, batches, row)
    first = int(offsets[0])
    if wrapper_offset < 0 or not 0 <= first <= INT64_MAX:
        raise Corrupt(f"a compressed message of offset {wrapper_offset} starts at {first}; offsets are 0 to 2^63-1")
    return first, len(offsets)


def _inner_offsets_and_times(buffer: Buffer, batches: Batches, row: int) -> tuple[Any, Any]:
    wrapper, _ = read_message(buffer, int(batches.positions[row]))
    inner_set = np.frombuffer(held_set(wrapper), np.uint8)
    status, _, inner, stop = _walk(inner_set, 0, len(inner_set))
    if status not in (DONE, TORN):  # as in Kafka, an incomplete last message is ignored
        raise Corrupt(f"in a compressed message, at byte {stop} of what it inflates to: {PROBLEM[status]}")
    if not len(inner):
        raise Corrupt("a compressed message without inner messages")
    if (inner["attributes"] & CODEC).any():
        raise Corrupt("a compressed message within a compressed message")
    offsets, times = inner["offset"].astype(np.int64), np.where(inner["magic"] != 0, inner["timestamp"], NO_TIMESTAMP)
    offsets += offset_shift(wrapper, int(offsets[-1]))
    if wrapper.is_append_time:
        times = np.where(inner["magic"] != 0, wrapper.timestamp, times)
    return offsets, times
