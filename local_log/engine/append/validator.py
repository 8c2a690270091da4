"""Validates a leader's batch before the append and assigns its offsets. The batch is rebuilt only if that is necessary.

If the batch's codec is the topic's, only its header changes: base offset, leader epoch, max timestamp, timestamp type and CRC.
Otherwise, or if the offsets within the batch are wrong, its records are decoded and written as a new batch. Messages of magic
0 and 1 always become a new batch: one for a compressed message, one for all the uncompressed messages of a request.

It rejects what Kafka rejects, with the same error; of two errors in a compressed section it may report the other one. In one
case it is stricter: in a compressed batch that is not rebuilt, the records must have the lengths that they declare, and a frame
must be complete, end where the section ends and inflate to at most `INFLATED_BYTES_MAX`. Kafka skips most bytes of such a batch
and may append one that no consumer can read. The log checks checksums and sizes of batches before this.
Source: Kafka's LogValidator.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from local_log.engine.append.older_messages import HeldMessage, columns_of, messages_of
from local_log.engine.config import LogConfig
from local_log.engine.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, RecordError, UnknownServerError
from local_log.engine.memory_records import MemoryBatch
from local_log.engine.producers.state import Origin
from local_log.errors import Corrupt, Invalid
from local_log.formats.checksum import crc32c
from local_log.formats.compression import inflate, is_lz4_that_kafka_reads
from local_log.formats.header_layout import (
    APPEND_TIME,
    ATTRIBUTES_AT,
    BATCH_HEADER_BYTES,
    CODEC,
    CONTROL,
    DELETE_HORIZON,
    MAGIC,
    TRANSACTIONAL,
)
from local_log.formats.kernels import constants
from local_log.formats.messages.magic_0_1 import as_int64
from local_log.formats.primitives import Buffer
from local_log.formats.record import NO_TIMESTAMP, Codec
from local_log.formats.record_batch.batch_v2 import scan
from local_log.formats.record_batch.columns import decode_section
from local_log.formats.record_batch.header import read_batch_header
from local_log.formats.record_batch.writer import NewBatch, write_batch

_CODEC_MAX = max(Codec)
_ERRORS_SHOWN_MAX = 3
_OTHER_MAGIC = max(constants.NO_KEY, constants.TIME_OUT_OF_RANGE, constants.TIME_OF_APPEND) + 1
_NO_ROOM = np.empty(0, np.int64), np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64)
_KNOWN_BITS = CODEC | APPEND_TIME | TRANSACTIONAL | CONTROL | DELETE_HORIZON
_PROBLEM = {
    constants.BAD_VARINT: "a varint does not end where its record ends",
    constants.RECORD_PAST_BATCH: "it is longer than what is left of its batch",
    constants.FIELD_PAST_RECORD: "a key, value or header is longer than what is left of it",
    constants.BYTES_LEFT_OVER: "bytes are left over after the last record or header",
    constants.BAD_HEADER_COUNT: "it claims more headers than it has bytes for",
}


@dataclass(frozen=True, slots=True)
class Rules:
    """A topic's rules for its records. `codec` is None to keep the producer's, `level` None for Kafka's default.

    A record's timestamp may be up to `before_max_ms` before and `after_max_ms` after the time of the append, unless the log sets
    the timestamps.
    """

    codec: Codec | None
    level: int | None
    is_compacted: bool
    is_append_time: bool
    before_max_ms: int
    after_max_ms: int


@dataclass(frozen=True, slots=True)
class Validated:
    """A batch to append. `max_timestamp` is in ms, -1 for none. `last_offset` is also the offset of its time index entry.
    `records_rebuilt` is the number of records that were written to a new batch, whose size may differ.
    """

    records: bytes
    max_timestamp: int
    last_offset: int
    records_rebuilt: int
    is_rebuilt: bool


def rules_of(config: LogConfig) -> Rules:
    """The rules for records in a log's settings."""
    word = config.compression_type
    codec = None if word == "producer" else Codec.none if word == "uncompressed" else Codec[word]
    levels = {
        Codec.gzip: config.compression_gzip_level,
        Codec.lz4: config.compression_lz4_level,
        Codec.zstd: config.compression_zstd_level,
    }
    return Rules(
        codec=codec,
        level=None if codec is None else levels.get(codec),
        is_compacted=config.compact,
        is_append_time=config.message_timestamp_type == "LogAppendTime",
        before_max_ms=config.message_timestamp_before_max_ms,
        after_max_ms=config.message_timestamp_after_max_ms,
    )


