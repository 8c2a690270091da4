"""Converts stored batches to the message format of older clients, magic 0 or 1, a limited number of bytes at a time.

Batches of that format or an older one stay as they are. Headers, markers and batches without records have no place in it and are
left out. Records of an uncompressed batch become single messages; a compressed batch becomes a compressed message of the same
codec. Source: Kafka's RecordsUtil and LazyDownConversionRecords (KIP-283), which Kafka 4 dropped with its old clients.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from local_log.errors import Corrupt, Invalid, UnsupportedCompressionType, placed
from local_log.formats.batches import decode
from local_log.formats.chunks import Chunk
from local_log.formats.messages.writer import NewMessages, write_messages
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec, TimestampType
from local_log.formats.record_batch.batch_v2 import Batches, check_crcs
from local_log.formats.record_batch.projection import Projection

READ_BYTES_MAX = 128 << 10
"""Stored bytes to convert at once; a batch alone may be larger."""

_COLUMNS = Projection(headers=False)
_KEPT, _COMPRESSED, _CREATE_TIME, _APPEND_TIME = range(4)


def down_converted(
    chunks: Iterable[Chunk], to_magic: int, first_offset: int, *, bytes_max: int = READ_BYTES_MAX
) -> Iterator[bytes]:
    """The batches of `chunks` for a client that knows `to_magic` and asked for `first_offset`: whole batches, never none.

    The first item is that of one batch, each other one that of up to `bytes_max` stored bytes, or of one batch. It ends before a
    batch with zstd; if that is the first to convert, it raises UnsupportedCompressionType. Raises Corrupt with file and position.
    """
    is_first = True
    for chunk in chunks:
        rest = chunk.batches
        while len(rest):
            limit = np.searchsorted(rest.end, rest.positions[0] + np.uint64(bytes_max), side="right")
            taken = 1 if is_first else max(1, int(limit))
            try:
                with placed(chunk.file, chunk.position):
                    made = down_convert(chunk.buffer, rest[:taken], to_magic, first_offset)
            except UnsupportedCompressionType:
                if is_first:
                    raise
                return  # the client has what came before; its next request starts with this batch, and is refused
            rest = rest[taken:]
            if made:
                is_first = False
                yield made


def down_convert(buffer: Buffer, batches: Batches, to_magic: int, first_offset: int) -> bytes:
    """The batches, which must come from one scan of `buffer`, in the format of `to_magic`; empty if nothing can be shown in it.

    Of uncompressed batches only the records from `first_offset` on are converted, since some clients rely on it.
    Checksums are checked. Raises UnsupportedCompressionType for zstd; Corrupt with the position in the buffer.
    """
    if to_magic not in (0, 1):
        raise Invalid(f"a conversion to magic {to_magic}; it is for clients of magic 0 and 1")
    batches = batches[~batches.is_control]
    if (batches.codec == Codec.zstd).any():
        raise UnsupportedCompressionType(
            "a batch with codec zstd, which came with magic 2; ask with a client of Kafka 2.1 or later"
        )
    plain = np.where(batches.timestamp_type == TimestampType.LOG_APPEND_TIME, _APPEND_TIME, _CREATE_TIME)
    kind = np.where(batches.header["magic"] <= to_magic, _KEPT, np.where(batches.codec != Codec.none, _COMPRESSED, plain))
    changes = (np.flatnonzero(np.diff(kind)) + 1).tolist()
    parts: list[Buffer] = []
    for start, end in pairwise((0, *changes, len(batches))) if len(batches) else ():
        run, of_run = batches[start:end], int(kind[start])
        try:
            if of_run == _KEPT:
                check_crcs(buffer, run)
                parts.append(memoryview(buffer)[int(run.positions[0]) : int(run.end[-1])])
            elif of_run == _COMPRESSED:
                parts += _wrappers(buffer, run, to_magic)
            else:
                parts.append(_messages(buffer, run, NewMessages(to_magic, is_append_time=of_run == _APPEND_TIME), first_offset))
        except Invalid as e:  # what no writer of a log would have written
            raise Corrupt(f"a batch that cannot be converted: {e}", position=int(run.positions[0])) from e
    return b"".join(parts)


def _messages(buffer: Buffer, run: Batches, new: NewMessages, first_offset: int) -> bytes:
    """Uncompressed batches of one timestamp type as single messages."""
    parts = []
    for _, records in decode(buffer, run, _COLUMNS):
        before = int(np.searchsorted(records.column("offset").to_numpy(), first_offset))
        parts.append(write_messages(new, records.slice(before)))
    return b"".join(parts)


def _wrappers(buffer: Buffer, run: Batches, to_magic: int) -> Iterator[bytes]:
    """Compressed batches, each as one compressed message."""
    for group, records in decode(buffer, run, _COLUMNS):
        ends = np.cumsum(group.count).tolist()
        append = (group.timestamp_type == TimestampType.LOG_APPEND_TIME).tolist()
        for start, end, codec, is_append_time in zip((0, *ends), ends, group.codec.tolist(), append, strict=False):
            new = NewMessages(to_magic, Codec(codec), is_append_time=is_append_time)
            yield write_messages(new, records.slice(start, end - start))
