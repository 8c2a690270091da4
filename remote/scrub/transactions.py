"""Compares, over consecutive segments of a partition, which transactions were aborted with what readers of each segment are told.

The marker of a transaction may be in a later segment than its records. If what was archived with the records disagrees with it,
readers with read_committed get aborted records, or do not get committed ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from remote.keys import PartitionPath
from remote.manifest.segment_entry import SegmentEntry
from remote.scrub.finding import Finding, Kind, not_checked
from remote.scrub.segment_transactions import Misread, SegmentTransactions, TransactionBatches, is_misread

WAITING_MAX: Final = 100_000
"""How many transactions may wait for their marker; if there are more, none of these is compared."""


@dataclass(slots=True)
class TransactionCheck:
    """Takes the segments of one partition in the order of their base offsets.

    Nothing is said of transactions whose marker comes after a segment that was not read, after missing offsets, or after the end
    of the archive.
    """

    path: PartitionPath
    _end: int = 0
    _waiting: dict[int, list[tuple[SegmentEntry, TransactionBatches]]] = field(default_factory=dict)

    def add(self, entry: SegmentEntry, transactions: SegmentTransactions | None) -> Iterator[Finding]:
        """The findings about the next segment, and about earlier ones with records of transactions that end in it.

        `transactions` is None if its batches could not be read.
        """
        if transactions is None:
            self._waiting.clear()
            return
        yield from (_misread(self.path, entry, entry, one) for one in transactions.misread)
        if entry.end_offset <= self._end:
            return  # an earlier segment has all of its offsets, and was compared with those that follow it
        if entry.base_offset > self._end:
            self._waiting.clear()
        for producer in tuple(self._waiting):
            if (marker := transactions.markers.find(producer)) is not None:
                yield from self._ended(entry, *marker, self._waiting.pop(producer))
        if not transactions.is_complete:
            self._waiting.clear()
        for batches in transactions.open:
            self._waiting.setdefault(batches.producer_id, []).append((entry, batches))
        if sum(map(len, self._waiting.values())) > WAITING_MAX:
            self._waiting.clear()
            what = f"the transactions that are open at the end of {entry.log_name}: they are more than {WAITING_MAX}"
            yield not_checked(self.path, what)
        self._end = entry.end_offset

    def _ended(
        self, entry: SegmentEntry, offset: int, marker_type: int, waiting: list[tuple[SegmentEntry, TransactionBatches]]
    ) -> Iterator[Finding]:
        if offset < self._end:
            return  # segments overlap, and the earlier one was compared with this marker
        for of, batches in waiting:
            if is_misread(batches, marker_type):
                yield _misread(self.path, of, entry, Misread(batches, offset))


def _misread(path: PartitionPath, entry: SegmentEntry, marked: SegmentEntry, one: Misread) -> Finding:
    batches, key = one.batches, path.segment(entry.aux_name)
    which = f"of producer {batches.producer_id}, in batches of base offsets {batches.first} to {batches.last}"
    where = f"offset {one.marker}" + ("" if marked is entry else f" in {marked.log_name}")
    if batches.is_left_out:
        return Finding(
            Kind.false_abort,
            key,
            f"consumers with read_committed do not get the records {which}, which the marker at {where} committed: an aborted "
            "transaction that the archive names for this segment has them; read them with read_uncommitted",
        )
    return Finding(
        Kind.missing_abort,
        key,
        f"consumers with read_committed get the records {which}, which the marker at {where} aborted: the archive names no "
        "aborted transaction for this segment that has them; leave them out of what was made of them",
    )