# Eight parameters, as Kafka's LogValidator has; `rules` combine seven more.
def validate(
    records: Buffer,
    batches: Sequence[MemoryBatch],
    first_offset: int,
    now_ms: int,
    rules: Rules,
    *,
    source_codec: int,
    leader_epoch: int,
    origin: Origin,
) -> Validated:
    """Validates the one batch in `records`, or its messages of magic 0 and 1, and assigns offsets from `first_offset` on.

    `batches` are the batches in `records`; `source_codec` is the codec of all of them together (see `analyze`).
    Raises InvalidRecord, InvalidTimestamp, UnknownServerError and, for inner messages, CorruptMessage.
    """
    batch = _first_batch(batches, source_codec)
    if origin is Origin.CLIENT:
        _check_client(batch)
    target = source_codec if rules.codec is None else rules.codec
    if batch.magic < MAGIC:
        _check_codec(batch)
        new = _new_batch(batch, first_offset, target, now_ms, rules, leader_epoch)
        return _converted(records, batches, new, now_ms, rules, source_codec)
    # A marker stays uncompressed unless it was compressed already.
    keep = target == source_codec or (source_codec == Codec.none and batch.is_control)
    section = _section(records, batch)
    latest, in_order = _check_records(section, batch, now_ms, rules)
    if source_codec != Codec.none or target != Codec.none:
        if keep and not in_order and batch.codec != Codec.none:
            raise UnknownServerError("a compressed batch's offsets do not run from 0 on")
        keep = keep and in_order
    if rules.is_append_time:
        latest = now_ms
    last_offset = first_offset + batch.records_count - 1
    if keep:
        made = _kept(records, batch, last_offset, leader_epoch, latest, append_time=rules.is_append_time)
        return Validated(made, latest, last_offset, 0, is_rebuilt=False)
    made = _rebuilt(records, batch, section, _new_batch(batch, first_offset, target, now_ms, rules, leader_epoch))
    return Validated(made, latest, last_offset, batch.records_count, is_rebuilt=True)


def _first_batch(batches: Sequence[MemoryBatch], source_codec: int) -> MemoryBatch:
    """The first batch. It must be the only one, unless it is an uncompressed message."""
    if not batches:
        raise InvalidRecord("a request without a whole batch")
    if len(batches) > 1 and (batches[0].magic == MAGIC or source_codec != Codec.none):
        raise InvalidRecord("a request with more than one batch")
    return batches[0]


def _converted(
    records: Buffer, batches: Sequence[MemoryBatch], new: NewBatch, now_ms: int, rules: Rules, source_codec: int
) -> Validated:
    """The messages of magic 0 or 1 in `batches`, written as the batch `new`."""
    is_plain = source_codec == new.codec == Codec.none
    if is_plain:  # Kafka reads all of them before it checks the first, to compute their size
        for batch in batches:
            if batch.magic < MAGIC:
                columns_of(list(messages_of(records, batch)), new.base_offset)
    messages: list[HeldMessage] = []
    for batch in batches:
        if batch.magic != batches[0].magic:
            raise InvalidRecord(f"a message of magic {batch.magic} behind one of magic {batches[0].magic}")
        messages += _checked_messages(records, batch, now_ms, rules)
        if is_plain and messages[-1].timestamp < NO_TIMESTAMP:  # and it writes each one before it checks the next
            raise UnknownServerError(f"a message with timestamp {messages[-1].timestamp}")
    try:
        made = write_batch(new, columns_of(messages, new.base_offset))
    except Invalid as e:
        raise UnknownServerError(str(e)) from e
    latest = read_batch_header(made).max_timestamp
    return Validated(made, latest, new.base_offset + len(messages) - 1, len(messages), is_rebuilt=True)


