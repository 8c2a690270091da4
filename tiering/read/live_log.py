"""One log over both tiers while this process writes it: appends, local retention, offloads and the archive's retention go on.

    log start offset        local log start offset                         last stable offset    high watermark    log end offset
         |---------- archive --------|------------------- local log -------------|-------------------|-------------------|

Offsets at or above the local log start offset come from the local log, whose writer nobody waits for; no manifest is loaded for
them. What is below comes from the archive. The manifest is loaded when it is needed, and again when it turns out to be too old:
an offset has left the local log only after a manifest that has it was committed.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from local_log.engine import offsets as engine
from local_log.engine.fetched_range import FetchedRange
from local_log.engine.offsets import LogOffsets
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Conflict, Corrupt, NotFound, OffsetOutOfRange
from local_log.file_range import FileRange
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.filenames import TopicPartition
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.list_offsets import EARLIEST_PENDING_UPLOAD, LATEST_TIERED, MAX_TIMESTAMP, TimestampOffset
from local_log.formats.primitives import Buffer
from local_log.formats.record_batch.projection import EVERYTHING, Projection
from local_log.formats.visible_records import record_batches
from remote.keys import PartitionPath
from remote.manifest.losses import reason_with
from remote.manifest.store import load_newest
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.read.plan import MissingRange
from remote.store.api import ObjectStore
from tiering.read.archive_reads import ArchiveReads, SequentialRead
from tiering.read.engine_log import EngineLog
from tiering.read.tiered_log import NOT_ARCHIVED, Isolation, TieredLog, bytes_of

if TYPE_CHECKING:
    import pyarrow as pa

_READ_BYTES: Final = 1 << 20

ISOLATIONS: Final = {
    Isolation.read_uncommitted: engine.Isolation.HIGH_WATERMARK,
    Isolation.read_committed: engine.Isolation.TXN_COMMITTED,
}

T = TypeVar("T")

Part = FileRange | Buffer


@dataclass(frozen=True, slots=True)
class FetchData:
    """The result of a fetch. `parts` in a row are batches from the offset on; the last may be incomplete, as in Kafka.

    A part is a range of a log file, which a server may send as it lies there (see `local_log.file_range`), or bytes from the
    archive. The offsets are those before the read; `aborted` are the aborted transactions among the batches, None for
    read_uncommitted.
    """

    parts: tuple[Part, ...]
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int
    first_batch_is_cut: bool = False
    aborted: tuple[AbortedTxn, ...] | None = None

    def read(self) -> bytes:
        """The bytes of all parts. Raises Conflict if the log was truncated since the fetch: fetch again; Unreadable."""
        return b"".join(part.read() if isinstance(part, FileRange) else part for part in self.parts)


@dataclass(slots=True)
class LiveLog:
    """`log` over both tiers, for many threads. `load` gives its archive by the newest manifest, None if it has none yet."""

    log: UnifiedLog
    partition: TopicPartition
    load: Callable[[], ArchivedLog | None]
    reads: ArchiveReads = field(default_factory=ArchiveReads)
    _held: ArchivedLog | None = None
    _refreshes: int = 0
    _held_since: int = 0
    """How many refreshes there had been when `_held` was loaded: if there are more by now, it may be too old."""
    _loads: int = 0
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def refresh(self) -> None:
        """Loads the newest manifest when one is needed next: call it after a commit. What is being read is read on."""
        self._refreshes += 1

    def fetch(
        self,
        offset: int,
        max_bytes: int,
        isolation: Isolation = Isolation.read_uncommitted,
        *,
        min_one_message: bool = True,
    ) -> FetchData:
        """Kafka's Fetch: batches from the one with `offset` on, at most `max_bytes`, across the border of the tiers.

        With `min_one_message` the first batch is returned even if it is larger. Raises OffsetOutOfRange outside of
        `[log start offset, log end offset]`, MissingRange where neither tier has the offset, Corrupt, Unavailable.
        """
        while True:
            now = self.log.offsets
            if now.log_start <= offset < now.local_log_start:
                found = self._fetch_archived(now, offset, max_bytes, isolation, one=min_one_message)
                if found is not None:
                    return found
            else:
                try:
                    local = self._find(offset, max_bytes, isolation, one=min_one_message)
                except OffsetOutOfRange:
                    if self.is_outside(offset):
                        raise
                else:
                    parts = () if local.range is None else (local.range,)
                    return _fetched(now, parts, local.first_batch_is_cut, local.aborted)

    def read(
        self,
        start_offset: int,
        end_offset: int | None = None,
        isolation: Isolation = Isolation.read_uncommitted,
        want: Projection = EVERYTHING,
    ) -> "Iterator[pa.RecordBatch]":
        """The visible records of `[start_offset, end_offset)` over both tiers, as Arrow (see `columns.decode`).

        Without an end up to the end offset at this moment. Raises as `fetch`.
        """
        limit = self.end_offset(isolation)
        end = limit if end_offset is None else min(end_offset, limit)
        now, offset = self.log.offsets, start_offset
        if not now.log_start <= offset <= now.end.offset:
            raise OffsetOutOfRange(str(self.partition), offset, now.log_start, limit)
        while offset < end:
            found = self.fetch(offset, _READ_BYTES, isolation)
            try:
                records = found.read()
            except Conflict:  # it has been truncated meanwhile
                continue
            following = offset
            for chunk in _chunks_of(records, str(self.partition)):
                yield from record_batches([chunk], offset, end, found.aborted or (), want)
                following = chunk.batches.next_offset
            if following == offset:
                return  # compaction has left nothing more
            offset = following

    def end_offset(self, isolation: Isolation = Isolation.read_uncommitted) -> int:
        """The offset up to which reads are allowed: the high watermark or last stable offset."""
        now = self.log.offsets
        return now.last_stable if isolation is Isolation.read_committed else now.high_watermark.offset

    def list_offsets(self, timestamp: int, isolation: Isolation = Isolation.read_uncommitted) -> TimestampOffset | None:
        """As `TieredLog.list_offsets`. The archive is asked only for what the local log does not know."""
        by_record = timestamp >= 0 or timestamp == MAX_TIMESTAMP
        always = timestamp in (LATEST_TIERED, EARLIEST_PENDING_UPLOAD)

        def query(now: LogOffsets) -> TimestampOffset | None:
            through = _archived_through(now)
            if not (always or (by_record and through)):
                return self._tiered(now, None).list_offsets(timestamp, isolation)
            through = max(through, self.log.highest_offset_in_archive + 1)
            return self._of_archive(through, lambda archived: self._tiered(now, archived).list_offsets(timestamp, isolation))

        return self.log.published.undisturbed(query)

    def end_offset_for(self, epoch: int) -> EpochEntry | None:
        """As `TieredLog.end_offset_for`. The archive is asked for an epoch that is older than those of the local log."""
        now, known = self.log.offsets, self.log.epochs.entries
        if (known and known[0].epoch <= epoch) or not _archived_through(now):
            return self._tiered(now, None).end_offset_for(epoch)
        return self._of_archive(now.local_log_start, lambda archived: self._tiered(now, archived).end_offset_for(epoch))

    def current(self) -> TieredLog:
        """Both tiers at this moment, for what takes longer than a query; see EngineLog."""
        now = self.log.offsets
        return self._of_archive(_archived_through(now), lambda archived: self._tiered(now, archived))

    def _tiered(self, now: LogOffsets, archived: ArchivedLog | None) -> TieredLog:
        # The archive's retention moves its start first, the log's afterwards; a fetch that has found that out knows the newest.
        known = archived or self._held
        start = now.log_start if known is None else max(now.log_start, min(known.log_start_offset, now.local_log_start))
        return TieredLog(EngineLog(self.log, self.partition, now), archived, start)

    # The local log

    def _find(self, offset: int, max_bytes: int, isolation: Isolation, *, one: bool) -> FetchedRange:
        return self.log.fetch(offset, max_bytes, ISOLATIONS[isolation], one_batch_at_least=one)

    def is_outside(self, offset: int) -> bool:
        """Whether an offset that the local log does not have is outside the whole log, not only in the archive by now."""
        now = self.log.offsets
        return not now.log_start <= offset < now.local_log_start

    # The archive

    def _fetch_archived(
        self, now: LogOffsets, offset: int, max_bytes: int, isolation: Isolation, *, one: bool
    ) -> FetchData | None:
        """A fetch that begins in the archive; None if it has nothing up to the local log, which has moved on meanwhile."""
        border = now.local_log_start

        def read(archived: ArchivedLog | None) -> _Archived:
            if archived is None or offset >= archived.end_offset:
                raise self._missing(archived, offset, border)
            with_aborted = isolation is Isolation.read_committed
            found, following = self._chunks(archived, offset, border, max_bytes, one=one, is_current=with_aborted)
            return _Archived(found, following, archived.aborted(offset, following) if with_aborted else None)

        found = self._of_archive(offset + 1, read)
        parts = tuple(bytes_of(chunk) for chunk in found.chunks)
        left = max_bytes - sum(map(len, parts))
        if found.following < border or (parts and left <= 0):
            return _fetched(now, parts, False, found.aborted)
        try:
            local = self._find(found.following, left, isolation, one=one and not parts)
        except OffsetOutOfRange:  # it has left the local log meanwhile, or was truncated
            return _fetched(now, parts, False, found.aborted) if parts else None
        aborted = None if found.aborted is None else tuple(sorted({*found.aborted, *(local.aborted or ())}))
        is_useless = bool(parts) and local.first_batch_is_cut
        every: tuple[Part, ...] = parts if local.range is None or is_useless else (*parts, local.range)
        return _fetched(now, every, local.first_batch_is_cut and not parts, aborted)

    def _chunks(
        self, archived: ArchivedLog, offset: int, border: int, max_bytes: int, *, one: bool, is_current: bool
    ) -> tuple[list[Chunk], int]:
        """Whole batches below the border, and the offset to go on at, which is the border if no more follow.

        `is_current`: as `archived` has them, not as an older manifest had them, whose aborted transactions it may not know.
        """
        end, path = min(border, archived.end_offset), archived.manifest.path
        while True:
            read = self.reads.begin(path, archived, offset, max_bytes)
            if is_current and read.archived is not archived:
                read.close()
                read = SequentialRead(path, archived, offset, max_bytes)
            until = min(end, read.end_offset)  # a read that was begun with an older manifest ends where that one does
            try:
                chunks, is_over = self._taken(read, until, max_bytes, one=one)
            except (NotFound, Corrupt):
                if read.archived is archived:
                    raise
                continue  # others may have taken the place of what an older manifest names: it is read anew
            if chunks or not is_over:
                return chunks, until if is_over else read.offset
            if until == end < border:
                raise self._missing(archived, end, border)
            if until == end:
                return chunks, end
            offset = until

    def _taken(self, read: SequentialRead, end: int, max_bytes: int, *, one: bool) -> tuple[list[Chunk], bool]:
        is_kept = False
        try:
            chunks, is_over = read.take(end, max_bytes, one_at_least=one)
            is_kept = not is_over
        finally:
            if is_kept:
                self.reads.end(read)
            else:
                read.close()
        return chunks, is_over

    def _missing(self, archived: ArchivedLog | None, offset: int, border: int) -> MissingRange:
        losses = archived.manifest.losses if archived else ()
        return MissingRange(str(self.partition), offset, border, reason_with(losses, offset, border, NOT_ARCHIVED))

    def _of_archive(self, through: int, ask: Callable[[ArchivedLog | None], T]) -> T:
        """The answer of the archive. A manifest that ends before offset `through` is loaded anew first.

        It is loaded anew, too, where an object is gone or an offset is not there: others may have taken their place.
        """
        loads, archived = self._loads, self._held
        if archived is None or archived.end_offset < through or self._held_since != self._refreshes:
            loads, archived = self._newest(loads)
        while True:
            try:
                return ask(archived)
            except (NotFound, Corrupt):
                loads, newest = self._newest(loads)
                if newest is archived:
                    raise
                archived = newest

    def _newest(self, loads: int) -> tuple[int, ArchivedLog | None]:
        """How often it was loaded, and the archive by the newest manifest; unless another thread has loaded it after `loads`."""
        with self._loading:
            if self._loads == loads:
                refreshes, held = self._refreshes, self._held
                newest = self.load()
                if newest is None or held is None or newest.manifest.version != held.manifest.version:
                    self._held = newest
                self._held_since = refreshes
                self._loads += 1
            return self._loads, self._held


@dataclass(frozen=True, slots=True)
class _Archived:
    chunks: list[Chunk]
    following: int
    aborted: tuple[AbortedTxn, ...] | None


def archive_loader(store: ObjectStore, path: PartitionPath, reading: ReadContext) -> Callable[[], ArchivedLog | None]:
    """Loads a partition's archive by its newest manifest; None if there is none, or the topic was deleted from it."""

    def load() -> ArchivedLog | None:
        newest = load_newest(store, path)
        return None if newest is None or newest.manifest.is_deleted else ArchivedLog(store, newest.manifest, reading=reading)

    return load


def _archived_through(now: LogOffsets) -> int:
    """The offset up to which the archive must have the log, since the local log has not; 0 if the local log has all of it."""
    return now.local_log_start if now.log_start < now.local_log_start else 0


def _fetched(now: LogOffsets, parts: tuple[Part, ...], is_cut: bool, aborted: tuple[AbortedTxn, ...] | None) -> FetchData:
    return FetchData(parts, now.log_start, now.high_watermark.offset, now.last_stable, is_cut, aborted)


def _chunks_of(records: bytes, name: str) -> Iterator[Chunk]:
    return read_chunks(lambda start, end: memoryview(records)[start:end], name, 0, len(records), first_bytes=max(len(records), 1))
