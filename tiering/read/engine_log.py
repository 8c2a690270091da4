"""A log that this process writes, at one moment, as a read over both tiers asks for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from local_log.engine.list_offsets import find_by_timestamp
from local_log.engine.offsets import LogOffsets
from local_log.engine.segment import Segment as EngineSegment
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Conflict, OffsetOutOfRange
from local_log.formats.checkpoints import EpochEntry, epoch_of
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.filenames import TopicPartition
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.list_offsets import MAX_TIMESTAMP, TimestampOffset
from local_log.formats.producer_snapshot import ProducerEntry
from local_log.formats.record import NO_EPOCH, NO_TIMESTAMP
from local_log.segment_reader import Segment


@dataclass(frozen=True, slots=True)
class EngineLog:
    """The log with the offsets of one moment.

    Truncation and retention may take away what `now` has: an answer counts only if `log.published.moves` is the same after it
    (see `PublishedOffsets.undisturbed`).
    """

    log: UnifiedLog
    partition: TopicPartition
    now: LogOffsets

    @property
    def folder(self) -> str:
        """The path of its folder."""
        return self.log.folder.path

    @property
    def log_start_offset(self) -> int:
        """The local log start offset."""
        return self.now.local_log_start

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.now.end.offset

    @property
    def high_watermark(self) -> int:
        """All offsets below it are replicated."""
        return self.now.high_watermark.offset

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is ended and replicated."""
        return self.now.last_stable

    @property
    def leader_epochs(self) -> Sequence[EpochEntry]:
        """The leader epochs with their start offsets."""
        return self.log.epochs.entries

    @property
    def is_measured(self) -> bool:
        """Always: the process knows its offsets."""
        return True

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Its files."""
        bases = (*self.log.local.segments.base_offsets, None)
        disk, folder = self.log.folder.disk, self.log.folder.path
        return tuple(Segment(disk, folder, base, after) for base, after in pairwise(bases) if base is not None)

    @property
    def unproven(self) -> str:
        """Nothing: the process knows the high watermark."""
        return ""

    def chunks(self, start_offset: int, end_offset: int) -> Iterator[Chunk]:
        """The batches of `[start_offset, end_offset)`, possibly with a few before and after.

        Raises OffsetOutOfRange, Corrupt, NotFound, and Conflict if retention has taken the first ones meanwhile.
        """
        if not self.log_start_offset <= start_offset <= self.log_end_offset:
            raise OffsetOutOfRange(str(self.partition), start_offset, self.log_start_offset, self.log_end_offset)
        disk = self.log.folder.disk
        for segment in self._from(start_offset):
            if segment.base_offset >= end_offset:
                return
            is_last = segment.base_offset == self.now.end.segment_base
            size = self.now.end.position if is_last else segment.size
            start = segment.position_of(start_offset)
            for chunk in read_chunks(partial(disk.read_large, segment.log_file), segment.log_file, start, size):
                if chunk.batches.base_offset[0] >= end_offset:
                    return
                yield chunk

    def aborted(self, start_offset: int, end_offset: int) -> tuple[AbortedTxn, ...]:
        """The aborted transactions with records in `[start_offset, end_offset)`."""
        return self.log.local.aborted(self.log.local.segments.floor(start_offset), start_offset, end_offset)

    def offset_for_time(self, timestamp_ms: int, start_offset: int, end_offset: int) -> TimestampOffset | None:
        """The first record of `[start_offset, end_offset)` with a timestamp at or after `timestamp_ms`."""
        for segment in self._from(start_offset):
            if segment.base_offset >= end_offset:
                return None
            if segment.largest_timestamp >= timestamp_ms:
                found = find_by_timestamp(segment, timestamp_ms, start_offset)
                if found is not None:
                    return found if found.offset < end_offset else None
        return None

    def latest_timestamp(self) -> TimestampOffset | None:
        """The record with the greatest timestamp."""
        return self.log.offset_for(MAX_TIMESTAMP)

    def newest_producers(self) -> tuple[ProducerEntry, ...]:
        """The producers at the end of the log."""
        with self.log.lock:
            return tuple(producer.entry() for producer in self.log.producers.producers.values())

    def at(self, offset: int) -> TimestampOffset:
        """`offset` with its leader epoch."""
        epoch = epoch_of(self.leader_epochs, offset)
        return TimestampOffset(offset, NO_TIMESTAMP, NO_EPOCH if epoch is None else epoch)

    def _from(self, offset: int) -> list[EngineSegment]:
        """All of this moment, so that none is passed over that retention takes from between them. Raises Conflict."""
        segments, found = self.log.local.segments, list[EngineSegment]()
        segment = segments.floor(offset)
        while segment is not None:
            found.append(segment)
            segment = segments.higher(segment.base_offset)
        start = self.log.offsets.local_log_start
        if offset < start:
            raise Conflict(f"{self.partition}: offset {offset} has left the local log, which starts at {start} now; fetch again")
        return found
