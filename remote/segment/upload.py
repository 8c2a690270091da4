"""Copies one segment into the archive: every batch checked on the way, every object verified before anyone may name it.

An uploader never deletes. What a copy that fails leaves behind has a segment id of its own and no manifest names it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from local_log.errors import Corrupt
from local_log.formats.checkpoints import write_epochs
from local_log.formats.checksum import crc32c
from local_log.formats.indexes.transaction import write_txn_index
from local_log.formats.record import NO_EPOCH
from remote import keys as object_keys
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest.model import (
    ABORTED_LATER,
    IDENTITY,
    LEADER_EPOCH_CHECKPOINT,
    LEAST_TIME_INDEX,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    AuxRange,
    SegmentEntry,
)
from remote.segment.check import CheckedSegment, LogSegmentData, check_log
from remote.segment.repair import SoundFiles, sound_files
from remote.segment.times import UNKNOWN, write_least_time_index
from remote.store.api import Body, ObjectReader, ObjectStore
from remote.transforms.encoder import Transforms, encode

PART_BYTES = 8 << 20
NO_TRANSFORMS = Transforms()


def copy_segment(
    store: ObjectStore,
    path: PartitionPath,
    segment: LogSegmentData,
    clock: Clock,
    ids: Ids,
    transforms: Transforms = NO_TRANSFORMS,
    *,
    told: Callable[[str], None] = lambda mended: None,
) -> SegmentEntry:
    """Uploads data, then aux, verifies both and gives the entry that names them. Nothing names them yet.

    Of what `transforms` wants, only a segment that is not compressed already is compressed. Files beside the log that are missing
    or do not fit it are made anew or left out, and `told` which and why. Raises Corrupt, placed in the segment's log file, before
    anything is written, or under the object's key when the file changed meanwhile; Unavailable, Unknown; NoKey, before anything
    is written.
    """
    checked = check_log(segment)
    files = sound_files(segment, checked)
    for mended in files.mended:
        told(mended)
    aux, ranges = _aux(segment, files, checked)
    segment_id = ids.new_id()
    epoch = checked.leader_epochs[0].epoch if checked.leader_epochs else NO_EPOCH
    log_name = object_keys.segment_name(segment.base_offset, epoch, segment_id, object_keys.LOG)
    aux_name = object_keys.segment_name(segment.base_offset, epoch, segment_id, object_keys.AUX)
    entry = SegmentEntry(
        segment_id=segment_id,
        base_offset=segment.base_offset,
        end_offset=segment.end_offset,
        last_offset=int(checked.last_offsets[-1]),
        max_timestamp_ms=int(checked.max_timestamps.max()),
        record_count=checked.record_count,
        leader_epochs=tuple(checked.leader_epochs),
        log_name=log_name,
        log_size=segment.size,
        log_crc32c=checked.crc32c,
        aux_name=aux_name,
        aux_size=len(aux),
        aux_crc32c=crc32c(aux),
        aux_ranges=ranges,
        txn_index_empty=TRANSACTION_INDEX not in ranges and ABORTED_LATER not in ranges,
        encoding=IDENTITY,
        copied_at_ms=0,
        min_timestamp_ms=_least(checked),
    )
    if transforms.compress and checked.compressed_bytes * 2 > checked.size:
        transforms = replace(transforms, compress=False)
    parts: tuple[Iterable[Body], Iterable[Body]] = _Parts(segment), [aux]
    if transforms.compress or transforms.encryption:
        encoded = encode(path, entry, segment.read, aux, transforms)
        entry, parts = encoded.entry, (encoded.log.in_parts(PART_BYTES), encoded.aux.in_parts(PART_BYTES))
    objects = entry.stored_log, entry.stored_aux
    for stored, body in zip(objects, parts, strict=True):
        store.upload(path.segment(stored.name), body, size=stored.size, crc32c=stored.crc32c)
    for stored in objects:
        verify(store, path.segment(stored.name), stored.size, stored.crc32c)
    return replace(entry, copied_at_ms=clock.now_ms())


def verify(store: ObjectReader, key: str, size: int, expected_crc32c: int) -> None:
    """Raises Corrupt unless the object has this size and CRC-32C, read back where the store does not keep the latter."""
    meta = store.head(key)
    if meta.size != size:
        raise Corrupt(f"the store holds {meta.size} bytes of {size}; offload again", file=key)
    found = meta.crc32c
    if found is None:
        found = 0
        for start in range(0, size, PART_BYTES):
            found = crc32c(store.get_range(key, start, min(size, start + PART_BYTES)), found)
    if found != expected_crc32c:
        raise Corrupt(f"the store holds CRC-32C {found:08x} where {expected_crc32c:08x} was sent; offload again", file=key)


def _least(checked: CheckedSegment) -> int | None:
    least = int(checked.min_timestamps.min())
    return None if least == UNKNOWN else least


def _aux(segment: LogSegmentData, files: SoundFiles, checked: CheckedSegment) -> tuple[bytes, dict[str, AuxRange]]:
    parts = {
        OFFSET_INDEX: files.offset_index,
        TIME_INDEX: files.time_index,
        TRANSACTION_INDEX: files.txn_index,
        ABORTED_LATER: write_txn_index(segment.aborted_later),
        LEAST_TIME_INDEX: write_least_time_index(
            segment.base_offset, checked.positions, checked.last_offsets, checked.min_timestamps
        ),
        PRODUCER_SNAPSHOT: files.producer_snapshot,
        LEADER_EPOCH_CHECKPOINT: write_epochs(segment.lineage),
    }
    present = {name: body for name, body in parts.items() if body}
    ends = np.cumsum([0, *(len(body) for body in present.values())]).tolist()
    ranges = {
        name: AuxRange(start, end, crc32c(body))
        for (name, body), (start, end) in zip(present.items(), pairwise(ends), strict=True)
    }
    return b"".join(present.values()), ranges


@dataclass(frozen=True, slots=True)
class _Parts:
    """The file's bytes again, as often as the upload is made: the store refuses them if they are no longer those checked."""

    segment: LogSegmentData

    def __iter__(self) -> Iterator[Body]:
        for start in range(0, self.segment.size, PART_BYTES):
            yield self.segment.read(start, min(self.segment.size, start + PART_BYTES))
