"""Reads one partition's log from its folder: segments, offsets, records."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, pairwise

from local_log.batch_file import BatchFile
from local_log.disk import Disk
from local_log.errors import Corrupt, NotFound, OffsetOutOfRange, Unavailable, placed
from local_log.formats.checkpoints import EpochEntry, epoch_of, read_epochs
from local_log.formats.chunks import Chunk
from local_log.formats.filenames import (
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG,
    PARTITION_METADATA,
    SNAPSHOT,
    SWAP,
    TopicPartition,
    offset_file,
    parse_offset_file,
)
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.list_offsets import TimestampOffset, first_at_or_after, latest_timestamp
from local_log.formats.partition_metadata import ZERO_TOPIC_ID, read_topic_id
from local_log.formats.producer_snapshot import ProducerEntry, read_producer_snapshot
from local_log.formats.record import NO_EPOCH, NO_TIMESTAMP
from local_log.formats.transactions import EndedTxn, Transactions
from local_log.producer_state import OpenTransaction, last_stable_offset, open_transactions, producers_at
from local_log.segment_reader import LogFile, Segment


@dataclass(frozen=True)
class LogReader:
    """The log of `partition` in `folder`, as of the listing of the folder. Later appends are not seen.

    `checkpointed_start` and `checkpointed_high_watermark` come from the log directory's checkpoint files. None if these have no
    entry for the partition.
    """

    disk: Disk
    folder: str
    partition: TopicPartition
    segments: tuple[Segment, ...]
    checkpointed_start: int | None
    checkpointed_high_watermark: int | None
    swapped: tuple[int, ...] = ()
    """Base offsets whose segment the listing lacks: a cleaner had put the old one away, and not yet the new one in its place."""
    inode: tuple[int, int] | None = field(default=None, compare=False)
    """The folder's device and inode, if files are to be opened in this folder only, and in none that takes its place."""
    _replayed: list[tuple[int, tuple[ProducerEntry, ...]]] = field(default_factory=list, init=False, repr=False, compare=False)
    """The producers at one offset at most, so that a batch of a log without snapshots is replayed only once. Threads share it."""
    _aborted: dict[int, tuple[AbortedTxn, ...]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """The transaction indexes of inactive segments by base offset, for readers that ask fetch after fetch."""

    def require_all_segments(self) -> None:
        """Raises Unavailable if the folder was listed while a cleaner replaced segments, or a broker crashed just then.

        Reads of what the listing lacks would go on after it, and skip records that are there.
        """
        if self.swapped:
            raise Unavailable(
                f"{self.folder}: segment {self.swapped[0]} is being replaced by its cleaned one; ask again, and if this lasts, "
                "start the log's broker, which ends what it had begun"
            )

    @cached_property
    def log_start_offset(self) -> int:
        """The first offset that can be read."""
        first = self.segments[0].base_offset if self.segments else 0
        return max(first, self.checkpointed_start or 0)

    @cached_property
    def log_end_offset(self) -> int:
        """The offset after the last whole batch."""
        if not self.segments:
            return self.log_start_offset
        active = self.segments[-1]
        end = active.base_offset
        # After a crash the index may point past the end of the log: the whole segment is read then.
        for start in (active.last_indexed_offset(), active.base_offset):
            for chunk in active.chunks(start):
                end = chunk.batches.next_offset
            if end > active.base_offset:
                break
        return end

    @cached_property
    def high_watermark(self) -> int:
        """The checkpointed high watermark; without a checkpoint the log start offset: no record is known to be replicated."""
        known = self.log_start_offset if self.checkpointed_high_watermark is None else self.checkpointed_high_watermark
        return max(self.log_start_offset, min(known, self.log_end_offset))

    @property
    def is_measured(self) -> bool:
        """Whether its end, high watermark and leader epochs were read, so that they are known at once."""
        return {"log_end_offset", "high_watermark", "leader_epochs"} <= self.__dict__.keys()

    @property
    def unproven(self) -> str:
        """Why no record is known to be replicated, and the remedy; empty if the high watermark is known."""
        if self.checkpointed_high_watermark is not None:
            return ""
        file = f"{self.folder.rpartition('/')[0]}/{HIGH_WATERMARK_CHECKPOINT}"
        return (
            f"the high watermark of {self.partition} is unknown, so nothing in {self.folder} is known to be replicated: {file} "
            "has no line for it; let the broker write that file (it does every few seconds, and when it stops), or copy it along "
            "with the folder"
        )

    @cached_property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is ended and replicated."""
        offset, producers = self._snapshot()
        return max(self.log_start_offset, last_stable_offset(producers, self._chunks(offset), self.high_watermark))

    @cached_property
    def open_transactions(self) -> tuple[OpenTransaction, ...]:
        """The transactions open at the high watermark, by first offset."""
        offset, producers = self._snapshot()
        return open_transactions(producers, self._chunks(offset), self.high_watermark)

    def transactions_begun_before(self, offset: int) -> tuple[OpenTransaction, ...]:
        """The transactions open at `offset` by the batches in the folder alone, also those below the log start offset.

        Raises Corrupt, NotFound.
        """
        return open_transactions((), self._chunks(self.segments[0].base_offset), offset)

    @cached_property
    def topic_id(self) -> str:
        """The topic's id, all zeros for a folder from before topic ids. Raises NoSuchFile where the folder is gone, Corrupt."""
        try:
            with placed(f"{self.folder}/{PARTITION_METADATA}"):
                return read_topic_id(self._file(PARTITION_METADATA))
        except NotFound:
            if not self.disk.is_folder(self.folder):
                raise
            return ZERO_TOPIC_ID

    @cached_property
    def leader_epochs(self) -> tuple[EpochEntry, ...]:
        """The leader epochs with their start offsets; empty if the folder has no leader-epoch checkpoint."""
        try:
            with placed(f"{self.folder}/{LEADER_EPOCH_CHECKPOINT}"):
                return read_epochs(self._file(LEADER_EPOCH_CHECKPOINT))
        except NotFound:
            return ()

    @cached_property
    def last_epoch(self) -> tuple[EpochEntry, ...]:
        """The newest batch's own leader epoch, with its offset; none of a log without batches. Raises Corrupt, NotFound."""
        for segment in reversed(self.segments):
            found: tuple[EpochEntry, ...] = ()
            for chunk in segment.chunks(segment.last_indexed_offset()):
                batches = chunk.batches
                epoch = NO_EPOCH if batches.are_messages else int(batches.header["partition_leader_epoch"][-1])
                found = (EpochEntry(epoch, int(batches.base_offset[-1])),)
            if found:
                return found if found[0].epoch != NO_EPOCH else ()
        return ()

    def chunks(self, start_offset: int, end_offset: int) -> Iterator[Chunk]:
        """The batches of `[start_offset, end_offset)`, possibly with a few before and after. Raises OffsetOutOfRange, Corrupt."""
        if not self.log_start_offset <= start_offset <= self.log_end_offset:
            raise OffsetOutOfRange(str(self.partition), start_offset, self.log_start_offset, self.log_end_offset)
        for chunk in self._chunks(start_offset):
            if chunk.batches.base_offset[0] >= end_offset:
                return
            yield chunk

    def batch_file(self, offset: int, end_offset: int) -> BatchFile | None:
        """The file in which the batch with `offset` is, or should be; None without any.

        Raises NotFound, also where the folder of another topic has taken the place of this one.
        """
        bases, files = self._files
        if not files:
            return None
        file = files[max(bisect_right(bases, offset) - 1, 0)].opened(end_offset)
        if self.inode is not None and self.disk.state(self.folder)[:2] != self.inode:
            raise NotFound(f"{self.folder}: another folder has taken the place of the log's; ask again")
        return file

    def aborted(self, start_offset: int, end_offset: int) -> tuple[AbortedTxn, ...]:
        """The aborted transactions with records in `[start_offset, end_offset)`. Their markers may be in much later segments."""
        found = (t for segment in self._from(start_offset) for t in self._aborted_in(segment))
        return tuple(t for t in found if t.first_offset < end_offset and t.last_offset >= start_offset)

    def offset_for_time(self, timestamp_ms: int, start_offset: int, end_offset: int) -> TimestampOffset | None:
        """The first record of `[start_offset, end_offset)` with a timestamp at or after `timestamp_ms`."""
        for segment in self._from(start_offset):
            if segment.base_offset >= end_offset:
                return None
            found = first_at_or_after(segment.chunks_from_time(timestamp_ms), timestamp_ms, start_offset, end_offset)
            if found is not None:
                return found
        return None

    def latest_timestamp(self) -> TimestampOffset | None:
        """The record with the greatest timestamp below the high watermark."""
        return latest_timestamp(
            chunk.where(chunk.batches.base_offset < self.high_watermark) for chunk in self._chunks(self.log_start_offset)
        )

    def producers_at(self, offset: int) -> tuple[ProducerEntry, ...]:
        """The producers at `offset`, the start of a batch: from the newest valid snapshot at or before it and the batches since.

        Raises Corrupt, NotFound.
        """
        start, producers = self._newest_snapshot(offset) or (self.log_start_offset, ())
        for known, replayed in tuple(self._replayed):
            if start < known <= offset:
                start, producers = known, replayed
        if start < offset:
            producers = producers_at(producers, self._chunks(start), start, offset)
            self._replayed[:] = [(offset, producers)]
        return producers

    def newest_producers(self) -> tuple[ProducerEntry, ...]:
        """The producers at the end of the log. Raises Corrupt, NotFound."""
        return self.producers_at(self.log_end_offset)

    def knows_all_producers_at(self, offset: int) -> bool:
        """Whether `producers_at` is complete: there is a snapshot, or the log still has its first offset."""
        return self.log_start_offset == 0 or self._newest_snapshot(offset) is not None

    def transactions_at(self, offset: int) -> dict[int, int]:
        """The transactions open at `offset`: their first offsets by producer id. Raises Corrupt, NotFound."""
        found = ((p.producer_id, p.current_txn_first_offset) for p in self.producers_at(offset))
        return {producer_id: first for producer_id, first in found if first is not None}

    def ended_later(self, open_transactions: Mapping[int, int], offset: int) -> tuple[EndedTxn, ...]:
        """The ends of the transactions open at `offset`, from their markers in any later segment.

        No transaction index is used: a lost one cannot be distinguished from one of a segment without aborted transactions.
        Raises Corrupt, NotFound.
        """
        following = Transactions(open_transactions)
        waiting = set(open_transactions.items())
        found: list[EndedTxn] = []
        for chunk in self._chunks(offset) if waiting else ():
            for ended in following.follow(chunk.where(chunk.batches.base_offset >= offset)):
                which = ended.txn.producer_id, ended.txn.first_offset
                if which in waiting:
                    found.append(ended)
                waiting.discard(which)
            if not waiting:
                break
        return tuple(found)

    def has_transactional_records(self, producer_id: int, start_offset: int, end_offset: int) -> bool:
        """Whether a producer has records of transactions in batches that begin in this range. Raises Corrupt, NotFound."""
        for segment in self._from(start_offset):
            if segment.base_offset >= end_offset:
                break
            for chunk in segment.chunks(start_offset):
                b = chunk.batches
                is_inside = (b.base_offset >= start_offset) & (b.base_offset < end_offset)
                is_data = b.is_transactional & ~b.is_control & (b.count > 0)
                if (is_inside & is_data & (b.header["producer_id"] == producer_id)).any():
                    return True
        return False

    def at(self, offset: int) -> TimestampOffset:
        """`offset` with its leader epoch, as ListOffsets answers the special timestamps."""
        epoch = epoch_of(self.leader_epochs, offset)
        return TimestampOffset(offset, NO_TIMESTAMP, NO_EPOCH if epoch is None else epoch)

    @cached_property
    def _files(self) -> tuple[list[int], list[LogFile]]:
        """The segments' base offsets and files, since every fetch looks for one."""
        return [s.base_offset for s in self.segments], [s.log_file() for s in self.segments]

    def _chunks(self, start_offset: int) -> Iterator[Chunk]:
        for segment in self._from(start_offset):
            yield from segment.chunks(start_offset)

    def _from(self, offset: int) -> tuple[Segment, ...]:
        return tuple(s for s in self.segments if s.next_base_offset is None or s.next_base_offset > offset)

    def _aborted_in(self, segment: Segment) -> tuple[AbortedTxn, ...]:
        if segment.next_base_offset is None:
            return segment.aborted()
        found = self._aborted.get(segment.base_offset)
        if found is None:
            found = self._aborted[segment.base_offset] = segment.aborted()
        return found

    def _snapshot(self) -> tuple[int, tuple[ProducerEntry, ...]]:
        """The newest valid snapshot at or below the high watermark, else the log start offset and no producers."""
        return self._newest_snapshot(self.high_watermark) or (self.log_start_offset, ())

    def _newest_snapshot(self, up_to: int) -> tuple[int, tuple[ProducerEntry, ...]] | None:
        """The newest valid snapshot at or below an offset. Most often one is at that offset."""
        for offset in chain([up_to], self._snapshot_offsets(up_to)):
            try:
                return offset, read_producer_snapshot(self._file(offset_file(offset, SNAPSHOT)))
            except (Corrupt, NotFound):
                continue  # Kafka, too, skips a damaged snapshot and replays more of the log
        return None

    def _snapshot_offsets(self, up_to: int) -> Iterator[int]:
        offsets = [p[0] for name in self.disk.names(self.folder) if (p := parse_offset_file(name)) and p[1] == SNAPSHOT]
        yield from sorted((o for o in offsets if o <= up_to), reverse=True)

    def _file(self, name: str) -> bytes:
        return self.disk.read(f"{self.folder}/{name}")


def open_log(
    disk: Disk, folder: str, partition: TopicPartition, start: int | None = None, high_watermark: int | None = None
) -> LogReader:
    """Lists a partition's folder. Raises NotFound."""
    names = disk.names(folder)
    parsed = (parse_offset_file(name) for name in names)
    bases = sorted(p[0] for p in parsed if p and p[1] == LOG)
    swaps = (parse_offset_file(name.removesuffix(SWAP)) for name in names if name.endswith(LOG + SWAP))
    swapped = tuple(sorted(p[0] for p in swaps if p and p[0] not in bases))
    segments = tuple(Segment(disk, folder, base, after) for base, after in pairwise([*bases, None]) if base is not None)
    return LogReader(disk, folder, partition, segments, start, high_watermark, swapped)