def _checked_messages(records: Buffer, batch: MemoryBatch, now_ms: int, rules: Rules) -> list[HeldMessage]:
    messages: list[HeldMessage] = []
    faults: list[tuple[int, int, int, int]] = []
    for row, held in enumerate(messages_of(records, batch)):
        kind = _fault_of(held, batch, now_ms, rules)
        if kind in (_OTHER_MAGIC, constants.TIME_OF_APPEND):
            columns_of([held], 0)  # Kafka formats the whole message for its error, and fails if it cannot be read
        if kind:
            faults.append((row, kind, held.timestamp, held.offset))
        messages.append(held)
    if faults:
        _refuse(faults, now_ms, rules)
    return messages


def _fault_of(held: HeldMessage, batch: MemoryBatch, now_ms: int, rules: Rules) -> int:
    if held.message.magic != batch.magic:
        return _OTHER_MAGIC
    if batch.codec != Codec.none and not held.message.is_valid:  # otherwise it is the batch itself, whose checksum the log checks
        raise CorruptMessage("a message in a compressed one does not have the CRC-32 that it states")
    if rules.is_compacted and not held.has_key:
        return constants.NO_KEY
    if not rules.is_append_time and held.timestamp != NO_TIMESTAMP:
        age = as_int64(now_ms - held.timestamp)
        is_out = age > rules.before_max_ms or as_int64(-age) > rules.after_max_ms
        return constants.TIME_OUT_OF_RANGE if is_out else constants.DONE
    return constants.TIME_OF_APPEND if batch.magic > 0 and batch.is_append_time else constants.DONE


def _new_batch(batch: MemoryBatch, first_offset: int, codec: int, now_ms: int, rules: Rules, leader_epoch: int) -> NewBatch:
    return NewBatch(
        base_offset=first_offset,
        codec=Codec(codec),
        level=rules.level,
        append_time_ms=now_ms if rules.is_append_time else None,
        partition_leader_epoch=leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        is_transactional=batch.is_transactional,
    )


def _check_codec(batch: MemoryBatch) -> None:
    if batch.codec > _CODEC_MAX:
        raise UnknownServerError(f"compression codec {batch.codec}; Kafka has 0 to {_CODEC_MAX}")


def _check_client(batch: MemoryBatch) -> None:
    count, spanned = batch.records_count, batch.last_offset - batch.base_offset + 1
    if spanned <= 0 or count <= 0 or spanned != count:
        raise InvalidRecord(f"a batch that spans {spanned} offsets and claims {count} records")
    if batch.is_control:
        raise InvalidRecord("a control batch, which no client may write")
    if batch.producer_id >= 0 and batch.base_sequence < 0:
        raise InvalidRecord(f"a batch of producer {batch.producer_id} with sequence number {batch.base_sequence}")


def _section(records: Buffer, batch: MemoryBatch) -> Buffer:
    """The batch's records, decompressed."""
    _check_codec(batch)
    if batch.records_count < 0:
        raise InvalidRecord(f"a batch that claims {batch.records_count} records")
    section = memoryview(records)[BATCH_HEADER_BYTES : batch.size]
    return section if batch.codec == Codec.none or not batch.records_count else inflated(section, batch.codec)


def inflated(section: memoryview, codec: int) -> Buffer:
    """The records in a section that is compressed. Raises UnknownServerError."""
    if codec == Codec.lz4 and not is_lz4_that_kafka_reads(section):
        raise UnknownServerError("an lz4 frame whose blocks depend on each other")
    try:
        return inflate(codec, section)
    except Corrupt as e:
        raise UnknownServerError(e.problem) from e


def _check_records(section: Buffer, batch: MemoryBatch, now_ms: int, rules: Rules) -> tuple[int, bool]:
    """The greatest timestamp, and whether the offset deltas are 0, 1, 2, …"""
    if not batch.records_count:
        return NO_TIMESTAMP, True
    status, row, latest, in_order, errors = _checked(section, batch, now_ms, rules, _NO_ROOM)
    if status:
        raise InvalidRecord(f"record {row} of {batch.records_count}: {_PROBLEM[status]}")
    if errors:
        room = np.empty(errors, np.int64), np.empty(errors, np.uint8), np.empty(errors, np.int64), np.empty(errors, np.int64)
        _checked(section, batch, now_ms, rules, room)
        _refuse([*zip(*(column.tolist() for column in room), strict=True)], now_ms, rules)
    return latest, bool(in_order)


