"""What is proved of a segment before it is copied: every batch, and that the files beside the log speak of this very log.

Kafka trusts its own files, since it can rebuild them. A reader of the archive has nothing else, so an index that would lead it
astray is found out here, by the file's name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from local_log.errors import Corrupt
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.checksum import crc32c
from local_log.formats.chunks import CHUNK_BYTES, Chunk, read_chunks
from local_log.formats.filenames import LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX
from local_log.formats.indexes.offset import OffsetIndex, read_offset_index
from local_log.formats.indexes.time import read_time_index
from local_log.formats.indexes.transaction import AbortedTxn, read_txn_index
from local_log.formats.primitives import Buffer
from local_log.formats.producer_snapshot import read_producer_snapshot
from local_log.formats.record import NO_EPOCH, NO_TIMESTAMP, Codec
from local_log.formats.transactions import Transactions, control_types
from remote.segment.times import least_timestamps

T = TypeVar("T")

_NO_TRANSACTIONS: Mapping[int, int] = {}


def _nothing_later(_open_transactions: Mapping[int, int]) -> tuple[AbortedTxn, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A file that lies beside a segment's log: its path, for messages, and its bytes."""

    path: str
    body: bytes


@dataclass(frozen=True, slots=True)
class LogSegmentData:
    """A segment to copy (Kafka's word). `read(start, end)` gives bytes of the log file at `path`, which has `size` of them.

    `end_offset` is the next segment's base. `lineage` are the leader epochs up to there. `open_transactions` are those that are
    open where the segment starts: their first offsets by their producers' ids. `aborted_later` gives, of those that are open
    where it ends, the aborted ones, whose marker lies in a later segment. Files that the segment lacks are None; `notes` say
    which were made anew before, and why.
    """

    path: str
    base_offset: int
    end_offset: int
    size: int
    read: Callable[[int, int], Buffer]
    offset_index: SegmentFile | None
    time_index: SegmentFile | None
    txn_index: SegmentFile | None
    producer_snapshot: SegmentFile | None
    lineage: tuple[EpochEntry, ...]
    aborted_later: Callable[[Mapping[int, int]], tuple[AbortedTxn, ...]] = _nothing_later
    open_transactions: Mapping[int, int] = field(default_factory=lambda: _NO_TRANSACTIONS)
    notes: tuple[str, ...] = ()

    def beside(self, suffix: str) -> str:
        """The path of the segment's file with that suffix, whether it is there or not."""
        return self.path.removesuffix(LOG) + suffix


@dataclass(slots=True)
class SegmentCopy:
    """A segment whose log file was read and checked: `data` are its files, the other fields are the results.

    The arrays have a value for each batch. `open_transactions` are those that are open at the segment's end.
    """

    data: LogSegmentData
    crc32c: int = 0
    size: int = 0
    record_count: int = 0
    compressed_bytes: int = 0
    """Of the batches that have a codec."""
    positions: Any = field(default_factory=lambda: np.empty(0, np.int64))
    last_offsets: Any = field(default_factory=lambda: np.empty(0, np.int64))
    max_timestamps: Any = field(default_factory=lambda: np.empty(0, np.int64))
    min_timestamps: Any = field(default_factory=lambda: np.empty(0, np.int64))
    leader_epochs: list[EpochEntry] = field(default_factory=list)
    aborted: list[AbortedTxn] = field(default_factory=list)
    """The transactions that abort markers end here, as a transaction index has them."""
    abort_markers: set[int] = field(default_factory=set)
    """Offsets of the abort markers that end transactions with records."""
    open_transactions: Mapping[int, int] = field(default_factory=lambda: _NO_TRANSACTIONS)


def check_beside(copy: SegmentCopy) -> None:
    """Checks the files beside a log file that `check_log` has read. Raises Corrupt, placed in the file at fault."""
    check_indexes(copy)
    check_txn_index(copy)
    check_snapshot(copy)


def check_snapshot(copy: SegmentCopy) -> None:
    """Checks the producer snapshot, if there is one. Raises Corrupt."""
    if copy.data.producer_snapshot is not None:
        _parsed(copy.data.producer_snapshot, read_producer_snapshot)


