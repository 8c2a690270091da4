"""Scans batches of any magic: an upgraded log has messages of magic 0 and 1 before its batches of magic 2.

One scan gives either batches of magic 2 or older ones, never both, so that a decoder is chosen once for all of them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from local_log.formats.header_layout import MAGIC_AT
from local_log.formats.messages.message_set import scan_messages
from local_log.formats.primitives import Buffer
from local_log.formats.record_batch import batch_v2
from local_log.formats.record_batch.batch_v2 import BATCHES_MAX, NO_BATCHES, Batches
from local_log.formats.record_batch.projection import EVERYTHING, Projection

if TYPE_CHECKING:
    import pyarrow as pa


def scan(buffer: Buffer, pos: int = 0, *, batches_max: int = BATCHES_MAX) -> tuple[Batches, int]:
    """The complete batches in `buffer` from `pos` on, either of magic 2 or older, and the position after them.

    That position is also below the buffer's end if the batch there is of the other kind: scan again from there. See also
    `batch_v2.scan` and `message_set.scan_messages`. Raises Corrupt with the position in the buffer.
    """
    if len(buffer) - pos <= MAGIC_AT:
        return NO_BATCHES, pos
    of_its_kind = scan_messages if buffer[pos + MAGIC_AT] <= 1 else batch_v2.scan
    return of_its_kind(buffer, pos, batches_max=batches_max)


def decode(buffer: Buffer, batches: Batches, want: Projection = EVERYTHING) -> "Iterator[tuple[Batches, pa.RecordBatch]]":
    """The records of `batches`, which must come from one scan: see `columns.decode`."""
    # Whoever looks at headers alone, as most commands do, does not wait for Arrow.
    if batches.are_messages:
        from local_log.formats.messages.message_columns import decode_messages as decoded
    else:
        from local_log.formats.record_batch.columns import decode as decoded
    return decoded(buffer, batches, want)
