"""One log over both tiers: reads from the local log where it has the offset, from the archive below. All readers of both use it.

log start offset        local log start offset              archive's end        high watermark     log end offset
     |---------------- archive ------------------------------------|
                               |------------------------- local log -------------------|-------------------|
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from local_log.batch_file import BatchFile
from local_log.errors import Invalid, OffsetOutOfRange
from local_log.formats.checkpoints import EpochEntry, end_offset_for
from local_log.formats.chunks import Chunk
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    TimestampOffset,
)
from local_log.formats.record_batch.projection import EVERYTHING, Projection
from local_log.formats.visible_records import record_batches
from local_log.log_reader import LogReader
from remote.manifest.losses import reason_with
from remote.read.log import ArchivedLog
from remote.read.plan import MissingRange
from tiering.read.fetched import Fetched, OwnRange, joined
from tiering.read.readable_log import ReadableLog

if TYPE_CHECKING:
    import pyarrow as pa


class Isolation(StrEnum):
    """Kafka's consumer setting `isolation.level`."""

    read_uncommitted = "read_uncommitted"
    read_committed = "read_committed"


_WITH_FILES: Final = (ArchivedLog, LogReader)
NOT_ARCHIVED: Final = "they left the local log before they were archived"
NOT_THERE: Final = "the archive has nothing of this partition: it is another archive, or its objects were deleted"


