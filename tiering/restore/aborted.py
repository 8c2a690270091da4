"""The aborted transactions of a restored log, whose transaction indexes must have all of them.

The archive knows them by the segments with their records. A log's readers know them by the transaction index of the segment with
the marker, which may lack one: a broker that recovers its log knows transactions from the log start offset on, and a log cleaner
removes the marker, and its entry, once the log itself has no records of the transaction any more.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace

from local_log.disk import WritableDisk
from local_log.formats.control import ControlType
from local_log.formats.filenames import TXN_INDEX, offset_file
from local_log.formats.indexes.transaction import AbortedTxn, write_txn_index
from local_log.formats.primitives import INT64_MAX
from local_log.formats.transactions import control_types
from local_log.log_reader import LogReader
from local_log.producer_state import OpenTransaction
from local_log.segment_reader import Segment
from tiering.restore.segment import write_file


def aborted_after(aborted: Iterable[AbortedTxn], end_offset: int) -> Mapping[int, int]:
    """The first offsets of aborted transactions whose marker is at or after an offset, by producer id: one each, as in a log."""
    found: dict[int, int] = {}
    for txn in aborted:
        if txn.last_offset >= end_offset:
            found[txn.producer_id] = min(txn.first_offset, found.get(txn.producer_id, txn.first_offset))
    return found


def aborted_of(ongoing: Iterable[OpenTransaction], aborted: Iterable[AbortedTxn], log: LogReader) -> Mapping[int, int]:
    """The first offsets of the `ongoing` transactions that were aborted, by producer id.

    Their markers come after the log's end, or lie in a gap: what a producer began before a gap is open for the log, whatever
    became of it there. If the producer has records of another transaction after that marker, it is this one that is open.
    """
    end, begun, latest = log.log_end_offset, {txn.producer_id: txn.first_offset for txn in ongoing}, dict[int, AbortedTxn]()
    # Of several with one marker the whole transaction is the last one.
    known = sorted(aborted, key=lambda txn: (txn.last_offset, -txn.first_offset))
    for txn in known:
        if begun.get(txn.producer_id, end) <= txn.last_offset < end:
            latest[txn.producer_id] = txn
    goes_on = {of for of, txn in latest.items() if log.has_transactional_records(of, txn.last_offset + 1, INT64_MAX)}
    in_gaps = {of: txn.first_offset for of, txn in latest.items() if of not in goes_on}
    return {**in_gaps, **aborted_after(known, end)}


def complete_txn_indexes(disk: WritableDisk, log: LogReader, aborted: Iterable[AbortedTxn], ongoing: Container[int]) -> None:
    """Adds the transactions that the index of the segment with their marker lacks, unless that is no abort of theirs.

    Those whose marker comes after the log's end go into the last segment's index, unless their producers are among the `ongoing`
    ones, who get a marker.
    """
    end = log.log_end_offset
    by_segment: dict[int, set[AbortedTxn]] = defaultdict(set)
    bases = [segment.base_offset for segment in log.segments]
    for txn in aborted:
        if txn.last_offset < end:
            by_segment[max(bisect_right(bases, txn.last_offset) - 1, 0)].add(txn)
        elif txn.first_offset < end and txn.producer_id not in ongoing:
            by_segment[len(bases) - 1].add(txn)
    for number, wanted in sorted(by_segment.items()):
        segment = log.segments[number]
        known = {(t.producer_id, t.last_offset): t for t in segment.aborted()}
        lacking = sorted(_lacking(segment, known, wanted, end))
        if lacking:
            for txn in reversed(lacking):  # of two with one marker the earlier one is written last
                known[txn.producer_id, txn.last_offset] = txn
            file = f"{log.folder}/{offset_file(segment.base_offset, TXN_INDEX)}"
            write_file(disk, file, [write_txn_index(sorted(known.values(), key=lambda t: t.last_offset))])
            disk.sync(file)


def _lacking(
    segment: Segment, known: Mapping[tuple[int, int], AbortedTxn], wanted: Iterable[AbortedTxn], end: int
) -> Iterator[AbortedTxn]:
    for txn in wanted:
        has = known.get((txn.producer_id, txn.last_offset))
        if has is not None and has.first_offset <= txn.first_offset:
            continue
        if has is not None:
            yield replace(has, first_offset=txn.first_offset)
        elif txn.last_offset >= end:
            yield replace(txn, last_offset=end - 1, last_stable_offset=end)
        elif _may_be_aborted_at(segment, txn):
            yield txn


def _may_be_aborted_at(segment: Segment, txn: AbortedTxn) -> bool:
    """Whether the transaction's last offset is an abort marker of its producer, or has no batch any more."""
    for chunk in segment.chunks(txn.last_offset):
        b = chunk.batches
        there = chunk.where((b.base_offset <= txn.last_offset) & (b.last_offset >= txn.last_offset))
        if len(there.batches):
            is_marker = there.batches.is_transactional & there.batches.is_control
            markers = there.where(is_marker & (there.batches.header["producer_id"] == txn.producer_id))
            return control_types(markers).get(txn.last_offset) == ControlType.ABORT
        if b.last_offset[-1] >= txn.last_offset:
            break
    return True