def check_indexes(copy: SegmentCopy) -> None:
    """Checks the offset index and the time index. Raises Corrupt, placed in the one at fault."""
    data = copy.data
    offset_index = _check_offset_index(copy, _needed(data, data.offset_index, OFFSET_INDEX))
    _check_time_index(copy, offset_index, _needed(data, data.time_index, TIME_INDEX))


def _needed(segment: LogSegmentData, file: SegmentFile | None, suffix: str) -> SegmentFile:
    if file is None:
        raise Corrupt("the index is missing", file=segment.beside(suffix))
    return file


def _not_seen(_chunk: Chunk, _marker_types: Mapping[int, int]) -> None:
    pass


def check_log(segment: LogSegmentData, seen: Callable[[Chunk, Mapping[int, int]], None] = _not_seen) -> SegmentCopy:
    """Reads the log file once and checks every batch. Raises Corrupt, placed in it.

    `seen` is given each chunk once its batches are checked, with the types of its markers by offset.
    """
    checked = SegmentCopy(segment)
    transactions = Transactions(segment.open_transactions)
    before = segment.base_offset - 1
    columns: list[tuple[Any, Any, Any, Any]] = []
    for chunk in read_chunks(segment.read, segment.path, 0, segment.size, first_bytes=CHUNK_BYTES):
        chunk.check()
        _check_order(chunk, before, segment)
        batches = chunk.batches
        before = batches.next_offset - 1
        checked.size = chunk.end
        checked.crc32c = crc32c(memoryview(chunk.buffer)[: chunk.end - chunk.position], checked.crc32c)
        checked.record_count += int(batches.count.sum())
        checked.compressed_bytes += int(batches.size[batches.codec != Codec.none].sum())
        positions = batches.positions.astype(np.int64) + chunk.position
        columns.append((positions, batches.last_offset, batches.max_timestamp, least_timestamps(chunk)))
        _check_epochs(chunk, checked)
        types = control_types(chunk.where(chunk.batches.is_transactional & chunk.batches.is_control))
        seen(chunk, types)
        for ended in transactions.follow(chunk, types):
            if ended.is_aborted:
                checked.aborted.append(ended.txn)
                if ended.has_records:  # without records, as after compaction, readers need no marker
                    checked.abort_markers.add(ended.txn.last_offset)
    _check_end(checked, segment)
    joined = map(np.concatenate, zip(*columns, strict=True))
    checked.positions, checked.last_offsets, checked.max_timestamps, checked.min_timestamps = joined
    checked.open_transactions = transactions.open
    return checked


def _check_end(checked: SegmentCopy, segment: LogSegmentData) -> None:
    if checked.size != segment.size:
        raise Corrupt(
            f"the last {segment.size - checked.size} bytes of an inactive segment are no whole batch; "
            "restore the file from a replica",
            file=segment.path,
            position=checked.size,
        )
    if not segment.size:
        raise Corrupt(
            "an inactive segment without a batch, which no log cleaner has emptied; restore its files from a replica",
            file=segment.path,
        )


def _check_order(chunk: Chunk, before: int, segment: LogSegmentData) -> None:
    first, last = chunk.batches.base_offset, chunk.batches.last_offset
    wrong = np.flatnonzero((first <= np.concatenate([[before], last[:-1]])) | (last < first) | (last >= segment.end_offset))
    if len(wrong):
        row = int(wrong[0])
        raise Corrupt(
            f"batch of offsets {first[row]} to {last[row]} is out of order in a segment of "
            f"[{segment.base_offset}, {segment.end_offset}); restore the file from a replica",
            file=chunk.file,
            position=chunk.position + int(chunk.batches.positions[row]),
        )


