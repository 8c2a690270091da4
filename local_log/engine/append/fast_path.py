"""The fast path of an append: one batch that neither begins nor ends a transaction, in the current leader epoch.

It has the same effect as `UnifiedLog`'s general path in a quarter of the time, since it creates no intermediate objects.
Every other append takes the general path.
"""

from local_log.engine.append.analyze import AppendInfo
from local_log.engine.epochs import LeaderEpochs
from local_log.engine.local_log import LocalLog
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.producers.state import BatchMetadata
from local_log.engine.segment import DUE
from local_log.formats.checksum import FEW_BYTES, crc32c
from local_log.formats.header_layout import (
    APPEND_FIELDS,
    ATTRIBUTES_AT,
    BATCH_HEADER_BYTES,
    CODEC,
    CONTROL,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
)
from local_log.formats.primitives import INT32_MAX
from local_log.formats.record import NO_TIMESTAMP, Codec

_fields = APPEND_FIELDS.unpack_from
_tuple = tuple.__new__  # as the named tuple's constructor, in a third of its time
_due = DUE.pack
_PLAIN = {a for a in range(1 << 15) if not a & CONTROL and a & CODEC in set(Codec)}
"""The attributes of batches without a marker, with a valid codec."""


# One function of 59 lines: each call inside it would cost up to a tenth of the append.
def append_one(
    local: LocalLog,
    producers: ProducerStateManager,
    epochs: LeaderEpochs,
    records: bytes,
    leader_epoch: int,
    log_start_offset: int,
) -> AppendInfo | None:
    """Appends the batch. None, without any change, if the batch is invalid, out of order, or needs the general path."""
    size, entries, segment = len(records), epochs.entries, local.segments.active
    config = local.folder.config
    tail = segment.tail
    if tail is None or tail[0] is not config:  # as after the log was closed
        tail = None if local.is_closed else segment.find_tail(config, local.recovery_point + config.flush_messages - 2)
    if tail is None or size < BATCH_HEADER_BYTES or not entries:
        return None
    _, write, size_max, timestamp_max, above, offset_max, due_max = tail
    base, length, epoch, magic, crc, attributes, delta, timestamp, producer_id, producer_epoch, sequence = _fields(records)
    last, position = base + delta, segment.size
    if (
        magic != MAGIC
        or length + LOG_OVERHEAD != size
        or attributes not in _PLAIN
        or not local.end_values[0] <= base <= last <= offset_max
        or last <= above
        or timestamp > timestamp_max
        or position + size > size_max
        or epoch > leader_epoch
        or epoch != entries[-1].epoch
    ):
        return None
    producer = None
    if producer_id >= 0:
        producer = producers.producers.get(producer_id)
        if producer is None or producer.epoch != producer_epoch or sequence < 0:
            return None
        if attributes & TRANSACTIONAL:
            if producer.txn_first_offset is None or producers.verifications:
                return None
        elif producer.txn_first_offset is not None:
            return None
    elif attributes & TRANSACTIONAL:
        return None
    if crc32c((records if size < FEW_BYTES else memoryview(records))[ATTRIBUTES_AT:]) != crc:
        return None

    write(position, records)
    segment.size = end = position + size
    latest, of_latest = segment.latest or segment.max_timestamp
    if timestamp > latest:
        latest, of_latest = segment.latest = timestamp, last
    if segment.since_entry > segment.interval:
        segment.since_entry = size
        segment.due += _due(last, position, latest, of_latest)
        if len(segment.due) >= due_max:
            segment.write_due_entries()
    else:
        segment.since_entry += size
    producers.map_end_offset = following = last + 1
    local.end_values = following, segment.base_offset, end  # last: readers use it at once
    if producer is not None:
        producer.batches.append(_tuple(BatchMetadata, ((sequence + delta) & INT32_MAX, last, delta, timestamp)))
        producer.last_timestamp = timestamp
    if timestamp < NO_TIMESTAMP:
        timestamp = NO_TIMESTAMP
    info = base, last, last, epoch, timestamp, NO_TIMESTAMP, log_start_offset, attributes & CODEC, size, False
    return _tuple(AppendInfo, info)
