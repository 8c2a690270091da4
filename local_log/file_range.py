"""A part of a file that holds batches: a server sends it with sendfile, or reads its bytes.

The file is open, so its bytes can be read for as long as the range is referenced, also after somebody has renamed and deleted it.
Appends only write after the range. What can change its bytes is a truncation alone: the file is cut below them, and other batches
may be written there. Therefore

- `read` returns the bytes as they were when the range was found, or raises Conflict;
- who sends the file itself calls `check` before each part and after the last byte. On Conflict the receiver has perhaps got bytes
  of other batches, or too few: close its connection, so that it fetches again. What changes after the system has taken the bytes
  and before they are on the wire, only the checksums of the batches tell. Kafka leaves all of it to them.
"""

from typing import NamedTuple, Protocol

from local_log.errors import Conflict
from local_log.formats.primitives import Buffer


class FileState(NamedTuple):
    """Identifies a file and its version: it differs for another file of the same name, and after a write."""

    device: int
    inode: int
    size: int
    modified_ns: int


class OpenedFile(Protocol):
    """A file that is open while this object is referenced: also after it was renamed or deleted, it can be read."""

    def fileno(self) -> int:
        """The descriptor, which others use, too: it must be neither closed nor moved."""

    def mapped(self, start: int, end: int) -> memoryview | None:
        """Bytes `[start, end)` where the system keeps them, to be handed to system calls alone; None if they cannot be had so.

        Where the file is truncated meanwhile, a system call fails with EFAULT, and a look from here ends the process.
        """

    def read(self, start: int, end: int) -> bytes:
        """Bytes `[start, end)`, fewer if the file ends sooner. Raises Unreadable."""

    def read_large(self, start: int, end: int) -> Buffer:
        """As `read`, for ranges that are large: it reuses memory. Raises Unreadable."""

    def state(self) -> FileState:
        """The identity and version of the open file, whatever has its name now. Raises Unreadable."""


class Source(Protocol):
    """Who found a range, and knows what has become of it."""

    def is_unchanged(self, seen: object) -> bool:
        """Whether the bytes are those of when `seen` was noted, with the range."""


class FileRange(NamedTuple):
    """`size` bytes of `file` from byte `position` on. `seen` is what `source` noted of the log or the file at that time."""

    file: OpenedFile
    position: int
    size: int
    source: Source
    seen: object

    def fileno(self) -> int:
        """The file's descriptor, for sendfile with `position` and `size`. Neither close nor seek it: others use it, too."""
        return self.file.fileno()

    def mapped(self) -> memoryview | None:
        """The bytes, not read: see `OpenedFile`."""
        return self.file.mapped(self.position, self.position + self.size)

    def read(self) -> bytes:
        """The bytes. Raises Conflict if the log was truncated since the range was found."""
        data = self.file.read(self.position, self.position + self.size)
        self.check()
        return data

    def check(self) -> None:
        """Raises Conflict if the log was truncated since the range was found: what was read from the file may be wrong."""
        if not self.source.is_unchanged(self.seen):
            end = self.position + self.size
            raise Conflict(f"bytes {self.position} to {end} of a log file: the log has been truncated meanwhile; fetch again")

    def first(self, bytes_max: int) -> "FileRange":
        """Its first bytes, all if they are not more."""
        return self if self.size <= bytes_max else FileRange(self.file, self.position, bytes_max, self.source, self.seen)

    def after(self, count: int) -> "FileRange":
        """What is left without the first `count` bytes."""
        return FileRange(self.file, self.position + count, self.size - count, self.source, self.seen)


def size_of(part: Buffer | FileRange) -> int:
    """The bytes of a part of an answer."""
    return part.size if isinstance(part, FileRange) else len(part)