@dataclass(frozen=True, slots=True)
class TieredLog:
    """A partition in the local tier, the archive, or both; not in neither."""

    local: ReadableLog | None
    archived: ArchivedLog | None
    known_start: int | None = None
    """The log start offset, where the log's owner says it; else it follows from the tiers."""

    @property
    def name(self) -> str:
        """Topic and partition, as in `orders-0`."""
        if self.local is not None:
            return str(self.local.partition)
        manifest = self._archive().manifest
        return f"{manifest.topic}-{manifest.partition}"

    @property
    def log_start_offset(self) -> int:
        """The first readable offset of both tiers."""
        if self.known_start is not None:
            return self.known_start
        starts = [t.log_start_offset for t in (self.local, self.archived) if t is not None]
        return min(starts)

    def end_offset(self, isolation: Isolation = Isolation.read_uncommitted) -> int:
        """The offset up to which reads are allowed: the high watermark or last stable offset, or the archive's end without a
        local log.
        """
        archived = self.archived.end_offset if self.archived else 0
        return archived if self.local is None else max(archived, self._local_end(isolation))

    @property
    def log_end_offset(self) -> int:
        """The end of both tiers with what is not committed: a fetch from there is in range, and gives nothing."""
        return max(self.end_offset(), self.local.log_end_offset if self.local else 0)

    def own_range(self, offset: int, max_bytes: int, isolation: Isolation, *, one_at_least: bool) -> OwnRange | None:
        """What a fetch gets of a log that this process writes, where the local log has the offset; None for any other log."""
        return None

    def whole(self) -> "TieredLog":
        """The log with what its archive has now, for what `archived` is asked for. Raises LogError."""
        return self

    def is_archived_alone(self, offset: int) -> bool:
        """Whether the archive has to be asked for the batch with this offset."""
        is_archived = self.archived is not None and offset < self.archived.end_offset
        return is_archived and (self.local is None or offset < self.local.log_start_offset)

    def read(
        self,
        start_offset: int,
        end_offset: int | None = None,
        isolation: Isolation = Isolation.read_uncommitted,
        want: Projection = EVERYTHING,
    ) -> "Iterator[pa.RecordBatch]":
        """The visible records of `[start_offset, end_offset)` over both tiers, as Arrow (see `columns.decode`).

        Raises OffsetOutOfRange, Corrupt, Unavailable, and MissingRange on reaching offsets that neither tier has.
        """
        limit = self.end_offset(isolation)
        if not self.log_start_offset <= start_offset <= max(limit, self.end_offset()):
            raise OffsetOutOfRange(self.name, start_offset, self.log_start_offset, limit)
        end_offset = limit if end_offset is None else min(end_offset, limit)
        committed = isolation is Isolation.read_committed
        for tier, start, end in self._split(start_offset, end_offset, isolation):
            if isinstance(tier, ArchivedLog):
                yield from tier.records(start, end, committed=committed, want=want)
            else:
                aborted = tier.aborted(start, end) if committed else ()
                yield from record_batches(tier.chunks(start, end), start, end, aborted, want)

    def fetch(
        self,
        offset: int,
        max_bytes: int,
        isolation: Isolation = Isolation.read_uncommitted,
        *,
        min_one_message: bool = True,
    ) -> Fetched:
        """Kafka's Fetch: whole batches from the one with `offset` on, at most `max_bytes`, across segments and tiers.

        With `min_one_message` the first batch is returned even if it is larger. The CRC of each batch is checked, and no batch
        at or above the end offset is returned. Raises OffsetOutOfRange, Corrupt, Unavailable, and MissingRange if neither tier
        has the offset.
        """
        next_offset, known = offset, tuple[AbortedTxn, ...]()
        if isolation is Isolation.read_committed and self.local is not None:
            known = self.committed_part(max(offset, self.local.log_start_offset), self.end_offset(isolation))[1]
        parts: list[bytes] = []
        for chunk in self._fetched(offset, max_bytes, isolation, one_at_least=min_one_message):
            parts.append(bytes_of(chunk))
            next_offset = chunk.batches.next_offset
        aborted = self.aborted(offset, next_offset, isolation) if isolation is Isolation.read_committed else ()
        return Fetched(b"".join(parts), next_offset, joined(aborted, known, offset, next_offset))

    def fetch_older(
        self,
        offset: int,
        max_bytes: int,
        to_magic: int,
        isolation: Isolation = Isolation.read_uncommitted,
        *,
        min_one_message: bool = True,
    ) -> Iterator[bytes]:
        """The same for a client of magic 0 or 1: the batches of a fetch in its format, a limited number of bytes at a time.

        See `down_conversion`. Raises also UnsupportedCompressionType, if the first batch has zstd.
        """
        from local_log.formats.down_conversion import down_converted  # compiles loops that no other reader needs

        return down_converted(self._fetched(offset, max_bytes, isolation, one_at_least=min_one_message), to_magic, offset)

    def _fetched(self, offset: int, max_bytes: int, isolation: Isolation, *, one_at_least: bool) -> Iterator[Chunk]:
        """The batches of a fetch, as they are read; none is empty."""
        if max_bytes < 0:
            raise Invalid(f"a fetch of {max_bytes} bytes; ask for 0 or more")
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(self.name, offset, self.log_start_offset, self.log_end_offset)
        if not (max_bytes or one_at_least):
            return  # without a request
        end = self.end_offset(isolation)
        size, next_offset, is_first = 0, offset, True
        try:
            for chunk in self.chunks(offset, end, isolation, max_bytes):
                inside = _between(chunk, next_offset, end)
                if not len(inside.batches):
                    continue
                fit = int(inside.batches.size.cumsum().searchsorted(max_bytes - size, side="right"))
                taken = max(fit, 1 if one_at_least and is_first else 0)
                if taken:
                    found = inside.where(slice(taken))
                    yield found
                    size, next_offset, is_first = size + int(found.batches.size.sum()), found.batches.next_offset, False
                if taken < len(inside.batches):
                    break
        except MissingRange:
            if is_first:
                raise

    def list_offsets(self, timestamp: int, isolation: Isolation = Isolation.read_uncommitted) -> TimestampOffset | None:
        """Kafka's ListOffsets for a timestamp in ms or a special timestamp of `formats.list_offsets`; None without an answer.

        Raises Invalid for an unknown special timestamp, and the errors of the methods below.
        """
        if timestamp == LATEST:
            return self._at(self.end_offset(isolation))
        answers = {
            EARLIEST: self.earliest,
            EARLIEST_LOCAL: self.earliest_local,
            LATEST_TIERED: self.latest_tiered,
            EARLIEST_PENDING_UPLOAD: self.earliest_pending_upload,
        }
        if timestamp in answers:
            return answers[timestamp]()
        if timestamp < EARLIEST_PENDING_UPLOAD:
            raise Invalid(f"timestamp {timestamp}; give milliseconds since 1970, or {LATEST} to {EARLIEST_PENDING_UPLOAD}")
        found = self.latest_timestamp() if timestamp == MAX_TIMESTAMP else self.offset_for_time(timestamp)
        return found if found is not None and found.offset < self.end_offset(isolation) else None

    def offset_for_time(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record at or after `timestamp_ms` below the end offset (ListOffsets), None if there is none.

        Raises MissingRange if offsets before it are missing, because the record could be one of those.
        """
        for tier, start, end in self._split(self.log_start_offset, self.end_offset(), Isolation.read_uncommitted):
            found = tier.offset_for_time(timestamp_ms, start, end)
            if found is not None:
                return found
        return None

    def latest_timestamp(self) -> TimestampOffset | None:
        """The record with the largest timestamp (ListOffsets -3)."""
        best: TimestampOffset | None = None
        for tier in (self.archived, self.local):
            found = tier.latest_timestamp() if tier else None
            if found is not None and (best is None or found.timestamp > best.timestamp):
                best = found
        return best

    def earliest(self) -> TimestampOffset:
        """The log start offset (ListOffsets -2)."""
        return self._at(self.log_start_offset)

    def latest(self) -> TimestampOffset:
        """The end offset (ListOffsets -1)."""
        return self._at(self.end_offset())

    def earliest_local(self) -> TimestampOffset | None:
        """The local log start offset (ListOffsets -4), None without a local log.

        What DeleteRecords has deleted of a log that is not tiered may still be in its first segment.
        """
        return self._at(max(self.local.log_start_offset, self.log_start_offset)) if self.local else None

    def latest_tiered(self) -> TimestampOffset | None:
        """The last archived offset (ListOffsets -5), None where nothing is archived."""
        has = self.archived is not None and self.archived.end_offset > self.archived.log_start_offset
        return self._at(self.archived.end_offset - 1) if has and self.archived else None

    def earliest_pending_upload(self) -> TimestampOffset | None:
        """The first offset that is not archived yet (ListOffsets -6), None without an archive.

        Also None if nothing is archived and the local log does not start at the log start offset, because then it is unknown.
        """
        if self.archived is None:
            return None
        if self.latest_tiered() is not None:
            return self._at(max(self.archived.end_offset, self.log_start_offset))
        knows = self.local is None or self.local.log_start_offset == self.log_start_offset
        return self.earliest() if knows else None

    def end_offset_for(self, epoch: int) -> EpochEntry | None:
        """Kafka's OffsetsForLeaderEpoch: the greatest epoch at or below `epoch` and its end offset, None if it is unknown.

        The local log may have truncated older epochs, which the archive still has.
        """
        local = tuple(self.local.leader_epochs) if self.local else ()
        archived = self.archived.manifest.leader_epochs if self.archived else ()
        older = tuple(e for e in archived if not local or (e.epoch <= local[0].epoch and e.start_offset <= local[0].start_offset))
        newer = (e for e in local if not older or e.epoch > older[-1].epoch)
        return end_offset_for((*older, *newer), epoch, self.local.log_end_offset if self.local else self.end_offset())

    def chunks(self, start: int, end: int, isolation: Isolation, wanted_bytes: int | None = None) -> Iterator[Chunk]:
        """The batches of `[start, end)`, possibly with a few before and after: read ahead, or about `wanted_bytes` of them.

        Raises Corrupt, Unavailable, and MissingRange on reaching offsets that neither tier has.
        """
        for tier, first, last in self._split(start, end, isolation):
            if isinstance(tier, ArchivedLog) and wanted_bytes is not None:
                yield from tier.first_chunks(first, last, wanted_bytes)
            else:
                yield from tier.chunks(first, last)

    def batch_file(self, offset: int, isolation: Isolation) -> BatchFile | None:
        """The file that has the batch with `offset` as it is, up to where the tier ends; None if it is in no file.

        Raises Corrupt, Unavailable, NotFound, and MissingRange if neither tier has the offset.
        """
        local, archived = self.local, self.archived
        if archived is None and isinstance(local, LogReader):  # as below with less work: every fetch asks
            first, last = max(offset, local.log_start_offset), self._local_end(isolation)
            return local.batch_file(first, last) if first < last else None
        if local is None and archived is not None:
            return archived.batch_file(offset, archived.end_offset) if offset < archived.end_offset else None
        for tier, first, last in self._split(offset, self.end_offset(isolation), isolation):
            return tier.batch_file(first, last) if isinstance(tier, _WITH_FILES) else None
        return None

    def is_at_hand(self, offset: int) -> bool:
        """Whether `batch_file` would read no page of the manifest for read_uncommitted."""
        if self.archived is None or self.archived.is_at_hand(offset):
            return True
        return self.local is not None and self.local.log_start_offset <= offset < self.local.high_watermark

    def archived_part(self, offset: int, isolation: Isolation) -> tuple[ArchivedLog, int] | None:
        """The archive and up to where an offset and those after it are read from it; None if it is another tier's.

        Raises MissingRange if neither tier has the offset.
        """
        for tier, _, last in self._split(offset, self.end_offset(isolation), isolation):
            return (tier, last) if isinstance(tier, ArchivedLog) else None
        return None

    def aborted(self, start: int, end: int, isolation: Isolation) -> tuple[AbortedTxn, ...]:
        """The aborted transactions with records in the range, wherever their markers are; both tiers may report the same one."""
        return tuple(sorted({t for tier, first, last in self._split(start, end, isolation) for t in tier.aborted(first, last)}))

    def committed_part(self, offset: int, end: int) -> tuple[int, tuple[AbortedTxn, ...]]:
        """Up to where, at most `end`, a read_committed read from `offset` may go, and the aborted transactions of the local log.

        It has to be asked before the batches are read: a file that was opened before a cleaner has replaced it has records of
        transactions that the index after it does not know. A read that begins in the archive goes on there first, and asks again
        where the local log starts, if it comes to that.
        """
        local = self.local
        if local is None or offset >= end:
            return end, ()
        if offset < local.log_start_offset:
            return min(end, local.log_start_offset), ()
        return end, local.aborted(offset, end)

    def _split(self, start: int, end: int, isolation: Isolation) -> Iterator[tuple[ReadableLog | ArchivedLog, int, int]]:
        """Splits a range between the tiers, in order: the local log where it has committed offsets, else the archive.

        Raises MissingRange on reaching a gap between the tiers. A lagging replica may have uncommitted records above its own
        high watermark, which are not read.
        """
        local_start, local_end = end, end
        if self.local is not None:
            local_start = self.local.log_start_offset
            local_end = self._local_end(isolation)
        if self.archived is None and self.known_start is not None and start < min(end, local_start):
            raise MissingRange(self.name, start, min(end, local_start), NOT_THERE)
        if self.archived is not None and start < min(end, local_start):
            if start <= self.archived.end_offset:
                yield self.archived, start, min(end, local_start)
            self._check_no_gap(start, end)
        if self.local is not None and max(start, local_start) < min(end, local_end):
            yield self.local, max(start, local_start), min(end, local_end)
        if self.archived is not None and self.local is not None and max(start, local_start, local_end) < end:
            yield self.archived, max(start, local_start, local_end), end

    def _local_end(self, isolation: Isolation) -> int:
        if self.local is None:
            raise AssertionError("there is no local log")
        return self.local.last_stable_offset if isolation is Isolation.read_committed else self.local.high_watermark

    def _check_no_gap(self, start: int, end: int) -> None:
        """Raises MissingRange if the local log starts above the archive's end and the range has offsets in between."""
        if self.archived is not None and self.local is not None:
            gap_start, gap_end = self.archived.end_offset, self.local.log_start_offset
            if gap_start < gap_end and start < gap_end and end > gap_start:
                first, last = max(start, gap_start), min(end, gap_end)
                raise MissingRange(self.name, first, last, reason_with(self.archived.manifest.losses, first, last, NOT_ARCHIVED))

    def _at(self, offset: int) -> TimestampOffset:
        """An offset with its leader epoch; the local log may have truncated older epochs, which the archive still has."""
        from_local = self.local.at(offset) if self.local else None
        if from_local is not None and (from_local.leader_epoch >= 0 or self.archived is None):
            return from_local
        return self._archive().at(offset)

    def _archive(self) -> ArchivedLog:
        if self.archived is None:
            raise AssertionError("a tiered log has at least one tier")
        return self.archived


def _between(chunk: Chunk, start: int, end: int) -> Chunk:
    """The batches that end at or after `start` and below `end`."""
    last = chunk.batches.last_offset
    return chunk.where((last >= start) & (last < end))


def bytes_of(chunk: Chunk) -> bytes:
    """The bytes of adjacent batches, after a check of their CRCs."""
    chunk.check()
    batches = chunk.batches
    return bytes(memoryview(chunk.buffer)[int(batches.positions[0]) : int(batches.end[-1])])
