"""Reads ranges of archived segments in any encoding; the ranges count decoded bytes.

A range costs at most one request. A last chunk of which a range has only the begin is cached, so that a sequential reader decodes
each chunk once.
"""

from local_log.errors import Corrupt, Invalid
from local_log.formats.primitives import Buffer
from remote.keys import PartitionPath
from remote.lru_cache import LruCache
from remote.manifest.segment_entry import IDENTITY, SegmentEntry
from remote.segment_bytes import StoredBytes, get_named
from remote.store.api import Body, FileOpener, ObjectReader
from remote.transforms.encoded_segment import EncodedObject, EncodedSegment, encoded_segment, source_chunk_bytes
from remote.transforms.keys import KeyRing

SEGMENTS_KEPT_MAX = 64
CHUNKS_KEPT_MAX = 4
"""The number of concurrent sequential readers that are served from the cache; each takes one chunk of memory."""


class NotEncrypted(Corrupt):
    """A segment is not encrypted although the archive has keys: anybody who can write to the bucket may have put it there."""


class DecodedBytes:
    """A `SegmentBytes` for every encoding. Without `keys`, an encrypted segment raises NoKey.

    With keys and without `plain_allowed`, a segment that is not encrypted raises NotEncrypted.
    """

    def __init__(self, store: ObjectReader, keys: KeyRing | None = None, *, plain_allowed: bool = True) -> None:
        self.store = store
        self.keys = keys
        self.plain_allowed = plain_allowed
        self._stored = StoredBytes(store)
        self._segments: LruCache[str, EncodedSegment] = LruCache(SEGMENTS_KEPT_MAX)
        self._chunks: LruCache[tuple[str, int], bytes] = LruCache(CHUNKS_KEPT_MAX)

    def log(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> Body:
        """Also raises NoKey, WrongKey, NotEncrypted."""
        self.require_encryption(path, entry)
        if entry.encoding == IDENTITY:
            return self._stored.log(path, entry, start, end)
        found = self._segment(path, entry).log
        if _is_empty(found, start, end):
            return b""
        first, stop = overlapping = found.index.covering(start, end)
        chunks: list[bytes] = []
        while first < stop and (kept := self._chunks.get((found.key, first))) is not None:
            chunks.append(kept)
            first += 1
        if first < stop:
            chunks += self._decoded(found, first, stop)
            if end < found.index.source_range(stop - 1, stop)[1]:  # a sequential reader comes back for the rest of the chunk
                self._chunks.put((found.key, stop - 1), chunks[-1])
        return _slice(found, overlapping, chunks, start, end)

    def log_file(self, path: PartitionPath, entry: SegmentEntry) -> FileOpener | None:
        """Also raises NotEncrypted."""
        self.require_encryption(path, entry)
        return self._stored.log_file(path, entry)

    def aux(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> bytes:
        """Also raises NoKey, WrongKey, NotEncrypted."""
        self.require_encryption(path, entry)
        if entry.encoding == IDENTITY:
            return self._stored.aux(path, entry, start, end)
        found = self._segment(path, entry).aux
        if _is_empty(found, start, end):
            return b""
        overlapping = found.index.covering(start, end)
        return _slice(found, overlapping, self._decoded(found, *overlapping), start, end)

    def require_encryption(self, path: PartitionPath, entry: SegmentEntry) -> None:
        if self.plain_allowed or entry.is_encrypted:
            return
        raise NotEncrypted(
            "it is not encrypted, and may come from anybody who can write there. If segments were archived before they were "
            "encrypted, read them with --allow-plain (archive.encryption.required=false)",
            file=path.segment(entry.log_name),
        )

    def align(self, entry: SegmentEntry) -> int:
        """The source bytes of a chunk. Raises Corrupt."""
        return 1 if entry.encoding == IDENTITY else source_chunk_bytes(entry)

    def _segment(self, path: PartitionPath, entry: SegmentEntry) -> EncodedSegment:
        key = path.segment(entry.log_name)
        found = self._segments.get(key)
        if found is None:
            found = encoded_segment(path, entry, self.keys)
            self._segments.put(key, found)
        return found

    def _decoded(self, found: EncodedObject, first: int, stop: int) -> list[bytes]:
        return found.decode(first, stop, get_named(self.store, found.key, *found.index.stored_range(first, stop)))


def _is_empty(found: EncodedObject, start: int, end: int) -> bool:
    """Whether the range is empty. Raises Invalid if it is not inside the object."""
    if not 0 <= start <= end <= found.index.source_size:
        raise Invalid(f"{found.key} holds {found.index.source_size} source bytes, not [{start}, {end})")
    return start == end


def _slice(found: EncodedObject, overlapping: tuple[int, int], chunks: list[bytes], start: int, end: int) -> bytes:
    """The source bytes `[start, end)` out of the decoded chunks `[first, stop)`, copied once."""
    source_start, source_end = found.index.source_range(*overlapping)
    parts: list[Buffer] = list(chunks)
    parts[-1] = memoryview(parts[-1])[: len(parts[-1]) - (source_end - end)]
    parts[0] = memoryview(parts[0])[start - source_start :]
    return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)
