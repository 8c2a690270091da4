"""Which transactions are open: what the last stable offset depends on (ProducerStateManager)."""

from collections.abc import Iterable

from local_log.formats.chunks import Chunk
from local_log.formats.producer_snapshot import ProducerEntry


def last_stable_offset(snapshot: Iterable[ProducerEntry], chunks: Iterable[Chunk], high_watermark: int) -> int:
    """The first offset of the earliest transaction still open at the high watermark, or the high watermark.

    `snapshot` is the producers' state at some offset not above the high watermark; `chunks` are the log from there on. A
    transaction whose marker lies at or above the high watermark is open: the marker may still be truncated away.
    """
    first_offsets = {p.producer_id: p.current_txn_first_offset for p in snapshot if p.current_txn_first_offset is not None}
    for chunk in chunks:
        batches = chunk.batches[chunk.batches.is_transactional & (chunk.batches.base_offset < high_watermark)]
        columns = (batches.header["producer_id"], batches.is_control, batches.base_offset)
        for producer, ends, offset in zip(*(column.tolist() for column in columns), strict=True):
            # A transactional control batch is an abort or a commit marker: either ends the producer's transaction.
            if ends:
                first_offsets.pop(producer, None)
            else:
                first_offsets.setdefault(producer, offset)
        if len(chunk.batches) and chunk.batches.last_offset[-1] >= high_watermark:
            break
    return min(high_watermark, *first_offsets.values()) if first_offsets else high_watermark
