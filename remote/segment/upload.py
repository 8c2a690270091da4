"""Copies one segment into the archive: every batch checked on the way, every object verified before anyone may name it.

An uploader never deletes. What a copy that fails leaves behind has a segment id of its own and no manifest names it.
"""

from collections.abc import Iterable, Iterator
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
from remote.manifest.segment_entry import (
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
from remote.segment.check import LogSegmentData, SegmentCopy, SegmentFile
from remote.segment.times import UNKNOWN, write_least_time_index
from remote.store.api import Body, ObjectReader, ObjectStore
from remote.transforms.encoder import Transforms, encode

PART_BYTES = 8 << 20
NO_TRANSFORMS = Transforms()


def copy_segment(
    store: ObjectStore, path: PartitionPath, copy: SegmentCopy, clock: Clock, ids: Ids, transforms: Transforms = NO_TRANSFORMS
) -> SegmentEntry:
    """Uploads data, then aux, verifies both and gives the entry that names them. Nothing names them yet.

    `copy` is what `checked_copy` gives. Of what `transforms` wants, only a segment that is not compressed already is compressed.
    Raises Corrupt under the object's key when the file has changed since; Unavailable, Unknown; NoKey, before a write.
    """
    aux, ranges = _aux(copy)
    entry = _entry(copy, ids.new_id(), aux, ranges)
    if transforms.compress and copy.compressed_bytes * 2 > copy.size:
        transforms = replace(transforms, compress=False)
    parts: tuple[Iterable[Body], Iterable[Body]] = _Parts(copy.data), [aux]
    if transforms.compress or transforms.encryption:
        encoded = encode(path, entry, copy.data.read, aux, transforms)
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


def _entry(copy: SegmentCopy, segment_id: str, aux: bytes, ranges: dict[str, AuxRange]) -> SegmentEntry:
    """The entry of a segment that is stored as it is, copied at no time yet."""
    data = copy.data
    epoch = copy.leader_epochs[0].epoch if copy.leader_epochs else NO_EPOCH
    return SegmentEntry(
        segment_id=segment_id,
        base_offset=data.base_offset,
        end_offset=data.end_offset,
        last_offset=int(copy.last_offsets[-1]),
        max_timestamp_ms=int(copy.max_timestamps.max()),
        record_count=copy.record_count,
        leader_epochs=tuple(copy.leader_epochs),
        log_name=object_keys.segment_name(data.base_offset, epoch, segment_id, object_keys.LOG),
        log_size=data.size,
        log_crc32c=copy.crc32c,
        aux_name=object_keys.segment_name(data.base_offset, epoch, segment_id, object_keys.AUX),
        aux_size=len(aux),
        aux_crc32c=crc32c(aux),
        aux_ranges=ranges,
        txn_index_empty=TRANSACTION_INDEX not in ranges and ABORTED_LATER not in ranges,
        encoding=IDENTITY,
        copied_at_ms=0,
        min_timestamp_ms=_least(copy),
    )


def _least(copy: SegmentCopy) -> int | None:
    least = int(copy.min_timestamps.min())
    return None if least == UNKNOWN else least


def _aux(copy: SegmentCopy) -> tuple[bytes, dict[str, AuxRange]]:
    data = copy.data
    parts = {
        OFFSET_INDEX: _body(data.offset_index),
        TIME_INDEX: _body(data.time_index),
        TRANSACTION_INDEX: _body(data.txn_index),
        ABORTED_LATER: write_txn_index(data.aborted_later(copy.open_transactions)),
        LEAST_TIME_INDEX: write_least_time_index(data.base_offset, copy.positions, copy.last_offsets, copy.min_timestamps),
        PRODUCER_SNAPSHOT: _body(data.producer_snapshot),
        LEADER_EPOCH_CHECKPOINT: write_epochs(data.lineage),
    }
    present = {name: body for name, body in parts.items() if body}
    ends = np.cumsum([0, *(len(body) for body in present.values())]).tolist()
    ranges = {
        name: AuxRange(start, end, crc32c(body))
        for (name, body), (start, end) in zip(present.items(), pairwise(ends), strict=True)
    }
    return b"".join(present.values()), ranges


def _body(file: SegmentFile | None) -> bytes:
    return b"" if file is None else file.body


@dataclass(frozen=True, slots=True)
class _Parts:
    """The file's bytes again, as often as the upload is made: the store refuses them if they are no longer those checked."""

    segment: LogSegmentData

    def __iter__(self) -> Iterator[Body]:
        for start in range(0, self.segment.size, PART_BYTES):
            yield self.segment.read(start, min(self.segment.size, start + PART_BYTES))
