"""What a log has below its log start offset: which of it is known to be committed, so that it may be archived.

    offset      100         150         200
    leader                  |--epoch 5--|···     its log starts at 150, so it no longer knows epoch 4
    follower    |--epoch 4--|--epoch 5--|···     led in epoch 4; what it has from 120 on was never committed

A follower asks its leader where its own last epoch ended. A leader that knows no epoch as old answers with its log start offset
(LeaderEpochFileCache.endOffsetFor), so a former leader keeps up to there what only it has. No consumer can read it. An epoch has
one leader, who only appends: below the log start offset, records of the epoch of those above are the same in both logs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from local_log.disk import parent_of
from local_log.errors import Corrupt, NotFound
from local_log.formats.filenames import LEADER_EPOCH_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, TOPICS
from local_log.formats.primitives import INT64_MAX
from local_log.formats.record import NO_EPOCH
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment

if TYPE_CHECKING:
    from local_log.formats.record_batch.batch_v2 import Batches


@dataclass(frozen=True, slots=True)
class Committed:
    """From which offset on a log's records are known to be committed; there is no batch in `[start, batches_from)`."""

    start: int = 0
    batches_from: int = 0


def committed_from(log: LogReader) -> Committed:
    """From where on all records below the high watermark are known to be those that the leader has.

    That is the log start offset, or below it the first batch of the leader epoch that goes on there. What lies before that batch
    in its segment may have been truncated, with the end of a batch above the log start offset. Where a file is damaged or
    gone, nothing is known of what lies before it.
    """
    start = first = log.log_start_offset
    here = 0
    try:
        cut = _cut_at(log)
        if cut is not None:
            return Committed(cut)
        found = _first_epoch(log.segments, start)
        if found is None:
            return Committed(start, INT64_MAX)
        first, epoch, here = min(start, found[0]), found[1], found[2]
        for segment in reversed([s for s in log.segments if s.base_offset < first]):
            head = _first_epoch([segment], segment.base_offset)
            if head is None:
                continue
            if head[1] != epoch:
                first = min(first, _first_of(segment, epoch, otherwise=first))
                break
            first = min(first, head[0])
    except (Corrupt, NotFound):
        pass
    return Committed(first, here if first == start else 0)


def _cut_at(log: LogReader) -> int | None:
    """The offset at which a log was cut that starts earlier again since it has crashed, None if nothing shows that.

    A batch that reached above the leader's log start offset was removed as a whole, so that offsets are missing below it. With
    the log start offset the leader epochs from before it are gone, and no crash brings these back. Raises Corrupt, NotFound.
    """
    first = log.leader_epochs[0].start_offset if log.leader_epochs else 0
    if first <= log.log_start_offset:
        return None
    found = _first_epoch(log.segments, first - 1)
    return first if found is not None and found[0] >= first else None


def why_start_is_unknown(log: LogReader) -> str:
    """Why nothing can be copied for now, where a broker is about to say that the log starts later; "" where it is not.

    With the log start offset a broker moves the first leader epoch (LeaderEpochFileCache.truncateFromStart), whose file it writes
    at once. It writes the offset every log.flush.start.offset.checkpoint.interval.ms, a minute. A log whose leader epochs were
    lost begins with a later one, too, but then that file is not the younger one for long.
    """
    log_dir = LogDir(log.disk, parent_of(log.folder))
    epochs_file, start_file = f"{log.folder}/{LEADER_EPOCH_CHECKPOINT}", f"{log_dir.path}/{LOG_START_OFFSET_CHECKPOINT}"
    try:
        # A broker that is started again with no record above its log start offset has no leader epoch at all.
        first = log.leader_epochs[0].start_offset if log.leader_epochs else log.log_end_offset if log.last_epoch else 0
        if first <= log.log_start_offset or TOPICS in log.disk.names(log_dir.path):
            return ""  # log directories of our own know where their logs start, and write it only when that moves
        is_written = log.disk.state(start_file).modified_ns >= log.disk.state(epochs_file).modified_ns
        # It may have been written since the log start offset was read.
        if is_written and log_dir.checkpoint(LOG_START_OFFSET_CHECKPOINT).get(log.partition, 0) <= log.log_start_offset:
            return ""
    except (Corrupt, NotFound):
        return ""
    return (
        f"the log seems to start at {first} now, where its leader epochs begin, and {start_file} did not say so when it was "
        "read; its broker writes that file every minute"
    )


def _first_epoch(segments: Iterable[Segment], offset: int) -> tuple[int, int, int] | None:
    """The base offset and the epoch of the first batch that ends at or above an offset, and the base offset of its segment."""
    for segment in segments:
        for batches in _batches(segment, offset):
            rows = np.flatnonzero(batches.last_offset >= offset)
            if len(rows):
                return int(batches.base_offset[rows[0]]), int(_epochs(batches)[rows[0]]), segment.base_offset
    return None


def _first_of(segment: Segment, epoch: int, *, otherwise: int) -> int:
    """The base offset of a segment's first batch of an epoch."""
    for batches in _batches(segment, segment.base_offset):
        rows = np.flatnonzero(_epochs(batches) == epoch)
        if len(rows):
            return int(batches.base_offset[rows[0]])
    return otherwise


def _batches(segment: Segment, offset: int) -> "Iterator[Batches]":
    if segment.next_base_offset is None or segment.next_base_offset > offset:
        yield from (chunk.batches for chunk in segment.chunks(offset))


def _epochs(batches: "Batches") -> Any:
    none = np.full(len(batches.base_offset), NO_EPOCH)
    return none if batches.are_messages else batches.header["partition_leader_epoch"]
