"""Reads of batches for fetches: ranges of files where the batches lie in files as they are, else bytes.

A read of bytes goes on where an earlier one ended: nothing is looked up or requested twice.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from local_log.checked_files import CheckedFiles
from local_log.errors import LogError
from local_log.file_range import FileRange, size_of
from local_log.formats.chunks import Chunk
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.primitives import Buffer
from local_log.log_reader import LogReader
from tiering.read.archive_reads import ArchiveReads
from tiering.read.tiered_log import Isolation, TieredLog

OPEN_MAX = 16
"""Reads that are kept open, for so many consumers of one partition each. Each holds 8 MiB of batches, and what it is ahead."""


class NotAtHand(Exception):
    """An answer cannot be given at once: a store, a disk or another thread has to be waited for."""


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
    _kept: ArchiveReads = field(default_factory=lambda: ArchiveReads(OPEN_MAX))

    def read_at_once(self, log: TieredLog, offset: int, max_bytes: int, *, one_at_least: bool) -> Batches:
        """As `read` for read_uncommitted, of what lies in files and was checked before. Raises NotAtHand for anything else."""
        end, following, size = log.end_offset(), offset, 0
        parts: tuple[FileRange, ...] = ()
        while following < end and (max_bytes > size or one_at_least):
            file = log.batch_file(following, Isolation.read_uncommitted) if log.is_at_hand(following) else None
            if file is None:
                raise NotAtHand
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

    def read(self, log: TieredLog, offset: int, max_bytes: int, isolation: Isolation, *, one_at_least: bool) -> Batches:
        """Batches from the one with `offset` on, up to `max_bytes`; their checksums are checked.

        With `one_at_least` the first is there even if it is larger.

        `offset` is in the log, or its end. Raises Corrupt, Unavailable, NotFound, and MissingRange if no tier has the offset.
        """
        end, next_offset = log.end_offset(isolation), offset
        parts: tuple[Buffer | FileRange, ...] = ()
        if offset < end and (max_bytes or one_at_least):
            parts, next_offset = self._parts(log, offset, max_bytes, isolation, one_at_least=one_at_least)
        aborted = None
        if isolation is Isolation.read_committed:
            aborted = log.aborted(offset, next_offset, isolation) if parts else ()
        return Batches(parts, sum(map(size_of, parts)), aborted, next_offset if parts else offset)

    def close(self) -> None:
        """Cancels what is requested ahead."""
        self._kept.forget()

    def _parts(
        self, log: TieredLog, offset: int, max_bytes: int, isolation: Isolation, *, one_at_least: bool
    ) -> tuple[tuple[Buffer | FileRange, ...], int]:
        """The parts, and the offset after them. An error is raised when nothing can be read before it."""
        parts: tuple[Buffer | FileRange, ...] = ()
        end = log.end_offset(isolation)
        try:
            while (file := log.batch_file(offset, isolation)) is not None:
                found = self._files.locate(file, offset, max_bytes, one_at_least=one_at_least)
                if found.range is not None:
                    parts, offset, one_at_least = (*parts, found.range), found.next_offset, False
                    max_bytes -= found.range.size
                is_full = max_bytes <= 0 and not one_at_least
                if not found.is_over or file.next_offset is None or is_full:
                    return parts, offset
                offset = max(offset, file.next_offset)
            if offset >= end:
                return parts, offset
            chunks, is_over = self._taken(log, offset, max_bytes, isolation, one_at_least=one_at_least)
            if is_over and not chunks:  # the read that was kept is of before the last batches were there
                chunks, _ = self._taken(log, offset, max_bytes, isolation, one_at_least=one_at_least)
        except LogError:
            if not parts:
                raise
            return parts, offset
        return (*parts, *map(_bytes_of, chunks)), chunks[-1].batches.next_offset if chunks else offset

    def _taken(
        self, log: TieredLog, offset: int, max_bytes: int, isolation: Isolation, *, one_at_least: bool
    ) -> tuple[list[Chunk], bool]:
        read = self._kept.begin(_place(log), _BothTiers(log, isolation), offset, max_bytes)
        is_kept = False
        try:
            chunks, is_over = read.take(log.end_offset(isolation), max_bytes, one_at_least=one_at_least)
            is_kept = not is_over
        finally:
            if is_kept:
                self._kept.end(read)
            else:
                read.close()
        return chunks, is_over


def _place(log: TieredLog) -> tuple[str, str]:
    """Tells logs apart, also those of topics of one name."""
    if log.archived is not None:
        return log.archived.manifest.topic_id, log.name
    return log.local.topic_id if isinstance(log.local, LogReader) else "", log.name


def _bytes_of(chunk: Chunk) -> memoryview:
    chunk.check()
    batches = chunk.batches
    return memoryview(chunk.buffer)[int(batches.positions[0]) : int(batches.end[-1])]
