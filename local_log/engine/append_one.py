"""The append that nearly all are: a follower's one batch of plain records, in the leader epoch that is being written.

It does what `UnifiedLog`'s long way does with such a batch, to the same end, in a quarter of its time: no batch, no producer and
no answer is made on the way that is thrown away again. Whatever is not plain is left to the long way.
"""

from local_log.engine.append_info import AppendInfo
from local_log.engine.epochs import LeaderEpochs
from local_log.engine.producer_state_manager import ProducerStateManager
from local_log.engine.producers import BatchMetadata
from local_log.engine.segmented_log import OffsetMetadata, SegmentedLog
from local_log.formats.batch_header import (
    ATTRIBUTES_AT,
    BATCH_HEADER_BYTES,
    CODEC,
    CONTROL,
    FIELDS,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL,
)
from local_log.formats.checksum import crc32c
from local_log.formats.primitives import INT32_MAX
from local_log.formats.record import NO_TIMESTAMP, Codec

_tuple = tuple.__new__  # what the constructor of a named tuple comes to, in a third of its time
_UNPLAIN = CONTROL | TRANSACTIONAL
_CODEC_MAX = max(Codec)


def append_one(
    local: SegmentedLog,
    producers: ProducerStateManager,
    epochs: LeaderEpochs,
    records: bytes,
    leader_epoch: int,
    log_start_offset: int,
) -> AppendInfo | None:
    """Appends the batch; None, and nothing is done, where it is not plain, not sound or not in its place."""
    size = len(records)
    if size < BATCH_HEADER_BYTES or local.is_closed or producers.ongoing or producers.unreplicated or not epochs.entries:
        return None
    (
        base, length, epoch, magic, crc, attributes, delta, _, timestamp, producer_id, producer_epoch, sequence, _,
    ) = FIELDS.unpack_from(records)  # fmt: skip
    if (
        magic != MAGIC
        or length + LOG_OVERHEAD != size
        or attributes & _UNPLAIN
        or attributes & CODEC > _CODEC_MAX
        or delta < 0
        or base < local.end.offset
        or epoch > leader_epoch
        or epoch != epochs.entries[-1].epoch
    ):
        return None
    segment, config = local.segments.active, local.folder.config
    last = base + delta
    producer = None
    if producer_id >= 0:
        producer = producers.producers.get(producer_id)
        if producer is None or producer.epoch != producer_epoch or producer.txn_first_offset is not None or sequence < 0:
            return None
    if last - local.recovery_point + 1 >= config.flush_messages or crc32c(memoryview(records)[ATTRIBUTES_AT:]) != crc:
        return None
    if not segment.append_one(records, last, timestamp, config):
        return None
    local.end = _tuple(OffsetMetadata, (last + 1, segment.base_offset, segment.size))
    if producer is not None:
        producer.batches.append(_tuple(BatchMetadata, ((sequence + delta) & INT32_MAX, last, delta, timestamp)))
        producer.last_timestamp = timestamp
    producers.map_end_offset = last + 1
    latest = timestamp if timestamp > NO_TIMESTAMP else NO_TIMESTAMP
    return AppendInfo(base, last, last, epoch, latest, NO_TIMESTAMP, log_start_offset, attributes & CODEC, size)
