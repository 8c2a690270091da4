"""The bytes of an archived segment as they were before it was archived: the one seam below everything that reads segments.

What an entry's encoding does to the bytes is undone here: whoever reads asks for ranges of the segment's log and of what lay
beside it, and never learns which bytes of which object they came from.
"""

from dataclasses import dataclass
from typing import Protocol

from local_log.errors import BadRange, Corrupt, Newer, NotFound
from remote.keys import PartitionPath
from remote.manifest.model import IDENTITY, SegmentEntry
from remote.store.api import Body, ObjectReader


class SegmentBytes(Protocol):
    """Reads ranges of segments. Called from several threads at once.

    Both verbs raise Corrupt, placed in the object (what a manifest names and is missing, short or cannot be decoded is damage),
    Unavailable, Newer for an encoding that this version does not know, and Invalid where the store refuses.
    """

    def log(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> Body:
        """Exactly bytes `[start, end)` of the segment's log file; `end` is at most `entry.log_size`."""

    def aux(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> bytes:
        """Exactly bytes `[start, end)` of what lay beside it, in which `entry.aux_ranges` count."""

    def require_encryption(self, path: PartitionPath, entry: SegmentEntry) -> None:
        """Raises NotEncrypted for a segment in the clear that must not be read, before any of its bytes are, wherever they lie.

        Whoever keeps bytes of segments asks this before it gives them: what is kept may be of somebody who has no keys.
        """

    def align(self, entry: SegmentEntry) -> int:
        """Where ranges of the log that are read one after the other best meet: at multiples of so many bytes."""


@dataclass(frozen=True, slots=True)
class StoredBytes:
    """Segments that were archived byte for byte: a range of the file is that range of the object, and costs one request."""

    store: ObjectReader

    def log(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> Body:
        """See SegmentBytes."""
        return self._get(path.segment(entry.log_name), entry, start, end)

    def aux(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> bytes:
        """See SegmentBytes."""
        return bytes(self._get(path.segment(entry.aux_name), entry, start, end))

    def require_encryption(self, path: PartitionPath, entry: SegmentEntry) -> None:
        """See SegmentBytes: nothing is refused."""

    def align(self, entry: SegmentEntry) -> int:
        """See SegmentBytes: anywhere."""
        return 1

    def _get(self, key: str, entry: SegmentEntry, start: int, end: int) -> Body:
        if entry.encoding != IDENTITY:
            raise Newer(f"{key} is encoded as {entry.encoding!r}, which this version does not read: upgrade kafka-tiering")
        return get_named(self.store, key, start, end)


def get_named(store: ObjectReader, key: str, start: int, end: int) -> Body:
    """Bytes `[start, end)` of an object that a manifest names: that it is missing or short is damage.

    Raises Corrupt, Unavailable, Invalid (the store refuses).
    """
    try:
        return store.get_range(key, start, end)
    except (NotFound, BadRange) as e:
        problem = f"the manifest names it, and bytes [{start}, {end}) are not there: restore the object from a copy ({e})"
        raise Corrupt(problem, file=key, position=start) from e
