"""The producers' state from a log's batches: open transactions, producer snapshot entries (ProducerStateManager)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from local_log.errors import Corrupt
from local_log.formats.chunks import Chunk
from local_log.formats.compression import inflate
from local_log.formats.control import read_end_txn_marker
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.producer_snapshot import ProducerEntry
from local_log.formats.record import NO_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, Codec


@dataclass(frozen=True, slots=True, order=True)
class OpenTransaction:
    """A transaction without a marker yet: its first offset and its producer."""

    first_offset: int
    producer_id: int
    producer_epoch: int


def last_stable_offset(snapshot: Iterable[ProducerEntry], chunks: Iterable[Chunk], high_watermark: int) -> int:
    """The first offset of the earliest transaction still open at the high watermark, or the high watermark.

    `snapshot` is the producers' state at some offset not above the high watermark; `chunks` are the log from that offset on. A
    transaction whose marker is at or above the high watermark is open: the marker may still be truncated.
    """
    return min((t.first_offset for t in open_transactions(snapshot, chunks, high_watermark)), default=high_watermark)


def open_transactions(
    snapshot: Iterable[ProducerEntry], chunks: Iterable[Chunk], high_watermark: int
) -> tuple[OpenTransaction, ...]:
    """The transactions open at the high watermark, by first offset, by the rules of `last_stable_offset`."""
    found = {
        p.producer_id: OpenTransaction(p.current_txn_first_offset, p.producer_id, p.producer_epoch)
        for p in snapshot
        if p.current_txn_first_offset is not None
    }
    for chunk in chunks:
        batches = chunk.batches[chunk.batches.is_transactional & (chunk.batches.base_offset < high_watermark)]
        header = batches.header
        columns = (header["producer_id"], header["producer_epoch"], batches.is_control, batches.base_offset, batches.count)
        for producer, epoch, is_marker, offset, count in zip(*(column.tolist() for column in columns), strict=True):
            # A transactional control batch is an abort or a commit marker: either ends the producer's transaction. One that
            # compaction has emptied ends nothing (ProducerAppendInfo.append).
            if is_marker:
                if count:
                    found.pop(producer, None)
            elif producer not in found:
                found[producer] = OpenTransaction(offset, producer, epoch)
        if len(chunk.batches) and chunk.batches.last_offset[-1] >= high_watermark:
            break
    return tuple(sorted(found.values()))


def producers_at(snapshot: Iterable[ProducerEntry], chunks: Iterable[Chunk], start: int, end: int) -> tuple[ProducerEntry, ...]:
    """The producers at offset `end`. `snapshot` is their state at `start`, `chunks` are the log from there on.

    As in a replay of the log, no batch is rejected and no idle producer expires. Raises Corrupt.
    """
    found = {p.producer_id: p for p in snapshot}
    for chunk in chunks:
        b = chunk.batches
        own = chunk.where((b.base_offset >= start) & (b.base_offset < end) & (b.header["producer_id"] >= 0))
        own.check()
        for row in range(len(own.batches)):
            producer_id = int(own.batches.header["producer_id"][row])
            known = found.get(producer_id) or _unknown(producer_id)
            found[producer_id] = _after_marker(known, own, row) if own.batches.is_control[row] else _after_batch(known, own, row)
        if len(b) and b.last_offset[-1] + 1 >= end:
            break
    return tuple(found.values())


def _unknown(producer_id: int) -> ProducerEntry:
    return ProducerEntry(producer_id, NO_EPOCH, NO_SEQUENCE, -1, 0, NO_TIMESTAMP, NO_EPOCH, None)


def _after_batch(known: ProducerEntry, chunk: Chunk, row: int) -> ProducerEntry:
    b = chunk.batches
    first_offset = known.current_txn_first_offset
    if b.is_transactional[row]:
        first_offset = int(b.base_offset[row]) if first_offset is None else first_offset
    elif first_offset is not None:
        problem = f"producer {known.producer_id} has a transaction open from {first_offset} on, and this batch is not part of it"
        raise Corrupt(problem, file=chunk.file, position=chunk.position + int(b.positions[row]))
    return replace(
        known,
        producer_epoch=int(b.header["producer_epoch"][row]),
        last_sequence=int(b.last_sequence[row]),
        last_offset=int(b.last_offset[row]),
        offset_delta=int(b.header["last_offset_delta"][row]),
        last_timestamp=int(b.max_timestamp[row]),
        current_txn_first_offset=first_offset,
    )


def _after_marker(known: ProducerEntry, chunk: Chunk, row: int) -> ProducerEntry:
    b = chunk.batches
    if not b.count[row]:
        return known  # compaction has emptied the marker
    payload = memoryview(chunk.buffer)[int(b.positions[row]) + BATCH_HEADER_BYTES : int(b.end[row])]
    codec = Codec(int(b.codec[row]))
    try:
        marker = read_end_txn_marker(payload if codec is Codec.none else inflate(codec, payload))
    except Corrupt as e:
        raise e.at(chunk.file, chunk.position + int(b.positions[row])) from e
    stamped = int(b.append_timestamp[row])
    epoch = int(b.header["producer_epoch"][row])
    if epoch != known.producer_epoch:
        known = replace(_unknown(known.producer_id), producer_epoch=epoch)
    return replace(
        known,
        last_timestamp=stamped if stamped != NO_TIMESTAMP else int(b.base_timestamp[row]) + marker.timestamp_delta,
        coordinator_epoch=marker.coordinator_epoch,
        current_txn_first_offset=None,
    )
