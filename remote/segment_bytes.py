"""Reads the original bytes of an archived segment, whatever its encoding. Everything that reads segments uses this protocol.

Implementations decode: callers ask for ranges of the segment's log and of its aux object, and need not know where these are in
the stored objects.
"""

from dataclasses import dataclass
from typing import Protocol

from local_log.errors import BadRange, Corrupt, Missing, Newer, NotFound
from local_log.file_range import OpenedFile
from remote.keys import PartitionPath
from remote.manifest.segment_entry import IDENTITY, SegmentEntry
from remote.store.api import Body, FileOpener, ObjectReader, file_opener


class SegmentBytes(Protocol):
    """Reads ranges of segments. Implementations are thread-safe.

    `log`, `log_file` and `aux` raise Corrupt, with the position in the object, if an object that a manifest names is missing, too
    short or cannot be decoded; also Unavailable, Newer for an unknown encoding, and Invalid if the store denies access.
    """

    def log(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> Body:
        """Exactly bytes `[start, end)` of the segment's log file; `end` is at most `entry.log_size`."""

    def log_file(self, path: PartitionPath, entry: SegmentEntry) -> FileOpener | None:
        """Opens the segment's log file, where its bytes lie in a file as they are; else None. It raises as `log` does."""

    def aux(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> bytes:
        """Exactly bytes `[start, end)` of the segment's aux object; `entry.aux_ranges` gives positions in it."""

    def require_encryption(self, path: PartitionPath, entry: SegmentEntry) -> None:
        """Raises NotEncrypted if the segment is not encrypted but has to be.

        Caches call this before they return bytes, because a reader without keys may have filled the cache.
        """

    def align(self, entry: SegmentEntry) -> int:
        """The alignment in bytes at which consecutive reads of the log should end."""


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """Segments without encoding (IDENTITY): a range of the file is the same range of the object, and costs one request."""

    store: ObjectReader

    def log(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> Body:
        return self._get(path.segment(entry.log_name), entry, start, end)

    def log_file(self, path: PartitionPath, entry: SegmentEntry) -> FileOpener | None:
        key = path.segment(entry.log_name)
        opener = file_opener(self.store, key) if entry.encoding == IDENTITY else None
        if opener is None:
            return None

        def opened() -> OpenedFile:
            try:
                return opener()
            except NotFound as e:
                problem = f"the manifest names it, and it is not there: restore the object from a copy ({e})"
                raise Missing(problem, file=key) from e

        return opened

    def aux(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> bytes:
        return bytes(self._get(path.segment(entry.aux_name), entry, start, end))

    def require_encryption(self, path: PartitionPath, entry: SegmentEntry) -> None:
        """Accepts every segment."""

    def align(self, entry: SegmentEntry) -> int:
        """1: reads may end anywhere."""
        return 1

    def _get(self, key: str, entry: SegmentEntry, start: int, end: int) -> Body:
        if entry.encoding != IDENTITY:
            raise Newer(f"{key} is encoded as {entry.encoding!r}, which this version does not read: upgrade kafka-tiering")
        return get_named(self.store, key, start, end)


def get_named(store: ObjectReader, key: str, start: int, end: int) -> Body:
    """Bytes `[start, end)` of an object that a manifest names. If it is missing or too short, the archive is damaged.

    Raises Missing, Corrupt, Unavailable, Invalid (the store denies access).
    """
    try:
        return store.get_range(key, start, end)
    except (NotFound, BadRange) as e:
        problem = f"the manifest names it, and bytes [{start}, {end}) are not there: restore the object from a copy ({e})"
        kind = Corrupt if isinstance(e, BadRange) else Missing
        raise kind(problem, file=key, position=start) from e
