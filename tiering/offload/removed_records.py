"""Proves that a log cleaner can have removed the archived records that a log lacks, so that no key is lost with them.

A cleaner removes a record that has no key, one of an aborted transaction, one with a later record of its key, and, after
delete.retention.ms, a tombstone. It never removes the last value of a key; a segment whose files were lost takes such values
along.

So of each key the last archived record that the log lacks is looked at. It is a tombstone, or a later record of its key is in the
log, or else in the archive, where another group's check keeps it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from local_log.errors import Corrupt, LogError, NotFound
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.kernels.constants import ENTRY_WORDS
from local_log.formats.offset_map import OffsetMap
from local_log.formats.record_batch.projection import Projection
from local_log.formats.transactions import Transactions
from local_log.formats.visible_records import record_batches
from local_log.log_reader import LogReader
from local_log.ranges import Range
from remote.manifest.segment_entry import SegmentEntry
from remote.read.log import ArchivedLog
from tiering.offload.changed import Changed

KEYS_MAX: Final = 4_000_000
"""How many keys a proof may have: about what the memory of Kafka's cleaner, 128 MB, has room for."""

_ENTRY_BYTES: Final = ENTRY_WORDS * 8
_LOAD_FACTOR: Final = 0.8
_KEYS = Projection(value=False, headers=False)
_KEYS_AND_VALUES = Projection(headers=False)


@dataclass(frozen=True, slots=True)
class RemovedRecords:
    """What `log` lacks of the `entries` of `archive` in the offsets `within`, up to the one that the cleaner has come to.

    `present` are the offsets of the records that the log has there.
    """

    log: LogReader
    archive: ArchivedLog
    entries: Sequence[SegmentEntry]
    within: Range
    present: Any
    keys_max: int = KEYS_MAX

    def check(self) -> None:
        """Raises Corrupt for a record that no cleaner has removed, and Changed while the log changes or for too many keys."""
        removed, left = self._last_of_keys()
        if len(left):
            left = self._unproven(removed, left, self._later_local())
        if len(left):
            left = self._unproven(removed, left, self._later_archived())
        if len(left):
            raise Corrupt(
                f"the archived record of offset {left[0]} is not in the log, nor is a later record of its key, so that no log "
                f"cleaner has removed it ({len(left)} such keys): the archive stays as it is. If files of a segment were lost, "
                "restore them from a replica; if a tombstone of the key was removed before it was archived, write another one",
                file=self.log.folder,
            )

    def _last_of_keys(self) -> tuple[OffsetMap, Any]:
        """The last record of each key of which the log lacks one, and the offsets of those that are no tombstones."""
        records_max = min(sum(e.record_count for e in self.entries), self.keys_max)
        removed = OffsetMap((int(records_max / _LOAD_FACTOR) + 2) * _ENTRY_BYTES, _LOAD_FACTOR)
        tombstones = [np.empty(0, np.int64)]
        for records in committed_records(self.archive, self.entries, self.within, _KEYS_AND_VALUES):
            lacking = ~np.isin(records.column("offset").to_numpy(), self.present)
            lost = records.filter(pa.array(lacking))
            lost = lost.filter(pa.array(lost.column("offset").to_numpy() > removed.latest_of(lost.column("key"))))
            offsets = lost.column("offset").to_numpy()
            if removed.put(lost.column("key"), offsets, 0) < len(offsets):
                raise Changed(
                    f"{self.log.folder}: more than {removed.size_max} keys were removed from the offsets {self.within}: too "
                    "many to prove that each has a later record; what is archived stays"
                )
            tombstones.append(offsets[lost.column("value").is_null().to_numpy(zero_copy_only=False)])
        last = removed.offsets()
        return removed, last[~np.isin(last, np.concatenate(tombstones))]

    def _later_local(self) -> Iterator[pa.RecordBatch]:
        log, start, end = self.log, max(self.within[0], self.log.log_start_offset), self.log.last_stable_offset
        try:
            yield from record_batches(log.chunks(start, end), start, end, self._aborted_local(start), _KEYS)
        except NotFound as e:
            raise Changed(f"{e}; its broker has deleted or renamed it in the meantime; offload again") from e

    def _aborted_local(self, start: int) -> tuple[AbortedTxn, ...]:
        """The aborted transactions with records from an offset on, by their markers: a lost index is as an empty one."""
        try:
            following = Transactions(self.log.transactions_at(start))
        except LogError:
            following = Transactions({})  # those that go on from there are known from their next batch on
        found: list[AbortedTxn] = []
        for chunk in self.log.chunks(start, self.log.log_end_offset):
            ended = following.follow(chunk.where(chunk.batches.base_offset >= start))
            found.extend(of.txn for of in ended if of.is_aborted)
        return tuple(sorted(found))

    def _later_archived(self) -> Iterator[pa.RecordBatch]:
        archive, start, end = self.archive, self.within[1], self.archive.end_offset
        if start < end:
            chunks = archive.chunks(start, end, fail_on_data_loss=False)
            yield from record_batches(chunks, start, end, archive.aborted(start, end), _KEYS)

    def _unproven(self, removed: OffsetMap, left: Any, later: Iterable[pa.RecordBatch]) -> Any:
        """Those of `left` without a later record of their key."""
        for records in later:
            last = removed.latest_of(records.column("key"))
            left = left[~np.isin(left, last[records.column("offset").to_numpy() > last])]
            if not len(left):
                break
        return left


def committed_records(
    archive: ArchivedLog, entries: Iterable[SegmentEntry], within: Range, want: Projection
) -> Iterator[pa.RecordBatch]:
    """The committed records of each entry in these offsets, also of one that another entry hides from readers."""
    for entry in entries:
        alone = replace(archive, manifest=replace(archive.manifest, entries=(entry,), pages=()))
        start, end = max(entry.base_offset, within[0]), min(entry.end_offset, within[1])
        if start < end:
            yield from alone.records(start, end, committed=True, want=want)
