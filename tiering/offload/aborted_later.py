"""The transactions of a segment that were aborted after it ended, which the archive keeps beside the segment with the records.

    batches       T1 ···  |    gap    |  ··· T2 ··· marker      two transactions of one producer
    index                                    (T2, its marker)

By its batches, T1 ends with the next marker of its producer. In a log that was restored from an archive with a gap, T1's own
marker may have lain in the gap. The transaction indexes of such a log say which transaction a marker aborts, and which one was
aborted in the gap.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from local_log.errors import Corrupt, LogError
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.transactions import EndedTxn
from local_log.log_reader import LogReader
from tiering.offload.changed import Changed


def aborted_later(log: LogReader, start: int, end: int, followed: Mapping[int, int]) -> tuple[AbortedTxn, ...]:
    """Those that are open at `end` and aborted later on; `followed` are open there by the batches of a segment from `start` on.

    A snapshot may say more than the batches: compaction may have taken all that a transaction had in the segment. It may say
    less, too: a broker that has recovered its log knows transactions from the log start offset on.

    Raises for one that has records in the segment and no end, as all have below the last stable offset: Changed if the log has
    lost the marker since that was read, Corrupt if it says so still.
    """
    open_at_end = dict(followed)
    with suppress(LogError):
        for producer_id, first in log.transactions_at(end).items():
            open_at_end[producer_id] = min(first, open_at_end.get(producer_id, first))
    ended = log.ended_later(open_at_end, end)
    for producer_id in followed.keys() - {one.txn.producer_id for one in ended}:
        first = open_at_end[producer_id]
        if first < log.last_stable_offset and log.has_transactional_records(producer_id, max(first, start), end):
            what = f"the transaction of producer {producer_id} from offset {first} on has no end in the log, which"
            if replace(log).last_stable_offset <= first:
                raise Changed(f"{log.folder}: {what} was stable up to {log.last_stable_offset}; offload again")
            raise Corrupt(
                f"{what} is stable up to {log.last_stable_offset}: the log has lost the marker. Offload another replica; where "
                "none has it, and the transaction is known to have been aborted, write that with kafka-transactions.sh abort",
                file=log.folder,
            )
    if start < log.log_start_offset:  # of what lies there, a broker that has recovered its log writes less into an index
        return tuple(one.txn for one in ended if one.is_aborted)
    indexed = tuple(_indexed(log, end, max((one.txn.last_offset for one in ended), default=-1)))
    aborts = (_abort_of(log, one, indexed, end) for one in ended)
    return tuple(txn for txn in aborts if txn is not None)


def _indexed(log: LogReader, end: int, last: int) -> Iterator[AbortedTxn]:
    """The entries of the transaction indexes of the segments that have offsets of `[end, last]`, as far as they can be read."""
    for segment, after in pairwise([*log.segments, None]):
        if segment is not None and segment.base_offset <= last and (after is None or after.base_offset > end):
            with suppress(LogError):
                yield from segment.aborted()


def _abort_of(log: LogReader, ended: EndedTxn, indexed: Iterable[AbortedTxn], end: int) -> AbortedTxn | None:
    """The abort of a transaction that was open at `end`; None if it was committed, or ended in a gap as no index says."""
    marker = ended.txn.last_offset
    own = [txn for txn in indexed if txn.producer_id == ended.txn.producer_id]
    earlier = sorted((txn for txn in own if txn.first_offset < end <= txn.last_offset < marker), key=lambda txn: txn.last_offset)
    in_gap = next((txn for txn in earlier if not _has_batch(log, txn.last_offset)), None)
    if in_gap is not None or not ended.is_aborted:
        return in_gap
    known = min((txn for txn in own if txn.last_offset == marker), default=ended.txn)
    return known if known.first_offset < end else None


def _has_batch(log: LogReader, offset: int) -> bool:
    return any(
        bool(((chunk.batches.base_offset <= offset) & (chunk.batches.last_offset >= offset)).any())
        for chunk in log.chunks(offset, offset + 1)
    )
