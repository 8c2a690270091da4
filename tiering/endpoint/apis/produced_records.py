"""What a producer may send in which version of Produce (Kafka's ProduceRequest.validateRecords and RequestUtils)."""

from collections.abc import Iterable
from typing import Final

from local_log.engine.errors import InvalidRecord, Refused
from local_log.engine.memory_records import MemoryBatch, memory_batches
from local_log.formats.header_layout import (
    ATTRIBUTES_AT,
    BATCH_SIZE_MIN,
    CODEC,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    OFFSET_LENGTH,
    TRANSACTIONAL,
)
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec
from tiering.endpoint.protocol.errors import ErrorCode

_BATCHES_SINCE: Final = 3
"""Before it, a request has messages of magic 0 or 1, as many as it likes."""
_ZSTD_SINCE: Final = 7


class UnsupportedCodec(Refused):
    """A codec that this version of the request does not have. Kafka's UNSUPPORTED_COMPRESSION_TYPE."""

    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def check_records(records: Buffer, version: int) -> None:
    """Raises InvalidRecord, UnsupportedCodec, CorruptMessage. Older versions take whatever the log takes, as in Kafka."""
    if version < _BATCHES_SINCE:
        return
    attributes = attributes_of_one_batch(records)
    if attributes is None:
        attributes = _of_first(memory_batches(records), version)
    if version < _ZSTD_SINCE and attributes & CODEC == Codec.zstd:
        raise UnsupportedCodec(f"zstd in a request of version {version}; use {_ZSTD_SINCE} or newer, or another codec")


def are_transactional(all_records: Iterable[Buffer]) -> bool:
    """Whether one of them begins with a batch of a transaction. Raises CorruptMessage."""
    return any(map(_is_transactional, all_records))


def first_of_transaction(records: Buffer) -> MemoryBatch | None:
    """The first batch, if it belongs to a transaction: one without a producer belongs to none. Raises CorruptMessage."""
    if not _is_transactional(records):
        return None
    first = memory_batches(records)[0]
    return first if first.producer_id >= 0 else None


def _is_transactional(records: Buffer) -> bool:
    attributes = attributes_of_one_batch(records)
    if attributes is not None:
        return bool(attributes & TRANSACTIONAL)
    batches = memory_batches(records)
    return bool(batches) and batches[0].magic == MAGIC and batches[0].is_transactional


def attributes_of_one_batch(records: Buffer) -> int | None:
    """The attributes of what is one batch by its size and magic, None for anything else."""
    size = len(records)
    if size < LOG_OVERHEAD + BATCH_SIZE_MIN or records[MAGIC_AT] != MAGIC:
        return None
    length: int = OFFSET_LENGTH.unpack_from(records)[1]
    return records[ATTRIBUTES_AT] << 8 | records[ATTRIBUTES_AT + 1] if length + LOG_OVERHEAD == size else None


def _of_first(batches: list[MemoryBatch], version: int) -> int:
    if not batches:
        raise InvalidRecord(f"a request of version {version} without a whole batch; send one a partition")
    if batches[0].magic != MAGIC:
        raise InvalidRecord(f"messages of magic {batches[0].magic} in a request of version {version}, which has magic {MAGIC}")
    if len(batches) > 1:
        raise InvalidRecord(f"{len(batches)} batches in a request of version {version}; send one a partition")
    return batches[0].attributes
