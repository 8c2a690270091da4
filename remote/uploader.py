"""Copies one segment into the archive: every batch checked on the way, every object verified before anyone may name it.

An uploader never deletes. What a copy that fails leaves behind has a segment id of its own and no manifest names it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from local_log.errors import Corrupt
from local_log.formats.checkpoints import EpochEntry, write_epochs
from local_log.formats.checksum import crc32c
from local_log.formats.chunks import CHUNK_BYTES, Chunk, read_chunks
from local_log.formats.offset_index import read_offset_index
from local_log.formats.producer_snapshot import read_producer_snapshot
from local_log.formats.record import NO_EPOCH
from local_log.formats.time_index import read_time_index
from local_log.formats.txn_index import AbortedTxn, read_txn_index, write_txn_index
from remote import object_keys
from remote.clock import Clock, Ids
from remote.manifest.model import (
    ABORTED_LATER,
    IDENTITY,
    LEADER_EPOCH_CHECKPOINT,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    ByteRange,
    SegmentEntry,
)
from remote.object_keys import PartitionPath
from remote.object_store import ObjectReader, ObjectStore

PART_BYTES = 16 << 20

_REBUILD = "delete the file, let its broker rebuild it, then offload again"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A file that lies beside a segment's log: its path, for messages, and its bytes."""

    path: str
    body: bytes


@dataclass(frozen=True, slots=True)
class LogSegmentData:
    """A segment to copy (Kafka's word). `read(start, end)` gives bytes of the log file at `path`, which has `size` of them.

    `end_offset` is the next segment's base. `lineage` are the leader epochs up to there. `aborted_later` are the aborted
    transactions with records in this segment whose marker lies in a later one. Files that the segment lacks are None.
    """

    path: str
    base_offset: int
    end_offset: int
    size: int
    read: Callable[[int, int], bytes]
    offset_index: SegmentFile
    time_index: SegmentFile
    txn_index: SegmentFile | None
    producer_snapshot: SegmentFile | None
    lineage: tuple[EpochEntry, ...]
    aborted_later: tuple[AbortedTxn, ...]


@dataclass(frozen=True, slots=True)
class _Checked:
    """What reading the whole log file showed."""

    crc32c: int
    last_offset: int
    max_timestamp: int
    record_count: int
    leader_epochs: tuple[EpochEntry, ...]
    positions: NDArray[np.int64]


def copy_segment(store: ObjectStore, path: PartitionPath, segment: LogSegmentData, clock: Clock, ids: Ids) -> SegmentEntry:
    """Uploads data, then aux, verifies both and gives the entry that names them. Nothing names them yet.

    Raises Corrupt, placed in the segment's file, before anything is written, or under the object's key when the file changed
    meanwhile; Unavailable, Unknown.
    """
    checked = _check_log(segment)
    _check_indexes(segment, checked)
    aux, ranges = _aux(segment)
    segment_id = ids.new_id()
    epoch = checked.leader_epochs[0].epoch if checked.leader_epochs else NO_EPOCH
    log_name = object_keys.segment_name(segment.base_offset, epoch, segment_id, object_keys.LOG)
    aux_name = object_keys.segment_name(segment.base_offset, epoch, segment_id, object_keys.AUX)
    entry = SegmentEntry(
        segment_id=segment_id,
        base_offset=segment.base_offset,
        end_offset=segment.end_offset,
        last_offset=checked.last_offset,
        max_timestamp_ms=checked.max_timestamp,
        record_count=checked.record_count,
        leader_epochs=checked.leader_epochs,
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
    )
    store.upload(path.segment(log_name), _parts(segment), size=entry.log_size, crc32c=entry.log_crc32c)
    store.upload(path.segment(aux_name), [aux], size=entry.aux_size, crc32c=entry.aux_crc32c)
    verify(store, path.segment(log_name), entry.log_size, entry.log_crc32c)
    verify(store, path.segment(aux_name), entry.aux_size, entry.aux_crc32c)
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


