"""What goes into the archive beside a segment's log: its own files where they speak of this log, else what recovery would make.

A broker's recovery makes offset index and time index together, from the batches alone, and the transaction index from them and
from the transactions that are open where the segment starts. The bytes are the same here. (LogSegment.recover)
"""

from dataclasses import dataclass

from local_log.errors import Corrupt
from local_log.formats.indexes.transaction import write_txn_index
from remote.segment.check import CheckedSegment, LogSegmentData, SegmentFile, check_indexes, check_snapshot, check_txn_index
from remote.segment.index_rebuild import rebuilt_indexes


@dataclass(frozen=True, slots=True)
class SoundFiles:
    """The bytes of each file, empty where the segment has none or needs none; `mended` says what was rebuilt or left out."""

    offset_index: bytes
    time_index: bytes
    txn_index: bytes
    producer_snapshot: bytes
    mended: tuple[str, ...]


def sound_files(segment: LogSegmentData, checked: CheckedSegment) -> SoundFiles:
    """The files beside a log that `check_log` has read. Nothing of them is a reason to refuse the segment."""
    mended: list[str] = []
    try:
        check_indexes(segment, checked)
        offset_index, time_index = _body(segment.offset_index), _body(segment.time_index)
    except Corrupt as e:
        mended.append(f"offset index and time index were rebuilt: {e}")
        rebuilt = rebuilt_indexes(segment.base_offset, checked.positions, checked.last_offsets, checked.max_timestamps)
        offset_index, time_index = rebuilt.offset_index, rebuilt.time_index
    try:
        check_txn_index(segment, checked)
        txn_index = _body(segment.txn_index)
    except Corrupt as e:
        mended.append(f"the transaction index was rebuilt: {e}")
        txn_index = write_txn_index(checked.aborted)
    producer_snapshot = _body(segment.producer_snapshot)
    try:
        check_snapshot(segment)
    except Corrupt as e:
        mended.append(f"the producer snapshot was left out: {e}")
        producer_snapshot = b""
    return SoundFiles(offset_index, time_index, txn_index, producer_snapshot, tuple(mended))


def _body(file: SegmentFile | None) -> bytes:
    return b"" if file is None else file.body
