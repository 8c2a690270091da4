"""What is proved of cleaned segments before they take the place of what is archived: that a log cleaner, and nothing else, has
taken away what they lack.

    every batch has its CRC and the leader epoch of its offset; both indexes fit the log file, up to its end
    every record is one of the archived ones
    every archived record from the offset on that the cleaner has come to is there, unless its transaction was aborted
    of every key that an archived record before that offset had, a later record is left (see `removed_records`)
    no record is later than the latest archived one; a segment without a batch has no index either

A file that was cut short has indexes that reach past its end, and one of another log has offsets that are not in the archive.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from local_log.errors import Corrupt, NotFound
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.filenames import CLEANER_OFFSET_CHECKPOINT, LOG, OFFSET_INDEX, TIME_INDEX
from local_log.formats.indexes.time import read_time_index
from local_log.formats.record import NO_TIMESTAMP
from local_log.formats.record_batch.projection import Projection
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.segment.check import LogSegmentData, SegmentCopy
from remote.store.api import ObjectStore
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.encoder import Transforms
from tiering.offload.changed import Changed
from tiering.offload.cleaned import Cleaned, cleaned_up_to
from tiering.offload.local_segment import LocalSegment
from tiering.offload.removed_records import RemovedRecords, committed_records

_OFFSETS = Projection(key=False, value=False, headers=False)
_REMEDY = "it is not archived in place of what is there; restore the file from a replica"


@dataclass(frozen=True, slots=True)
class CleanedCheck:
    """Checks the segments of a group of `log`, whose files are as `datas` describe them, against the archive, `manifest`.

    `up_to` is the offset that the cleaner has come to. `reading` decodes what is archived.
    """

    log: LogReader
    group: Cleaned
    manifest: Manifest
    up_to: int
    store: ObjectStore
    reading: ReadContext

    def __call__(self, copies: Sequence[SegmentCopy], datas: Sequence[LogSegmentData]) -> None:
        """Raises Corrupt, placed in the file at fault, Changed while the cleaner is at work, and as the archive is read."""
        for copy, data in zip(copies, datas, strict=True):
            _check_indexes(copy, data)
        local = [_offsets(read_chunks(data.read, data.path, 0, data.size)) for data in datas]
        archived = _offsets(self._archived())
        for offsets, copy in zip(local, copies, strict=True):
            of_log = offsets[offsets >= self.manifest.log_start_offset]
            strange = of_log[~np.isin(of_log, archived)]
            if len(strange):
                raise Corrupt(
                    f"the archive has no record of offset {strange[0]}, which was cleaned; {_REMEDY}", file=copy.data.path
                )
        present = self._refuse_uncleaned(local)
        if self.group.start >= self.manifest.log_start_offset:
            self._check_times(copies)
        self._check_removed(present)

    def check_lacking(self, datas: Sequence[LogSegmentData]) -> None:
        """Checks only what the segments lack of the archive, which may lack some of their offsets, too. Raises as a call does."""
        self._check_removed(self._refuse_uncleaned([_offsets(read_chunks(d.read, d.path, 0, d.size)) for d in datas]))

    def _refuse_uncleaned(self, local: Sequence[Any]) -> Any:
        """The offsets of the local records. Raises Changed if they lack one that the cleaner has not come to."""
        uncleaned = self._uncleaned()
        present = np.concatenate([*local, uncleaned[:0]])
        lost = uncleaned[~np.isin(uncleaned, present)]
        if len(lost):
            raise Changed(
                f"the archived record of offset {lost[0]} is not in the log, and its cleaner has only come to {self.up_to} by "
                f"{CLEANER_OFFSET_CHECKPOINT}: it may be at work; offload again"
            )
        return present

    def _check_removed(self, present: Any) -> None:
        within = max(self.group.start, self.manifest.log_start_offset), min(self.group.end, self.up_to)
        RemovedRecords(self.log, self._archive, self.group.entries, within, present).check()

    def _archived(self) -> Iterable[Chunk]:
        for chunk in self._archive.chunks(max(self.group.start, self.manifest.log_start_offset), self.group.end):
            chunk.check()
            yield chunk

    def _uncleaned(self) -> Any:
        """The archived offsets that no round of cleaning has come to; it may take aborted records and markers there, too."""
        within = max(self.group.start, self.manifest.log_start_offset, self.up_to), self.group.end
        found = committed_records(self._archive, self.group.entries, within, _OFFSETS)
        return np.concatenate([np.empty(0, np.int64), *(records.column("offset").to_numpy() for records in found)])

    @property
    def _archive(self) -> ArchivedLog:
        return ArchivedLog(self.store, self.manifest, reading=self.reading)

    def _check_times(self, copies: Sequence[SegmentCopy]) -> None:
        latest = max(e.max_timestamp_ms for e in self.group.entries)
        for copy in copies:
            if int(copy.max_timestamps.max()) > latest:
                raise Corrupt(
                    f"it has a later record than the archived segments, whose latest is of {latest}; {_REMEDY}",
                    file=copy.data.path,
                )


def reading_with(transforms: Transforms) -> ReadContext:
    """How who archives with these transforms reads what is archived: with the keys that it encrypts with."""
    keys = transforms.encryption.keys if transforms.encryption is not None else None
    return ReadContext(partial(DecodedBytes, keys=keys))


def check_overlap(
    log: LogReader,
    manifest: Manifest,
    store: ObjectStore,
    reading: ReadContext,
    copies: Sequence[SegmentCopy],
    datas: Sequence[LogSegmentData],
) -> None:
    """Checks a segment of which the archive has some offsets, and which is copied for the others.

    Readers get the offsets of both from the segment that begins first, so what a cleaner has taken from it must be proved, too. A
    segment with a record for each offset lacks none, and one that no cleaner has come to is archived as it is: nothing is read
    for these. Raises Corrupt, Changed, and as the archive is read.
    """
    (copy,), (data,) = copies, datas
    up_to, end = cleaned_up_to(log), min(data.end_offset, manifest.end_offset)
    if up_to <= data.base_offset or end <= data.base_offset or copy.record_count >= data.end_offset - data.base_offset:
        return
    entries = tuple(Entries.of(store, manifest).overlapping(data.base_offset, end))
    group = Cleaned((LocalSegment(data.base_offset, end, size=data.size),), entries)
    CleanedCheck(log, group, manifest, up_to, store, reading).check_lacking(datas)


def check_emptied(segments: Iterable[Segment]) -> None:
    """Raises Changed unless the segments are there and have no batch, Corrupt for an index with entries of one that was lost."""
    for segment in segments:
        try:
            size = segment.size()
        except NotFound as e:
            raise Changed(f"{e}; its broker has deleted or renamed it in the meantime") from e
        if size:
            raise Changed(f"{segment.path(LOG)}: its broker has rewritten it in the meantime; offload again")
        for suffix in (OFFSET_INDEX, TIME_INDEX):
            if segment.read(suffix):
                problem = (
                    f"it has no batch, and {segment.path(suffix)} has entries: it was not emptied by a log cleaner; {_REMEDY}"
                )
                raise Corrupt(problem, file=segment.path(LOG))


def _check_indexes(copy: SegmentCopy, data: LogSegmentData) -> None:
    """That nothing had to be rebuilt, and that the time index ends with the latest time of the file."""
    if (copy.data.offset_index, copy.data.time_index) != (data.offset_index, data.time_index) or data.time_index is None:
        why = "; ".join(copy.data.notes)
        raise Corrupt(f"its indexes are not those of this file ({why}); {_REMEDY}", file=data.path)
    times = read_time_index(data.time_index.body, data.base_offset).timestamps
    latest = int(copy.max_timestamps.max())
    if latest != (int(times[-1]) if len(times) else NO_TIMESTAMP):
        raise Corrupt(f"its latest record is of {latest}, and its time index ends with another time; {_REMEDY}", file=data.path)


def _offsets(chunks: Iterable[Chunk]) -> Any:
    """The offsets of all records, control records too."""
    found = [records.column("offset").to_numpy() for chunk in chunks for _, records in chunk.records(_OFFSETS)]
    return np.concatenate(found) if found else np.empty(0, np.int64)