def _checked(section: Buffer, batch: MemoryBatch, now_ms: int, rules: Rules, room: Any) -> tuple[int, ...]:
    from local_log.formats.kernels.validate import check_records

    found: tuple[int, ...] = check_records(
        np.frombuffer(section, np.uint8), 0, len(section),
        batch.records_count, batch.base_offset, batch.base_timestamp, batch.max_timestamp, batch.is_append_time,
        now_ms, rules.before_max_ms, rules.after_max_ms, not rules.is_append_time, rules.is_compacted, *room,
    )  # fmt: skip
    return found


def _refuse(faults: list[tuple[int, int, int, int]], now_ms: int, rules: Rules) -> None:
    """Raises the error for the faults: row of the record, kind, timestamp, offset."""
    problems = {
        _OTHER_MAGIC: "is of another magic than the message that it is in".format,
        constants.NO_KEY: "has no key, which a compacted topic needs".format,
        constants.TIME_OUT_OF_RANGE: (
            f"has timestamp {{0}}, outside [{now_ms - rules.before_max_ms}, {now_ms + rules.after_max_ms}]".format
        ),
        constants.TIME_OF_APPEND: "has the time of its append from its producer; only a log may set it".format,
    }
    errors = tuple(
        RecordError(row, f"the record of offset {offset} {problems[kind](timestamp)}") for row, kind, timestamp, offset in faults
    )
    shown = "; ".join(error.problem for error in errors[:_ERRORS_SHOWN_MAX])
    of_time = constants.TIME_OUT_OF_RANGE, constants.TIME_OF_APPEND
    error_class = InvalidTimestamp if any(kind in of_time for _, kind, _, _ in faults) else InvalidRecord
    raise error_class(f"{len(errors)} records are refused, the first: {shown}", record_errors=errors)


def _kept(records: Buffer, batch: MemoryBatch, last_offset: int, epoch: int, latest: int, *, append_time: bool) -> bytes:
    view = memoryview(records)
    header = read_batch_header(records)
    new = header._replace(base_offset=last_offset - header.last_offset_delta, partition_leader_epoch=epoch)
    if batch.is_append_time != append_time or batch.max_timestamp != latest:
        attributes = batch.attributes & _KNOWN_BITS & ~APPEND_TIME | (APPEND_TIME if append_time else 0)
        new = new._replace(attributes=attributes, max_timestamp=latest)
        rest = view[BATCH_HEADER_BYTES : batch.size]
        new = new._replace(crc=crc32c(rest, crc32c(new.pack()[ATTRIBUTES_AT:])))
    return b"".join((new.pack(), view[BATCH_HEADER_BYTES:]))


def _rebuilt(records: Buffer, batch: MemoryBatch, section: Buffer, new: NewBatch) -> bytes:
    """The batch `new` of the same records; empty if there are no records."""
    if not batch.records_count:
        if new.append_time_ms is not None:
            raise UnknownServerError("no batch can be built of no records, with the time of an append that it would be of")
        section = b""
    columns = decode_section(section, scan(memoryview(records)[: batch.size])[0])
    offsets = np.arange(new.base_offset, new.base_offset + columns.num_rows, dtype=np.int64)
    columns = columns.set_column(0, "offset", pa.array(offsets))
    columns = columns.set_column(columns.schema.get_field_index("headers"), "headers", _in_utf8(columns.column("headers")))
    try:
        return write_batch(new, columns)
    except Invalid as e:
        raise UnknownServerError(str(e)) from e


def _in_utf8(headers: Any) -> Any:
    """The headers, with U+FFFD for invalid UTF-8 in their names: Kafka decodes and encodes names as text."""
    pairs = headers.values
    try:
        pc.cast(pairs.field(0), pa.string())
    except pa.ArrowInvalid:
        names = [name.decode(errors="replace").encode() for name in pairs.field(0).to_pylist()]
        pairs = pa.StructArray.from_arrays([pa.array(names, pa.binary()), pairs.field(1)], fields=list(pairs.type))
        return pa.ListArray.from_arrays(headers.offsets, pairs, type=headers.type)
    return headers


def warm_up() -> None:
    """Compiles the kernels of appends, or loads them from the cache, so that the first append does not wait."""
    from local_log.formats.kernels import encode, validate  # noqa: F401  # the import does it all