def _check_log(segment: LogSegmentData) -> _Checked:
    whole_crc = records = end = 0
    last_offset, max_timestamp = segment.base_offset - 1, -1
    epochs: list[EpochEntry] = []
    positions: list[NDArray[np.int64]] = []
    for chunk in read_chunks(segment.read, segment.path, 0, segment.size, first_bytes=CHUNK_BYTES):
        chunk.check()
        _check_offsets(chunk, last_offset, segment)
        end = chunk.end
        whole_crc = crc32c(memoryview(chunk.buffer)[: end - chunk.position], whole_crc)
        batches = chunk.batches
        positions.append(batches.positions.astype(np.int64) + chunk.position)
        last_offset = batches.next_offset - 1
        max_timestamp = max(max_timestamp, int(batches.max_timestamp.max()))
        records += int(batches.count.sum())
        epoch_column = batches.header["partition_leader_epoch"]
        for row in np.flatnonzero(np.diff(epoch_column, prepend=epochs[-1].epoch if epochs else NO_EPOCH)):
            epochs.append(EpochEntry(int(epoch_column[row]), int(batches.base_offset[row])))
    if end != segment.size:
        raise Corrupt(
            f"the last {segment.size - end} bytes of an inactive segment are no whole batch; restore the file from a replica",
            file=segment.path,
            position=end,
        )
    if last_offset < segment.base_offset:
        raise Corrupt("an inactive segment without a batch; let its broker recover the log", file=segment.path)
    return _Checked(whole_crc, last_offset, max_timestamp, records, tuple(epochs), np.concatenate(positions))


def _check_offsets(chunk: Chunk, before: int, segment: LogSegmentData) -> None:
    first, last = chunk.batches.base_offset, chunk.batches.last_offset
    wrong = np.flatnonzero((first <= np.concatenate([[before], last[:-1]])) | (last < first) | (last >= segment.end_offset))
    if len(wrong):
        row = int(wrong[0])
        raise Corrupt(
            f"batch of offsets {first[row]} to {last[row]} is out of order in a segment of "
            f"[{segment.base_offset}, {segment.end_offset})",
            file=chunk.file,
            position=chunk.position + int(chunk.batches.positions[row]),
        )


def _check_indexes(segment: LogSegmentData, checked: _Checked) -> None:
    """Every file beside the log is read as its readers will: a broken one is never uploaded."""
    offsets = _parsed(segment.offset_index, lambda body: read_offset_index(body, segment.base_offset))
    if not np.isin(offsets.positions, checked.positions).all() or (offsets.offsets >= segment.end_offset).any():
        problem = f"the offset index points to where no batch of {segment.path} starts; {_REBUILD}"
        raise Corrupt(problem, file=segment.offset_index.path)
    times = _parsed(segment.time_index, lambda body: read_time_index(body, segment.base_offset))
    if len(times.offsets) and times.offsets[-1] >= segment.end_offset:
        raise Corrupt(f"the time index points past the end of its segment; {_REBUILD}", file=segment.time_index.path)
    if segment.txn_index is not None:
        _parsed(segment.txn_index, read_txn_index)
    if segment.producer_snapshot is not None:
        _parsed(segment.producer_snapshot, read_producer_snapshot)


def _parsed(file: SegmentFile, read: Callable[[bytes], T]) -> T:
    try:
        return read(file.body)
    except Corrupt as e:
        raise Corrupt(f"{e.problem}; {_REBUILD}", file=file.path, position=e.position) from e


def _aux(segment: LogSegmentData) -> tuple[bytes, dict[str, ByteRange]]:
    parts = {
        OFFSET_INDEX: segment.offset_index.body,
        TIME_INDEX: segment.time_index.body,
        TRANSACTION_INDEX: segment.txn_index.body if segment.txn_index else b"",
        ABORTED_LATER: write_txn_index(segment.aborted_later),
        PRODUCER_SNAPSHOT: segment.producer_snapshot.body if segment.producer_snapshot else b"",
        LEADER_EPOCH_CHECKPOINT: write_epochs(segment.lineage),
    }
    present = {name: body for name, body in parts.items() if body}
    ends = np.cumsum([0, *(len(body) for body in present.values())]).tolist()
    ranges = {name: ByteRange(start, end) for name, (start, end) in zip(present, pairwise(ends), strict=True)}
    return b"".join(present.values()), ranges


def _parts(segment: LogSegmentData) -> Iterator[bytes]:
    """The file's bytes a second time: the store refuses them if they are no longer those that were checked."""
    for start in range(0, segment.size, PART_BYTES):
        yield segment.read(start, min(segment.size, start + PART_BYTES))
