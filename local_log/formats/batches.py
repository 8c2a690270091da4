"""Batches of any magic: a log that has lived through an upgrade holds messages of magic 0 and 1 before batches of magic 2.

One scan gives batches of magic 2 or of older ones, never of both, so that who decodes them chooses once, not for each.
"""

from collections.abc import Iterator

import pyarrow as pa

from local_log.formats.header_layout import MAGIC_AT, MESSAGE_BYTES_MIN
from local_log.formats.messages.message_set import decode_messages, scan_messages
from local_log.formats.primitives import Buffer
from local_log.formats.record_batch import batch_v2, columns
from local_log.formats.record_batch.batch_v2 import BATCHES_MAX, NO_BATCHES, Batches
from local_log.formats.record_batch.columns import EVERYTHING, Projection

BATCH_BYTES_MIN = MESSAGE_BYTES_MIN


def scan(buffer: Buffer, pos: int = 0, *, batches_max: int = BATCHES_MAX) -> tuple[Batches, int]:
    """The whole batches in `buffer` from `pos` on, of magic 2 or older, and the position after them.

    That position is below the buffer's end also when a batch there is of the other kind: scan again from there. For the
    rest see `batch_v2.scan`, `message_set.scan_messages`. Raises Corrupt, placed in the buffer.
    """
    if len(buffer) - pos <= MAGIC_AT:
        return NO_BATCHES, pos
    of_its_kind = scan_messages if buffer[pos + MAGIC_AT] <= 1 else batch_v2.scan
    return of_its_kind(buffer, pos, batches_max=batches_max)


def decode(buffer: Buffer, batches: Batches, want: Projection = EVERYTHING) -> Iterator[tuple[Batches, pa.RecordBatch]]:
    """The records of `batches`, which come from one scan: see `columns.decode`."""
    return (decode_messages if batches.are_messages else columns.decode)(buffer, batches, want)
