"""A part of a log file that holds batches: a server sends it with sendfile, or reads its bytes.

The file is open, so its bytes can be read for as long as the range is referenced, also after retention or compaction has renamed
and deleted the file. Appends only write after the range. What can change its bytes is a truncation alone: the log is cut below
them, and other batches may be written there. It is announced before the first byte changes. Therefore

- `read` returns the bytes as they were when the range was found, or raises Conflict;
- who sends the file itself calls `check` after the last byte is sent. On Conflict the receiver has perhaps got bytes of other
  batches, or too few: close its connection, so that it fetches again. Kafka leaves that to the receiver's checksums.
"""

from typing import NamedTuple

from local_log.disk import OpenedFile
from local_log.engine.local_log import Slice
from local_log.engine.offsets import OffsetMetadata
from local_log.engine.published import PublishedOffsets
from local_log.errors import Conflict
from local_log.formats.indexes.transaction import AbortedTxn

_tuple = tuple.__new__  # as a named tuple's constructor, in a third of its time


class FileRange(NamedTuple):
    """`size` bytes of `file` from byte `position` on. `truncations` is the log's number of them when the range was found."""

    file: OpenedFile
    position: int
    size: int
    published: PublishedOffsets
    truncations: int

    def fileno(self) -> int:
        """The file's descriptor, for sendfile with `position` and `size`. Neither close nor seek it: others use it, too."""
        return self.file.fileno()

    def read(self) -> bytes:
        """The bytes. Raises Conflict if the log was truncated since the range was found."""
        data = self.file.read(self.position, self.position + self.size)
        self.check()
        return data

    def check(self) -> None:
        """Raises Conflict if the log was truncated since the range was found: what was read from the file may be wrong."""
        if self.published.truncations != self.truncations:
            end = self.position + self.size
            raise Conflict(f"bytes {self.position} to {end} of a log file: the log has been truncated meanwhile; fetch again")


class FetchedRange(NamedTuple):
    """As `Fetched`, with the batches where they lie; `range` is None if there are none."""

    start: OffsetMetadata
    range: FileRange | None
    first_batch_is_cut: bool
    aborted: tuple[AbortedTxn, ...] | None


def range_of(found: Slice, published: PublishedOffsets) -> FetchedRange:
    """What was found in a log, with its file opened, within `PublishedOffsets.undisturbed`. Raises NotFound, Unreadable."""
    start, segment, size, is_cut, aborted = found
    if segment is None:
        return FetchedRange(start, None, is_cut, aborted)
    place = _tuple(FileRange, (segment.open(), start.position, size, published, published.truncations))
    return _tuple(FetchedRange, (start, place, is_cut, aborted))
