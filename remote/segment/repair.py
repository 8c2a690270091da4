"""What goes into the archive beside a segment's log: its own files where they speak of this log, else what recovery would make.

A broker's recovery makes offset index and time index together, from the batches alone, and the transaction index from them and
from the transactions that are open where the segment starts. The bytes are the same here. (LogSegment.recover)
"""

from dataclasses import replace

from local_log.errors import Corrupt
from local_log.formats.filenames import OFFSET_INDEX, TIME_INDEX, TXN_INDEX
from local_log.formats.indexes.transaction import write_txn_index
from remote.segment.check import (
    LogSegmentData,
    SegmentCopy,
    SegmentFile,
    check_indexes,
    check_log,
    check_snapshot,
    check_txn_index,
)
from remote.segment.index_rebuild import rebuilt_indexes


def checked_copy(data: LogSegmentData) -> SegmentCopy:
    """The segment as it is to be archived: every batch is checked, and every file beside the log fits it.

    What does not fit is rebuilt or left out, and `data.notes` say so: nothing beside the log is a reason to refuse a segment.
    Raises Corrupt, placed in the log file.
    """
    return _with_snapshot(_with_txn_index(_with_indexes(check_log(data))))


def _with_indexes(copy: SegmentCopy) -> SegmentCopy:
    try:
        check_indexes(copy)
    except Corrupt as e:
        data = copy.data
        rebuilt = rebuilt_indexes(data.base_offset, copy.positions, copy.last_offsets, copy.max_timestamps)
        copy.data = replace(
            data,
            offset_index=SegmentFile(data.beside(OFFSET_INDEX), rebuilt.offset_index),
            time_index=SegmentFile(data.beside(TIME_INDEX), rebuilt.time_index),
            notes=(*data.notes, f"offset index and time index were rebuilt: {e}"),
        )
    return copy


def _with_txn_index(copy: SegmentCopy) -> SegmentCopy:
    try:
        check_txn_index(copy)
    except Corrupt as e:
        data = copy.data
        index = SegmentFile(data.beside(TXN_INDEX), write_txn_index(copy.aborted))
        copy.data = replace(data, txn_index=index, notes=(*data.notes, f"the transaction index was rebuilt: {e}"))
    return copy


def _with_snapshot(copy: SegmentCopy) -> SegmentCopy:
    try:
        check_snapshot(copy)
    except Corrupt as e:
        notes = (*copy.data.notes, f"the producer snapshot was left out: {e}")
        copy.data = replace(copy.data, producer_snapshot=None, notes=notes)
    return copy
