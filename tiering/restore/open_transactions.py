"""The active segment of a restored log: empty, or the markers of transactions whose own markers were not archived.

The archive ends at or below the last stable offset, so every transaction in it is completed, and the archive knows the result.
The marker itself may come after the last archived segment. Without a marker the transaction would stay ongoing, and the last
stable offset of the restored log would never pass it.
"""

from collections.abc import Iterator, Mapping, Sequence

from local_log.formats.batches import scan
from local_log.formats.control import ControlType
from local_log.formats.filenames import LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX
from local_log.formats.indexes.transaction import AbortedTxn, write_txn_index
from local_log.formats.record_batch.few_records import write_marker
from local_log.producer_state import OpenTransaction
from remote.segment.index_rebuild import rebuilt_indexes

_COORDINATOR_EPOCH = 0
"""Lower than the epoch of any real coordinator, so that the broker accepts later markers."""

Aborted = Mapping[int, int]
"""First offsets of the aborted ones by producer id; a snapshot may know a later one, from the log start offset on."""


def active_segment(
    base_offset: int, ongoing: Sequence[OpenTransaction], aborted: Aborted, timestamp_ms: int, leader_epoch: int
) -> Mapping[str, bytes]:
    """The files of a segment with the markers of these transactions, in their order; by suffix."""
    log = b"".join(_markers(base_offset, ongoing, aborted, timestamp_ms, leader_epoch))
    batches, _ = scan(log)
    if not len(batches):
        return {LOG: b"", OFFSET_INDEX: b"", TIME_INDEX: b""}
    indexes = rebuilt_indexes(base_offset, batches.positions, batches.last_offset, batches.max_timestamp)
    files = {LOG: log, OFFSET_INDEX: indexes.offset_index, TIME_INDEX: indexes.time_index}
    entries = tuple(_entries(base_offset, ongoing, aborted))
    return files | ({TXN_INDEX: write_txn_index(entries)} if entries else {})


def _markers(
    base_offset: int, ongoing: Sequence[OpenTransaction], aborted: Aborted, timestamp_ms: int, leader_epoch: int
) -> Iterator[bytes]:
    for offset, txn in enumerate(ongoing, base_offset):
        yield write_marker(
            offset,
            timestamp_ms,
            ControlType.ABORT if txn.producer_id in aborted else ControlType.COMMIT,
            producer_id=txn.producer_id,
            producer_epoch=txn.producer_epoch,
            coordinator_epoch=_COORDINATOR_EPOCH,
            partition_leader_epoch=leader_epoch,
        )


def _entries(base_offset: int, ongoing: Sequence[OpenTransaction], aborted: Aborted) -> Iterator[AbortedTxn]:
    for number, txn in enumerate(ongoing):
        offset = base_offset + number
        last_stable = ongoing[number + 1].first_offset if number + 1 < len(ongoing) else offset + 1
        if txn.producer_id in aborted:
            yield AbortedTxn(aborted[txn.producer_id], offset, txn.producer_id, last_stable)


def is_active_segment(log: bytes, base_offset: int, timestamp_ms: int) -> bool:
    """Whether the bytes of a log file can be what `active_segment` has written, and not a broker's own markers.

    A broker's markers have the time of the write; ours have the largest timestamp before them.
    """
    batches, end = scan(log)
    if end != len(log) or batches.are_messages or not batches.is_control.all():
        return False
    offsets = range(base_offset, base_offset + len(batches))
    return batches.last_offset.tolist() == [*offsets] and bool((batches.max_timestamp == timestamp_ms).all())
