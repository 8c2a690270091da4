"""The segments of a local log, and up to where it is decided, as the plan of an offload sees them."""

from dataclasses import dataclass

from local_log.errors import NoSuchFile
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment
from tiering.offload.emptied import emptied_by_cleaner


@dataclass(frozen=True, slots=True)
class LocalSegment:
    """A segment; `end_offset` is None for the active one. In an empty one compaction has left no batch. `size` is in bytes.

    Only what it has from `copied_from` on is copied.
    """

    base_offset: int
    end_offset: int | None
    is_empty: bool = False
    size: int = 0
    copied_from: int = 0

    @property
    def start_offset(self) -> int:
        """The first offset that is copied."""
        return max(self.base_offset, self.copied_from)


def local_segments(log: LogReader) -> tuple[LocalSegment, ...]:
    """The segments of a log, by the sizes of their files; of the active one nothing is asked. Raises Unreadable."""
    sizes = {s.base_offset: _size(s) for s in log.segments if s.next_base_offset is not None}
    emptied = emptied_by_cleaner(log, (s for s in log.segments if sizes.get(s.base_offset) == 0))
    return tuple(
        LocalSegment(s.base_offset, s.next_base_offset, s.base_offset in emptied, sizes.get(s.base_offset) or 0)
        for s in log.segments
    )


def stable_offset(log: LogReader) -> int:
    """The offset below which every transaction is ended and replicated, also of what the folder has below the log start offset.

    The last stable offset is never below the log start offset, and a broker that has recovered its log knows transactions from
    there on only, so that its snapshots lack the others. So one that began before that, and has no end in the log, as the batches
    say, keeps what lies below the log start offset, too. A snapshot may lack a producer whose transaction has ended: it forgets
    who has been idle for long. Raises Corrupt, NotFound, Unreadable.
    """
    stable, start = log.last_stable_offset, log.log_start_offset
    if log.segments[0].base_offset >= start:
        return stable
    ended = {p.producer_id for p in log.producers_at(log.high_watermark) if p.current_txn_first_offset is None}
    began = {txn.producer_id: txn.first_offset for txn in log.transactions_begun_before(start) if txn.producer_id not in ended}
    for found in log.ended_later(began, start):
        if found.txn.last_offset < log.high_watermark:
            del began[found.txn.producer_id]
    return min([stable, *(txn.first_offset for txn in log.open_transactions), *began.values()])


def _size(segment: Segment) -> int | None:
    try:
        return segment.size()
    except NoSuchFile:
        return None  # the copy will raise
