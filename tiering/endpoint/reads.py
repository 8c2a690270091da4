"""Reads of batches for fetches: ranges of files where the batches lie in files as they are, else bytes.

What lies in a store, or is encoded, is read through a cache that all consumers share.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from local_log.batch_file import BatchFile
from local_log.checked_files import CheckedFiles
from local_log.errors import LogError
from local_log.file_range import FileRange, FileState, size_of
from local_log.formats.chunks import Chunk
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.primitives import Buffer
from remote.read.checked_windows import CheckedWindow, NoRoom, NotThere
from remote.read.log import ArchivedLog
from remote.read.shared_reads import Found, SharedReads
from remote.read.window_cache import Window, WindowCache
from tiering.endpoint.at_hand import NotAtHand
from tiering.endpoint.recent_files import RecentFiles
from tiering.read.archive_reads import SequentialRead
from tiering.read.fetched import joined
from tiering.read.tiered_log import Isolation, TieredLog

CHUNK_CACHE_BYTES: Final = 256 << 20


class Batches(NamedTuple):
    """Whole batches in a row, not copied, and the aborted transactions among them, None for read_uncommitted."""

    parts: tuple[Buffer | FileRange, ...]
    size: int
    aborted: tuple[AbortedTxn, ...] | None
    next_offset: int
    """Where the batch after them begins, if there is one."""


@dataclass(frozen=True, slots=True)
class _BothTiers:
    """A log as `ArchiveReads` reads it."""

    log: TieredLog
    isolation: Isolation

    @property
    def end_offset(self) -> int:
        return self.log.end_offset(self.isolation)

    def chunks(self, start_offset: int, end_offset: int) -> Iterator[Chunk]:
        return self.log.chunks(start_offset, end_offset, self.isolation)

    def first_chunks(self, start_offset: int, end_offset: int, wanted_bytes: int) -> Iterator[Chunk]:
        return self.log.chunks(start_offset, end_offset, self.isolation, wanted_bytes)


@dataclass(slots=True)
class Reads:
    """For many threads: a read belongs to the thread that has taken it."""

    _files: CheckedFiles = field(default_factory=CheckedFiles)
    _recent: RecentFiles = field(default_factory=RecentFiles)
    """Of the thread that reads at once."""
    shared: SharedReads = field(default_factory=lambda: SharedReads(WindowCache(CHUNK_CACHE_BYTES)))
    """Of what lies in a store, or is encoded."""

    def read_at_once(
        self,
        log: TieredLog,
        offset: int,
        max_bytes: int,
        isolation: Isolation = Isolation.read_uncommitted,
        *,
        one_at_least: bool,
    ) -> Batches:
        """As `read`, of a log that this process writes, or for read_uncommitted what lies in files and was checked before.

        Raises NotAtHand for anything else.
        """
        own = _own(log, offset, max_bytes, isolation, one_at_least=one_at_least)
        if own is not None:
            return own
        if isolation is not Isolation.read_uncommitted:
            raise NotAtHand
        return self._checked_at_once(log, offset, max_bytes, one_at_least=one_at_least)

    def _checked_at_once(self, log: TieredLog, offset: int, max_bytes: int, *, one_at_least: bool) -> Batches:
        end, following, size = log.end_offset(), offset, 0
        parts: tuple[Buffer | FileRange, ...] = ()
        while following < end and (max_bytes > size or one_at_least):
            if not log.is_at_hand(following):
                raise NotAtHand
            file = self._recent.batch_file(log, following)
            if file is None:
                shared = self._shared_at_once(log, (following, end), max_bytes - size, one_at_least=one_at_least)
                parts, size, following = (*parts, *shared.parts), size + shared.size, shared.next_offset
                one_at_least = one_at_least and not shared.parts
                if not shared.is_over:
                    break
                continue
            located = self._files.locate_checked(file, following, max_bytes - size, one_at_least=one_at_least)
            if located is None:
                raise NotAtHand
            found, next_offset, is_over = located
            if found is not None:
                parts, following, one_at_least = (*parts, found), next_offset, False
                size += found.size
            if not is_over or file.next_offset is None:
                break
            following = max(following, file.next_offset)
        return Batches(parts, size, None, following if parts else offset)

    def file_at_once(self, log: TieredLog, offset: int) -> BatchFile | None:
        """The file that `read_at_once` reads an offset from, by the same thread; None if it is in none. Raises LogError."""
        return self._recent.batch_file(log, offset)

    def checked_at_once(self, file: BatchFile) -> tuple[FileState, Any] | None:
        """What was checked of a file: see `CheckedFiles.checked`."""
        return self._files.checked(file)

    def lent(self, log: TieredLog, offset: int) -> CheckedWindow | None:
        """What of the archive a read that ended at an offset goes on with: see `SharedReads.lend`. Raises LogError."""
        archived = log.archived_part(offset, Isolation.read_uncommitted)
        return None if archived is None else self.shared.lend(_place(archived[0]), archived[0], (offset, archived[1]))

    def is_lent(self, window: Window) -> bool:
        """Whether the cache has it yet, so that it costs no memory besides."""
        return self.shared.cache.there(window.segment, window.start) is window

    def forget_recent(self) -> None:
        """Closes the files that `read_at_once` has left open; to be called every second, by the same thread."""
        self._recent.forget()

    def read(self, log: TieredLog, offset: int, max_bytes: int, isolation: Isolation, *, one_at_least: bool) -> Batches:
        """Batches from the one with `offset` on, up to `max_bytes`; their checksums are checked.

        With `one_at_least` the first is there even if it is larger.

        `offset` is in the log, or its end. Raises Corrupt, Unavailable, NotFound, and MissingRange if no tier has the offset.
        """
        own = _own(log, offset, max_bytes, isolation, one_at_least=one_at_least)
        if own is not None:
            return own
        end, next_offset = log.end_offset(isolation), offset
        parts: tuple[Buffer | FileRange, ...] = ()
        is_committed, known = isolation is Isolation.read_committed, tuple[AbortedTxn, ...]()
        left = max_bytes
        while next_offset < end and (left > 0 or (one_at_least and not parts)):
            try:
                until, known = log.committed_part(next_offset, end) if is_committed else (end, ())
                asked = next_offset, until
                more, next_offset = self._parts(log, asked, left, isolation, one_at_least=one_at_least and not parts)
            except LogError:
                if not parts:
                    raise
                break
            parts, left = (*parts, *more), left - sum(map(size_of, more))
            if next_offset < until or until == end:
                break
        aborted = None
        if is_committed:
            aborted = joined(log.aborted(offset, next_offset, isolation), known, offset, next_offset) if parts else ()
        return Batches(parts, sum(map(size_of, parts)), aborted, next_offset if parts else offset)

    def close(self) -> None:
        """Cancels what is requested ahead."""
        self.shared.close()

    def _parts(
        self, log: TieredLog, offsets: tuple[int, int], max_bytes: int, isolation: Isolation, *, one_at_least: bool
    ) -> tuple[tuple[Buffer | FileRange, ...], int]:
        """The parts, and the offset after them. An error is raised when nothing can be read before it."""
        parts: tuple[Buffer | FileRange, ...] = ()
        offset, end = offsets
        try:
            while offset < end and (max_bytes > 0 or one_at_least):
                file = log.batch_file(offset, isolation)
                if file is None:
                    shared = self._shared(log, (offset, end), max_bytes, isolation, one_at_least=one_at_least)
                    if shared.parts:
                        parts, one_at_least, max_bytes = (*parts, *shared.parts), False, max_bytes - shared.size
                    offset = shared.next_offset
                    if not shared.is_over:
                        break
                    continue
                found = self._files.locate(file, offset, max_bytes, one_at_least=one_at_least)
                if found.range is not None:
                    parts, offset, one_at_least = (*parts, found.range), found.next_offset, False
                    max_bytes -= found.range.size
                if not found.is_over or file.next_offset is None:
                    break
                offset = max(offset, file.next_offset)
        except LogError:
            if not parts:
                raise
        return parts, offset

    def _shared(
        self, log: TieredLog, offsets: tuple[int, int], max_bytes: int, isolation: Isolation, *, one_at_least: bool
    ) -> Found:
        """Batches from the archive by the cache, or without it where it has no room."""
        archived = log.archived_part(offsets[0], isolation)
        if archived is not None:
            try:
                asked = offsets[0], archived[1]
                found = self.shared.read(_place(archived[0]), archived[0], asked, max_bytes, one_at_least=one_at_least)
            except NoRoom:
                pass
            else:
                return found._replace(next_offset=max(found.next_offset, archived[1])) if found.is_over else found
        read = SequentialRead(log.name, _BothTiers(log, isolation), offsets[0], max_bytes)
        try:
            chunks, is_over = read.take(offsets[1], max_bytes, one_at_least=one_at_least)
        finally:
            read.close()
        parts = tuple(map(_bytes_of, chunks))
        return Found(parts, sum(map(len, parts)), offsets[1] if is_over else read.offset, is_over)

    def _shared_at_once(self, log: TieredLog, offsets: tuple[int, int], max_bytes: int, *, one_at_least: bool) -> Found:
        """The same for read_uncommitted, of what is in the cache and was checked. Raises NotAtHand for anything else."""
        archived = log.archived_part(offsets[0], Isolation.read_uncommitted)
        if archived is None:
            raise NotAtHand
        place, asked = _place(archived[0]), (offsets[0], archived[1])
        try:
            found = self.shared.read(place, archived[0], asked, max_bytes, one_at_least=one_at_least, waits=False)
        except (NotThere, NoRoom, LogError) as e:
            raise NotAtHand from e
        return found._replace(next_offset=max(found.next_offset, archived[1])) if found.is_over else found


def _own(log: TieredLog, offset: int, max_bytes: int, isolation: Isolation, *, one_at_least: bool) -> Batches | None:
    """What a log that this process writes has of its own files; None for what is read as that of others."""
    own = log.own_range(offset, max_bytes, isolation, one_at_least=one_at_least)
    if own is None:
        return None
    found, next_offset, aborted = own
    return Batches((), 0, aborted, next_offset) if found is None else Batches((found,), found.size, aborted, next_offset)


def _place(archived: ArchivedLog) -> tuple[str, str]:
    """Tells logs apart, also those of topics of one name."""
    manifest = archived.manifest
    return manifest.topic_id, f"{manifest.topic}-{manifest.partition}"


def _bytes_of(chunk: Chunk) -> memoryview:
    chunk.check()
    batches = chunk.batches
    return memoryview(chunk.buffer)[int(batches.positions[0]) : int(batches.end[-1])]
