"""Writes batches of a few records, as coordinators append them: keys and values in, one batch of magic 2 out.

The bytes are those of `writer.write_batch`, which takes columns. To make columns of one record takes longer than to write it.
Source: Kafka's DefaultRecord, EndTransactionMarker.
"""

from collections.abc import Iterable

from local_log.errors import Invalid
from local_log.formats.control import ControlType, marker_key, marker_value
from local_log.formats.header_layout import CONTROL, TRANSACTIONAL
from local_log.formats.primitives import write_uvarint
from local_log.formats.record import NO_EPOCH, NO_TIMESTAMP
from local_log.formats.record_batch.header import BatchHeader
from local_log.formats.record_batch.writer import NewBatch, check, joined

_BEGIN, _NO_HEADERS = b"\0\0", 0
"""Of a record: no attributes, and the timestamp of the batch."""
_WRITTEN = TRANSACTIONAL | CONTROL
_NULL = 1
"""The length of what is null, -1."""


def write_few(new: NewBatch, timestamp: int, records: Iterable[tuple[bytes | None, bytes | None]]) -> bytes:
    """A batch with these keys and values, not compressed; empty if there are none. `timestamp`, in ms, is that of each.

    Raises Invalid as `write_batch`.
    """
    check(new)
    if new.attributes & ~_WRITTEN or timestamp < NO_TIMESTAMP:
        raise Invalid(f"attributes {new.attributes:#x} and timestamp {timestamp} of a batch of few records; see write_batch")
    section, count = bytearray(), 0
    for key, value in records:
        record = bytearray(_BEGIN)
        write_uvarint(record, count << 1)
        for data in (key, value):
            if data is None:
                record.append(_NULL)
            else:
                write_uvarint(record, len(data) << 1)
                record += data
        record.append(_NO_HEADERS)
        write_uvarint(section, len(record) << 1)
        section += record
        count += 1
    if not count:
        return b""
    header = BatchHeader(
        base_offset=new.base_offset,
        partition_leader_epoch=new.partition_leader_epoch,
        attributes=new.attributes,
        last_offset_delta=count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=new.producer_id,
        producer_epoch=new.producer_epoch,
        base_sequence=new.base_sequence,
        records_count=count,
    )
    return joined(header, section)


# A marker's offset, timestamp and type, and the transaction's producer; all but the first three are keyword arguments.
def write_marker(
    base_offset: int,
    timestamp: int,
    control_type: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    partition_leader_epoch: int = NO_EPOCH,
) -> bytes:
    """The batch that ends a producer's transaction. `timestamp` is in ms."""
    new = NewBatch(
        base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )
    return write_few(new, timestamp, [(marker_key(control_type), marker_value(coordinator_epoch))])
