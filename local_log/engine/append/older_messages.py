"""Reads the messages of magic 0 or 1 in a leader's append, so that they can be written as record batches."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from local_log.engine.errors import CorruptMessage, InvalidRecord, UnknownServerError
from local_log.engine.memory_records import MemoryBatch
from local_log.errors import Corrupt
from local_log.formats.messages.magic_0_1 import Message, as_int64, held_set, offset_shift, read_message, read_messages
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec
from local_log.formats.record_batch.columns import no_headers
from local_log.formats.record_batch.writer import RECORDS


class HeldMessage(NamedTuple):
    """A message with its absolute offset and its timestamp in ms; a wrapper determines those of its inner messages."""

    message: Message
    offset: int
    timestamp: int

    @property
    def has_key(self) -> bool:
        """Whether its key is not null. Raises UnknownServerError if the key cannot be read."""
        try:
            return self.message.has_key
        except Corrupt as e:
            raise UnknownServerError(e.problem) from e


def messages_of(records: Buffer, batch: MemoryBatch) -> Iterator[HeldMessage]:
    """The messages of a batch: the inner ones of a compressed message, else the message itself.

    Raises InvalidRecord, CorruptMessage and UnknownServerError for a compressed message without a valid message set.
    """
    outer, _ = read_message(records, batch.position)
    if outer.codec == Codec.none:
        yield HeldMessage(outer, outer.offset, outer.timestamp)
        return
    inner = _inner(outer)
    try:
        shift = offset_shift(outer, inner[-1].offset)
    except Corrupt as e:
        raise InvalidRecord(e.problem) from e
    for message in inner:
        if message.codec > max(Codec):
            raise UnknownServerError(f"compression codec {message.codec}; Kafka has 0 to {max(Codec)}")
        if message.codec != Codec.none:
            raise InvalidRecord("a compressed message within a compressed message")
        timed = outer if outer.is_append_time and message.magic == 1 else message
        yield HeldMessage(message, as_int64(message.offset + shift), timed.timestamp)


def _inner(wrapper: Message) -> list[Message]:
    try:
        if wrapper.codec == Codec.zstd or wrapper.value is None:
            raise InvalidRecord("a compressed message with codec zstd, which came with magic 2, or with a null value")
        message_set = held_set(wrapper)
    except Corrupt as e:
        raise UnknownServerError(e.problem) from e
    try:
        inner = read_messages(message_set)
    except Corrupt as e:
        raise CorruptMessage(f"in a compressed message: {e.problem}") from e
    if not inner:
        raise InvalidRecord("a compressed message without inner messages")
    return inner


def columns_of(messages: Sequence[HeldMessage], first_offset: int) -> pa.RecordBatch:
    """The messages as records with offsets from `first_offset` on. Raises UnknownServerError if one cannot be read."""
    try:
        keys, values = [held.message.key for held in messages], [held.message.value for held in messages]
    except Corrupt as e:
        raise UnknownServerError(e.problem) from e
    columns = [
        pa.array(np.arange(first_offset, first_offset + len(messages))),
        pa.array([held.timestamp for held in messages], pa.int64()),
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        no_headers(len(messages)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=RECORDS)
