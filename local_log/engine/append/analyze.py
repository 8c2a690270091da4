"""Analyzes an append before it changes the log, by the rules of Kafka's UnifiedLog (analyzeAndValidateRecords)."""

from typing import NamedTuple

from local_log.engine.config import LogConfig
from local_log.engine.errors import CorruptMessage, InvalidRecord, MessageTooLarge, OffsetsOutOfOrder, UnknownServerError
from local_log.engine.memory_records import MemoryBatch, memory_batches
from local_log.engine.producers.state import Origin
from local_log.formats.primitives import Buffer
from local_log.formats.record import NO_EPOCH, NO_TIMESTAMP, Codec

_CODEC_MAX = max(Codec)


class AppendInfo(NamedTuple):
    """The result of an append. `first_offset` is -1 for a follower's messages of magic 0 and 1, which do not have it."""

    first_offset: int
    last_offset: int
    last_offset_of_first_batch: int
    last_leader_epoch: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    source_codec: int
    valid_bytes: int
    is_duplicate: bool = False

    @property
    def first_or_last_offset_of_first_batch(self) -> int:
        """The first offset; if it is unknown, the last offset of the first batch."""
        return self.first_offset if self.first_offset >= 0 else self.last_offset_of_first_batch


def analyze(
    records: Buffer, origin: Origin, leader_epoch: int, log_start_offset: int, config: LogConfig
) -> tuple[AppendInfo, list[MemoryBatch]]:
    """The valid batches, and their summary.

    A follower drops the batches from the first one on whose epoch is later than that of the leader it fetched from. Raises
    Refused: CorruptMessage, InvalidRecord, MessageTooLarge, OffsetsOutOfOrder, UnknownServerError.
    """
    is_leader = origin in (Origin.CLIENT, Origin.COORDINATOR)
    taken: list[MemoryBatch] = []
    grows = True
    last_offset = -1
    for batch in memory_batches(records):
        if origin is Origin.RAFT_LEADER and batch.leader_epoch != leader_epoch:
            raise InvalidRecord(f"a batch of leader epoch {batch.leader_epoch} in an append of epoch {leader_epoch}")
        if origin is Origin.CLIENT and batch.magic == 2 and batch.base_offset != 0:
            raise InvalidRecord(f"a client's batch with base offset {batch.base_offset}; it has to be 0, the log assigns offsets")
        if origin is Origin.REPLICATION and batch.leader_epoch != NO_EPOCH and batch.leader_epoch > leader_epoch:
            break
        grows = grows and batch.last_offset > last_offset
        last_offset = batch.last_offset
        if origin is not Origin.REPLICATION:
            check_sizes([batch], config)
        if not batch.is_valid(records):
            raise CorruptMessage(f"byte {batch.position} of the append: the batch does not have the CRC that it states")
        if batch.codec > _CODEC_MAX:
            raise UnknownServerError(f"byte {batch.position} of the append: codec {batch.codec}; Kafka has 0 to {_CODEC_MAX}")
        taken.append(batch)
        if not is_leader and not grows:
            raise OffsetsOutOfOrder(f"last offsets {', '.join(str(b.last_offset) for b in taken[-10:])} do not grow")
    return _info(taken, log_start_offset), taken


def _info(taken: list[MemoryBatch], log_start_offset: int) -> AppendInfo:
    if not taken:
        return AppendInfo(-1, -1, -1, NO_EPOCH, NO_TIMESTAMP, NO_TIMESTAMP, log_start_offset, Codec.none, 0)
    first, last = taken[0], taken[-1]
    codecs = [b.codec for b in taken if b.codec != Codec.none]
    return AppendInfo(
        first_offset=first.base_offset if first.magic == 2 else -1,
        last_offset=last.last_offset,
        last_offset_of_first_batch=first.last_offset,
        last_leader_epoch=last.leader_epoch,
        max_timestamp=max(NO_TIMESTAMP, max(b.max_timestamp for b in taken)),
        log_append_time=NO_TIMESTAMP,
        log_start_offset=log_start_offset,
        source_codec=codecs[-1] if codecs else Codec.none,
        valid_bytes=last.position + last.size,
    )


def check_sizes(batches: list[MemoryBatch], config: LogConfig) -> None:
    """Raises MessageTooLarge for a batch of more than max.message.bytes."""
    for batch in batches:
        if batch.size > config.max_message_bytes:
            raise MessageTooLarge(f"a batch of {batch.size} bytes; max.message.bytes allows {config.max_message_bytes}")
