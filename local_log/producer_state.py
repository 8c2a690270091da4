"""Which transactions are open: what the last stable offset depends on (ProducerStateManager)."""

from collections.abc import Iterable
from dataclasses import dataclass

from local_log.formats.chunks import Chunk
from local_log.formats.producer_snapshot import ProducerEntry


@dataclass(frozen=True, slots=True, order=True)
class OpenTransaction:
    """A transaction that no marker has ended: where it starts, and who writes it."""

    first_offset: int
    producer_id: int
    producer_epoch: int


def last_stable_offset(snapshot: Iterable[ProducerEntry], chunks: Iterable[Chunk], high_watermark: int) -> int:
    """The first offset of the earliest transaction still open at the high watermark, or the high watermark.

    `snapshot` is the producers' state at some offset not above the high watermark; `chunks` are the log from there on. A
    transaction whose marker lies at or above the high watermark is open: the marker may still be truncated away.
    """
    return min((t.first_offset for t in open_transactions(snapshot, chunks, high_watermark)), default=high_watermark)


def open_transactions(
    snapshot: Iterable[ProducerEntry], chunks: Iterable[Chunk], high_watermark: int
) -> tuple[OpenTransaction, ...]:
    """The transactions that are open at the high watermark, in order, as `last_stable_offset` knows them."""
    found = {
        p.producer_id: OpenTransaction(p.current_txn_first_offset, p.producer_id, p.producer_epoch)
        for p in snapshot
        if p.current_txn_first_offset is not None
    }
    for chunk in chunks:
        batches = chunk.batches[chunk.batches.is_transactional & (chunk.batches.base_offset < high_watermark)]
        header = batches.header
        columns = (header["producer_id"], header["producer_epoch"], batches.is_control, batches.base_offset)
        for producer, epoch, ends, offset in zip(*(column.tolist() for column in columns), strict=True):
            # A transactional control batch is an abort or a commit marker: either ends the producer's transaction.
            if ends:
                found.pop(producer, None)
            elif producer not in found:
                found[producer] = OpenTransaction(offset, producer, epoch)
        if len(chunk.batches) and chunk.batches.last_offset[-1] >= high_watermark:
            break
    return tuple(sorted(found.values()))
