"""Reads an inactive segment of a log while its broker may change it.

A broker renames, deletes and compacts segments at any time without notice. So the folder is listed before and after a copy, and
the log file must be the same and unchanged both times: `checked_state` gives the state to be compared.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from local_log.errors import Corrupt, LogError
from local_log.file_range import FileState
from local_log.formats.checkpoints import epochs_before
from local_log.formats.filenames import (
    CLEANED,
    LOG,
    OFFSET_INDEX,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    offset_file,
    parse_offset_file,
)
from local_log.formats.primitives import Buffer
from local_log.formats.producer_snapshot import read_producer_snapshot, write_producer_snapshot
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment
from remote.segment.check import LogSegmentData, SegmentCopy, SegmentFile
from tiering.offload.aborted_later import aborted_later
from tiering.offload.changed import Changed


def segment_end(segment: Segment) -> int:
    """Where an inactive segment ends: at the next one's base offset."""
    if segment.next_base_offset is None:
        raise AssertionError("the active segment is never archived")
    return segment.next_base_offset


def checked_state(log: LogReader, segment: Segment) -> FileState:
    """The state of the segment's log file, after a check that its folder has no other segment with batches before its end.

    Segments that compaction emptied may be there. Raises Changed if the segment is not the one that was listed, or its topic was
    deleted and created again; Corrupt if other
    files show that a segment between this one and the next is missing. While the log cleaner swaps files, neither the old files
    nor the new ones exist for a moment, so another segment follows this one. If a file was deleted by hand, that does not pass.
    """
    end = segment_end(segment)
    if (now := LogReader(log.disk, log.folder, log.partition, (), None, None)).topic_id != log.topic_id:
        raise Changed(f"{log.folder}: it is the log of another topic now, with the id {now.topic_id}; offload again")
    logs, others = _offsets(log.disk.names(log.folder))
    if segment.base_offset not in logs:
        raise Changed(f"{segment.path(LOG)}: its broker has deleted or renamed it in the meantime; offload again")
    inside = {base for base in logs if segment.base_offset < base < end}
    if end not in logs or any(log.disk.size(f"{log.folder}/{offset_file(base, LOG)}") for base in inside):
        raise Changed(f"{segment.path(LOG)}: another segment follows it than when the folder was listed; offload again")
    traces = sorted(base for base in others - logs if segment.base_offset < base < end)
    if traces:
        raise Corrupt(
            f"the segment after {segment.base_offset} is being replaced or has lost its log file (offset {traces[0]}); offload "
            "again, and if that does not help let the broker recover the log",
            file=log.folder,
        )
    return log.disk.state(segment.path(LOG))


def _offsets(names: list[str]) -> tuple[set[int], set[int]]:
    """The base offsets of log files, and those of everything else that belongs to a segment, if only for a moment."""
    logs: set[int] = set()
    others: set[int] = set()
    for name in names:
        bare = name.removesuffix(SWAP).removesuffix(CLEANED)
        if (found := parse_offset_file(bare)) and found[1] != SNAPSHOT:
            (logs if name == bare and found[1] == LOG else others).add(found[0])
    return logs, others


def segment_data(log: LogReader, segment: Segment, start_offset: int = 0) -> LogSegmentData:
    """An inactive segment as the uploader takes it, from `start_offset` on. Raises Corrupt, NotFound, Unreadable."""
    if start_offset <= segment.base_offset:
        return replace(_data(log, segment, segment.base_offset), open_transactions=_open_at_start(log, segment))
    return _from(_data(log, segment, start_offset), segment, start_offset)


def _from(whole: LogSegmentData, segment: Segment, start_offset: int) -> LogSegmentData:
    """The batches from `start_offset` on, as a segment that begins there. What lies beside it is made of them alone."""
    position = _position(segment, start_offset)

    def read(start: int, stop: int) -> Buffer:
        return whole.read(position + start, position + stop)

    note = f"what lies below offset {start_offset} was left out: it is below the log start offset, and not known to be committed"
    return replace(
        whole,
        base_offset=start_offset,
        size=whole.size - position,
        read=read,
        offset_index=None,
        time_index=None,
        txn_index=None,
        notes=(note, *whole.notes),
    )


def _position(segment: Segment, offset: int) -> int:
    """Where the first batch of a segment starts that begins at or above an offset; its size where none does."""
    for chunk in segment.chunks(offset):
        rows = np.flatnonzero(chunk.batches.base_offset >= offset)
        if len(rows):
            return chunk.position + int(chunk.batches.positions[rows[0]])
    return segment.size()


def _data(log: LogReader, segment: Segment, start_offset: int) -> LogSegmentData:
    end = segment_end(segment)
    file = segment.path(LOG)

    def read(start: int, stop: int) -> Buffer:
        return segment.disk.read_large(file, start, stop)

    snapshot, notes = _snapshot(log, segment, end)
    return LogSegmentData(
        path=file,
        base_offset=segment.base_offset,
        end_offset=end,
        size=segment.size(),
        read=read,
        offset_index=_optional(segment, OFFSET_INDEX),
        time_index=_optional(segment, TIME_INDEX),
        # A broker that has recovered or truncated its log knows transactions from the log start offset on, and so does its index.
        txn_index=_optional(segment, TXN_INDEX) if start_offset >= log.log_start_offset else None,
        producer_snapshot=snapshot,
        lineage=epochs_before(log.leader_epochs, end),
        aborted_later=partial(aborted_later, log, start_offset, end),
        notes=notes,
    )


def _open_at_start(log: LogReader, segment: Segment) -> dict[int, int]:
    """The transactions that are open where the segment starts; none where what lies before it cannot be read.

    Those that go on in the segment are then known from there on, which is all that its readers need.
    """
    try:
        return log.transactions_at(segment.base_offset)
    except LogError:
        return {}


def _snapshot(log: LogReader, segment: Segment, end: int) -> tuple[SegmentFile | None, tuple[str, ...]]:
    """The producer snapshot where the segment ends: its own, else one made anew from an earlier one and the log, else none."""
    file = _optional(segment, SNAPSHOT)
    try:
        if file is not None:
            read_producer_snapshot(file.body)
            return file, ()
        problem = f"{segment.path(SNAPSHOT)} is missing"
    except Corrupt as e:
        problem = str(e.at(file.path) if file else e)
    if not log.knows_all_producers_at(end):
        return None, (f"there is no producer snapshot: {problem}, and the log does not reach back far enough to rebuild it",)
    try:
        producers = log.producers_at(end)
    except LogError as e:
        return None, (f"there is no producer snapshot: {problem}, and the log does not give one: {e}",)
    made = SegmentFile(segment.path(SNAPSHOT), write_producer_snapshot(producers))
    return made, (f"the producer snapshot was rebuilt: {problem}",)


def _optional(segment: Segment, suffix: str) -> SegmentFile | None:
    body = segment.read(suffix)
    return None if body is None else SegmentFile(segment.path(suffix), body)


def counted(copy: SegmentCopy, progress: Callable[[int], None]) -> SegmentCopy:
    """The copy, which tells of the bytes of the log that are read to be sent."""
    data = copy.data

    def read(start: int, stop: int) -> Buffer:
        progress(stop - start)
        return data.read(start, stop)

    return replace(copy, data=replace(data, read=read))
