"""The records that an application sees in a range of offsets: no control records, and optionally no aborted transactions."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from local_log.formats.chunks import Chunk
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.record_batch.projection import EVERYTHING, Projection

if TYPE_CHECKING:
    import pyarrow as pa


def visible(chunk: Chunk, start_offset: int, end_offset: int, aborted: Iterable[AbortedTxn] = ()) -> Chunk:
    """The batches of `chunk` with visible records in `[start_offset, end_offset)`.

    With the aborted transactions of the range this is read_committed, without them read_uncommitted.
    """
    batches = chunk.batches
    seen = ~batches.is_control & (batches.last_offset >= start_offset) & (batches.base_offset < end_offset)
    if len(batches):
        first, last = int(batches.base_offset[0]), int(batches.last_offset[-1])
        transactional = batches.is_transactional
        for txn in aborted:
            if txn.first_offset <= last and txn.last_offset >= first:
                inside = (batches.base_offset >= txn.first_offset) & (batches.base_offset <= txn.last_offset)
                seen &= ~(transactional & inside & (batches.header["producer_id"] == txn.producer_id))
    return chunk.where(seen)


def record_batches(
    chunks: Iterable[Chunk],
    start_offset: int,
    end_offset: int,
    aborted: Iterable[AbortedTxn] = (),
    want: Projection = EVERYTHING,
) -> "Iterator[pa.RecordBatch]":
    """The records of `[start_offset, end_offset)` as Arrow (see `columns.decode`), a few MB at a time, none empty.

    Every batch's CRC is checked first. Raises Corrupt with the chunk's file and the position.
    """
    aborted = tuple(aborted)
    for chunk in chunks:
        for _, records in visible(chunk, start_offset, end_offset, aborted).records(want):
            # Offsets increase, so only records at the start and the end can be outside the range.
            lowest, highest = records.column("offset").to_numpy().searchsorted([start_offset, end_offset])
            if highest > lowest:
                yield records.slice(int(lowest), int(highest - lowest))
