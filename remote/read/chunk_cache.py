"""A disk cache of archived segments in aligned chunks; adjacent missing chunks are fetched with one request.

Chunks hold decoded bytes, so whoever can read the folder can read the records. Encrypted segments are therefore not cached.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from remote.keys import PartitionPath
from remote.manifest.segment_entry import SegmentEntry
from remote.read.cache_files import CacheFiles
from remote.segment_bytes import SegmentBytes
from remote.store.api import Body, FileOpener

SUFFIX: Final = ".chunk"
CHUNK_BYTES: Final = 1 << 20
FILES_BYTES_MAX: Final = 4 << 30


@dataclass(frozen=True, slots=True)
class ChunkCache:
    """Chunks of segments' logs, `chunk_bytes` each, in files. Encrypted segments are read without the cache."""

    files: CacheFiles
    chunk_bytes: int = CHUNK_BYTES

    def forget(self, entry: SegmentEntry, start: int, end: int) -> None:
        """Deletes the chunks that hold bytes `[start, end)` of a segment, because they are damaged."""
        for number in self._numbers(start, end):
            self.files.remove(_name(entry, number))

    def read(self, entry: SegmentEntry, start: int, end: int, fetch: Callable[[int, int], Body]) -> Body:
        """Bytes `[start, end)` of a segment's log; missing chunks are read with `fetch(start, end)`, adjacent ones together."""
        if entry.is_encrypted:
            return fetch(start, end)
        kept = [(number, self._kept(entry, number)) for number in self._numbers(start, end)]
        chunks: list[bytes] = []
        for body, run in groupby(kept, key=lambda item: item[1]):
            chunks.extend([body] if body is not None else self._fetched(entry, [number for number, _ in run], fetch))
        first = start // self.chunk_bytes * self.chunk_bytes
        return b"".join(chunks)[start - first : end - first]

    def _fetched(self, entry: SegmentEntry, numbers: list[int], fetch: Callable[[int, int], Body]) -> list[bytes]:
        start = numbers[0] * self.chunk_bytes
        body = fetch(start, min(entry.log_size, (numbers[-1] + 1) * self.chunk_bytes))
        chunks = [bytes(body[at : at + self.chunk_bytes]) for at in range(0, len(body), self.chunk_bytes)]
        for number, chunk in zip(numbers, chunks, strict=True):
            self.files.put(_name(entry, number), chunk)
        return chunks

    def _kept(self, entry: SegmentEntry, number: int) -> bytes | None:
        body = self.files.get(_name(entry, number))
        expected = min(self.chunk_bytes, entry.log_size - number * self.chunk_bytes)
        return body if body is not None and len(body) == expected else None

    def _numbers(self, start: int, end: int) -> range:
        return range(start // self.chunk_bytes, -(-end // self.chunk_bytes)) if end > start else range(0)


@dataclass(frozen=True, slots=True)
class CachedBytes:
    """A `SegmentBytes` with a chunk cache for the log. The aux object is not cached here; see IndexCache."""

    source: SegmentBytes
    cache: ChunkCache

    def log(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> Body:
        self.source.require_encryption(path, entry)
        return self.cache.read(entry, start, end, lambda a, b: self.source.log(path, entry, a, b))

    def log_file(self, path: PartitionPath, entry: SegmentEntry) -> FileOpener | None:
        return self.source.log_file(path, entry)

    def aux(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> bytes:
        return self.source.aux(path, entry, start, end)

    def require_encryption(self, path: PartitionPath, entry: SegmentEntry) -> None:
        self.source.require_encryption(path, entry)

    def align(self, entry: SegmentEntry) -> int:
        return self.source.align(entry)


def _name(entry: SegmentEntry, number: int) -> str:
    """The file's name has the checksum, because two archives may have segments with the same id."""
    return f"{entry.segment_id}-{entry.log_crc32c:08x}-{number}"