def _check_epochs(chunk: Chunk, checked: SegmentCopy) -> None:
    """No CRC covers a batch's leader epoch; what it must be, the log's lineage says. Messages of magic 0 and 1 have none."""
    batches, known = chunk.batches, checked.leader_epochs
    if batches.are_messages:
        return
    epochs, offsets = batches.header["partition_leader_epoch"], batches.base_offset
    before = np.concatenate([[known[-1].epoch if known else NO_EPOCH], epochs[:-1]])
    lineage = np.array([NO_EPOCH, *(e.epoch for e in checked.data.lineage)])
    expected = lineage[np.searchsorted([e.start_offset for e in checked.data.lineage], offsets, side="right")]
    wrong = np.flatnonzero((epochs < before) | ((expected != NO_EPOCH) & (epochs != expected)))
    if len(wrong):
        row = int(wrong[0])
        raise Corrupt(
            f"batch of offset {offsets[row]} has leader epoch {epochs[row]} after {before[row]}, and the log's lineage says "
            f"{expected[row]} (-1: nothing); restore the file from a replica",
            file=chunk.file,
            position=chunk.position + int(batches.positions[row]),
        )
    known.extend(EpochEntry(int(epochs[row]), int(offsets[row])) for row in np.flatnonzero(epochs != before))


def _check_offset_index(checked: SegmentCopy, file: SegmentFile) -> OffsetIndex:
    """An entry is the last offset of a batch and the position where the append that wrote it starts."""
    index = _parsed(file, lambda body: read_offset_index(body, checked.data.base_offset))
    starts, ends = np.searchsorted(checked.positions, index.positions), np.searchsorted(checked.last_offsets, index.offsets)
    known = np.isin(index.positions, checked.positions) & np.isin(index.offsets, checked.last_offsets)
    valid = known & (starts <= ends) & (starts > np.concatenate([[-1], ends[:-1]]))
    _refuse_unless(valid, file, 8, "batch and position are not those of a batch")
    return index


def _check_time_index(checked: SegmentCopy, offset_index: OffsetIndex, file: SegmentFile) -> None:
    """An entry (T, O) says that no record before O is later than T.

    A roll writes the latest time of all as the last entry; every other entry was written together with one of the offset
    index. So both indexes prove to be complete. Without its end, each read by time or offset would scan the rest of the log.
    """
    segment = checked.data
    index = _parsed(file, lambda body: read_time_index(body, segment.base_offset))
    latest = np.concatenate([[-1], np.maximum.accumulate(checked.max_timestamps)])
    before = np.searchsorted(checked.last_offsets, index.offsets, side="left")
    valid = (index.timestamps >= latest[before]) & (index.offsets < segment.end_offset)
    _refuse_unless(valid, file, 12, "a record before its offset is later than its time, or the offset is outside")
    if latest[-1] > (index.timestamps[-1] if len(index.timestamps) else NO_TIMESTAMP):
        raise _cut_short(file.path, len(file.body), f"its last entry is not the segment's latest time {latest[-1]}")
    if len(index.offsets) > 1 and index.offsets[-2] > (offset_index.offsets[-1] if len(offset_index.offsets) else -1):
        size = len(segment.offset_index.body) if segment.offset_index else 0
        raise _cut_short(
            segment.beside(OFFSET_INDEX), size, f"it ends before offset {index.offsets[-2]}, which the time index has"
        )


def _cut_short(file: str, size: int, why: str) -> Corrupt:
    return Corrupt(f"the index is cut short: {why}", file=file, position=size)


def check_txn_index(copy: SegmentCopy) -> None:
    """Without an entry for each abort, read_committed would give out aborted records for ever. Raises Corrupt."""
    segment = copy.data
    aborted = _parsed(segment.txn_index, read_txn_index) if segment.txn_index else ()
    marked = {t.last_offset for t in aborted}
    missing = copy.abort_markers - marked
    outside = {o for o in marked if not segment.base_offset <= o < segment.end_offset}
    if missing or outside:
        problem = f"lacks the abort at offset {min(missing)}" if missing else f"has an abort at {min(outside)}, outside"
        raise Corrupt(f"the transaction index {problem} of its segment", file=segment.beside(TXN_INDEX))


def _refuse_unless(valid: Any, file: SegmentFile, entry_bytes: int, problem: str) -> None:
    if not valid.all():
        at = int(np.argmin(valid))
        raise Corrupt(f"index entry {at} does not fit the log: {problem}", file=file.path, position=at * entry_bytes)


def _parsed(file: SegmentFile, read: Callable[[bytes], T]) -> T:
    try:
        return read(file.body)
    except Corrupt as e:
        raise e.at(file.path) from e
