"""Recovers one segment: checks every batch, truncates the file at the first damaged one, rebuilds indexes and producers.

Source: Kafka's LogSegment.recover.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from local_log.engine.epochs import LeaderEpochs
from local_log.engine.index_file import OffsetOverflow
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.producers.replay import of_producers, read_marker, replay_each
from local_log.engine.scan import WINDOW_BYTES, Scanned
from local_log.engine.segment import Segment
from local_log.errors import Corrupt
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.primitives import INT32_MAX

_MAGIC_2 = 2


@dataclass(slots=True)
class _Progress:
    valid_bytes: int = 0
    last_indexed: int = 0


def recover(
    segment: Segment, producers: ProducerStateManager, epochs: LeaderEpochs, before_cut: Callable[[], None] = lambda: None
) -> int:
    """Rebuilds the segment's indexes, updates producers and epochs; returns the number of bytes truncated from the log.

    `before_cut` is called before a truncation, since the next recovery cannot distinguish a truncated segment from a valid one.
    Raises InvalidOffset and OffsetOverflow for valid batches whose offsets the segment cannot contain.
    """
    segment.begin_recovery()
    done, end = _Progress(), segment.base_offset
    try:
        for scanned in segment.scan(0, window=WINDOW_BYTES):
            sound = min(scanned.first_invalid(), _first_that_goes_back(scanned, end))
            if sound:
                end = int(scanned.batches.last_offset[sound - 1]) + 1
            _process(segment, producers, epochs, scanned.head(sound), done)
            if sound < len(scanned.batches):
                break
    except Corrupt:
        pass  # the file is truncated where the damage was found
    if done.valid_bytes < segment.size:
        before_cut()
    truncated = segment.cut(done.valid_bytes)
    segment.offset_index.trim()
    segment.time_index.maybe_append(*segment.max_timestamp, uses_last_slot=True)
    segment.time_index.trim()
    return truncated


def _first_that_goes_back(scanned: Scanned, end: int) -> int:
    """The first batch with an offset below the end of those before it, which is `end` at first; their number if none goes back.

    No checksum covers a batch's base offset: one whose first block was lost has zeros there, and is valid but for that. Kafka
    empties the whole segment because of it, also of what was flushed before.
    """
    batches = scanned.batches
    ends = np.maximum.accumulate(np.concatenate([np.array([end], np.int64), batches.last_offset[:-1].astype(np.int64) + 1]))
    back = (batches.base_offset.astype(np.int64) < ends).nonzero()[0]
    return int(back[0]) if len(back) else len(batches)


def _process(segment: Segment, producers: ProducerStateManager, epochs: LeaderEpochs, scanned: Scanned, done: _Progress) -> None:
    """Processes valid batches. Raises Corrupt for an invalid marker; its batch is the last one that is processed."""
    broken_marker = _first_broken_marker(scanned)
    if broken_marker is not None:
        scanned = scanned.head(broken_marker + 1)
    last_offsets = scanned.batches.last_offset
    relative = last_offsets - segment.base_offset
    beyond = ((relative < 0) | (relative > INT32_MAX)).nonzero()[0]
    taken = scanned.head(int(beyond[0])) if len(beyond) else scanned
    if len(taken.batches):
        done.last_indexed = index_batches(segment, taken, done.last_indexed)
        done.valid_bytes = taken.position + int(taken.batches.end[-1])
        _assign_epochs(epochs, taken)
        replayed = taken if broken_marker is None or len(beyond) else taken.head(broken_marker)
        for completed, last_stable in replay_each(producers, replayed):
            if completed.is_aborted:
                txn = AbortedTxn(completed.first_offset, completed.last_offset, completed.producer_id, last_stable)
                segment.txn_index.append(txn)
        if len(replayed.batches):
            _move_map_end(producers, replayed)
    if len(beyond):
        raise OffsetOverflow(segment.log_file, segment.base_offset, int(last_offsets[beyond[0]]))
    if broken_marker is not None:
        read_marker(scanned, broken_marker)


def _first_broken_marker(scanned: Scanned) -> int | None:
    rows = of_producers(scanned.batches)
    for row in rows[scanned.batches.is_control[rows]].tolist():
        try:
            read_marker(scanned, row)
        except Corrupt:
            return int(row)
    return None


def _move_map_end(producers: ProducerStateManager, scanned: Scanned) -> None:
    rows = (scanned.batches.header["magic"] >= _MAGIC_2).nonzero()[0]
    if len(rows):
        producers.map_end_offset = int(scanned.batches.last_offset[rows[-1]]) + 1


def _assign_epochs(epochs: LeaderEpochs, scanned: Scanned) -> None:
    header = scanned.batches.header
    of = np.where(header["magic"] >= _MAGIC_2, header["partition_leader_epoch"], -1)
    latest = -1 if epochs.latest_epoch is None else epochs.latest_epoch
    seen = np.maximum.accumulate(np.concatenate([np.array([latest], of.dtype), of]))
    for row in (of > seen[:-1]).nonzero()[0].tolist():
        epochs.assign(int(of[row]), int(header["base_offset"][row]))


def index_batches(segment: Segment, scanned: Scanned, last_indexed: int) -> int:
    """Adds the index entries of consecutive batches of magic 2 or messages; there must be one. Updates the greatest timestamp.

    `last_indexed` is the position of the last batch with an entry, 0 before the first one; returns that of the new last one.
    """
    from local_log.formats.kernels.scan import index_rows

    batches = scanned.batches
    rows = np.empty(len(batches), np.uint64)
    n = index_rows(batches.positions, scanned.position, last_indexed, segment.interval, rows)
    rows = rows[:n].astype(np.int64)
    known, known_offset = segment.max_timestamp
    timestamps = np.maximum.accumulate(np.maximum(batches.max_timestamp, known))
    is_greater = batches.max_timestamp > np.concatenate([np.array([known]), timestamps[:-1]])
    row_of_greatest = np.maximum.accumulate(np.where(is_greater, np.arange(len(batches)), -1))
    offsets = np.where(row_of_greatest >= 0, batches.last_offset[np.maximum(row_of_greatest, 0)], known_offset)
    if n:
        starts = scanned.starts[rows].astype(np.int64)
        _add_entries(segment, batches.last_offset[rows], starts, timestamps[rows], offsets[rows])
        last_indexed = int(starts[-1])
    if row_of_greatest[-1] >= 0:
        segment.note_timestamp(int(timestamps[-1]), int(offsets[-1]))
    return last_indexed


def _add_entries(
    segment: Segment, offsets: np.ndarray, positions: np.ndarray, timestamps: np.ndarray, timestamp_offsets: np.ndarray
) -> None:
    """Adds as many entries as there is room for, since an index may lack some.

    An append adds none for the first batch after a start, so a segment can have more batches than its indexes have room for.
    Kafka does not open its log then.
    """
    index, times = segment.offset_index, segment.time_index
    room = min(index.entries_max - len(index), times.entries_max - 1 - len(times))
    grows = (not len(index) or offsets[0] > index.last_offset) and (offsets[1:] > offsets[:-1]).all()
    known, known_offset = times.last_entry
    grows = grows and timestamp_offsets[0] >= known_offset and (timestamp_offsets[1:] >= timestamp_offsets[:-1]).all()
    if grows and len(offsets) <= room:
        index.extend(offsets, positions)
        later = timestamps > np.concatenate([np.array([known]), timestamps[:-1]])
        if later.any():
            times.extend(timestamps[later], timestamp_offsets[later])
        return
    for offset, position, timestamp, of in zip(offsets, positions, timestamps, timestamp_offsets, strict=True):
        if index.is_full or times.is_full:
            return
        index.append(int(offset), int(position))
        times.maybe_append(int(timestamp), int(of))
