"""Whether a local log has other records than the archive at offsets that both have, by what costs little to know.

    archive   |--old--|--old--|--old--|                  archived before the directory was restored from an older copy
    log       |--old--|old new|--new--|--new--|···       its offsets go on from where that copy ended

Leader epochs do not tell: a log that nobody else replicates has one epoch for ever. By its offsets the log would seem to be
archived, and its next segments would follow the other records. So before each copy this is compared:

size        of segments that begin where an archived one does, in an archive that this directory alone has written
timestamps  of the last segment below the archive's end: none may be later than those of the archived segment with its offsets

What differs is proved by reading the local segment, and only then. A cleaner changes sizes and takes records away, so an archived
segment that lacks records is not compared, nor are sizes in a log that was cleaned. What is equal in both, other records may
have, too: local retention compares every byte before it deletes.
"""

from collections.abc import Iterable

import numpy as np

from local_log.disk import parent_of
from local_log.errors import Conflict, Corrupt
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment
from remote.manifest.divergence import OTHER_RECORDS_REMEDY
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import SegmentEntry
from tiering.offload.emptied import was_cleaned
from tiering.offload.local_segment import LocalSegment


def refuse_other_records(log: LogReader, segments: Iterable[LocalSegment], manifest: Manifest) -> None:
    """Raises Conflict if the log has other records than the archive. `segments` are the log's, with their sizes.

    Asks no store: of the entries it knows those that stand in the manifest itself. Raises NotFound, Unreadable.
    """
    whole = [e for e in manifest.entries if not e.is_compacted]
    found = _by_time(log, whole, manifest.end_offset) or _by_size(log, segments, whole, manifest)
    if found is not None:
        segment, entry = found
        raise Conflict(
            f"{log.folder}: the segment from {segment.base_offset} has other records than the archive at the offsets of its "
            f"segment [{entry.base_offset}, {entry.end_offset}), so that nothing of {log.partition} is archived; "
            f"{OTHER_RECORDS_REMEDY}"
        )


def _by_time(log: LogReader, entries: Iterable[SegmentEntry], archive_end: int) -> tuple[Segment, SegmentEntry] | None:
    below = [s for s in log.segments if s.next_base_offset is not None and s.base_offset < archive_end]
    if not below:
        return None
    segment, end = below[-1], below[-1].next_base_offset or archive_end
    try:
        times = segment.time_index()
        for entry in (e for e in entries if e.base_offset < end and e.end_offset > segment.base_offset):
            inside = (times.offsets >= entry.base_offset) & (times.offsets < entry.end_offset)
            later = times.offsets[inside & (times.timestamps > entry.max_timestamp_ms)]
            if len(later) and _has_later(segment, int(later[0]), entry):
                return segment, entry
    except Corrupt:
        return None  # a damaged file is for who reads it to tell
    return None


def _has_later(segment: Segment, offset: int, entry: SegmentEntry) -> bool:
    """Whether the batch with this offset lies in the entry's offsets and is later than all of it; an index alone may be wrong."""
    for chunk in segment.chunks(offset):
        of_entry = (chunk.batches.base_offset >= entry.base_offset) & (chunk.batches.last_offset < entry.end_offset)
        batch = chunk.where(of_entry & (chunk.batches.base_offset <= offset) & (chunk.batches.last_offset >= offset))
        if len(batch.batches):
            batch.check()
            return bool(batch.batches.max_timestamp.max() > entry.max_timestamp_ms)
        if chunk.batches.next_offset > offset:
            break
    return False


def _by_size(
    log: LogReader, segments: Iterable[LocalSegment], entries: Iterable[SegmentEntry], manifest: Manifest
) -> tuple[Segment, SegmentEntry] | None:
    of = {e.base_offset: e for e in entries}
    differ = {s.base_offset for s in segments if s.base_offset in of and _is_of_other_size(s, of[s.base_offset])}
    if not differ or was_cleaned(log) or not _wrote_all(log, manifest):
        return None
    suspects = (s for s in reversed(log.segments) if s.base_offset in differ)
    return next(((s, of[s.base_offset]) for s in suspects if _is_whole(s)), None)


def _is_of_other_size(segment: LocalSegment, entry: SegmentEntry) -> bool:
    """Whether a segment with the same first offset cannot have the same batches: who has more offsets has more bytes."""
    if segment.end_offset is None or not segment.size:
        return False
    longer = np.sign(segment.end_offset - entry.end_offset)
    return bool(np.sign(segment.size - entry.log_size) != longer)


def _wrote_all(log: LogReader, manifest: Manifest) -> bool:
    """Whether no other directory has archived segments, which may be those of a replica that was cleaned already."""
    try:
        return manifest.local_log_start_offsets.keys() == {LogDir(log.disk, parent_of(log.folder)).id()}
    except Corrupt:
        return False


def _is_whole(segment: Segment) -> bool:
    """Whether a record is there for each offset, in batches that no cleaner has rewritten: it is neither damaged nor cleaned."""
    count = 0
    try:
        for chunk in segment.chunks():
            chunk.check()
            if not chunk.batches.are_messages and (chunk.batches.delete_horizon_ms >= 0).any():
                return False
            count += int(chunk.batches.count.sum())
    except Corrupt:
        return False
    return segment.next_base_offset is not None and count == segment.next_base_offset - segment.base_offset
