"""The one door to the file system. What reads a live broker's folder goes through here and only reads."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from local_log.errors import NotFound, Unreadable


class Disk(Protocol):
    """Files and folders by path. Every verb raises NotFound for a path that is not there (a broker deletes under our feet)
    and Unreadable for one that the operating system does not give."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""

    def is_folder(self, path: str) -> bool:
        """Whether the path is a folder."""

    def size(self, file: str) -> int:
        """Bytes of a file."""

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        """Bytes `[start, end)` of a file, fewer where it ends sooner. They are copied: a mapped file that shrinks kills us."""


class OsDisk:
    """The operating system's files."""

    def names(self, folder: str) -> list[str]:
        """See Disk."""
        with _translated(folder):
            return sorted(os.listdir(folder))

    def is_folder(self, path: str) -> bool:
        """See Disk."""
        return os.path.isdir(path)

    def size(self, file: str) -> int:
        """See Disk."""
        with _translated(file):
            return os.stat(file).st_size

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        """See Disk."""
        with _translated(file):
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                left = (os.fstat(descriptor).st_size if end is None else end) - start
                parts: list[bytes] = []
                while left > 0 and (part := os.pread(descriptor, left, start)):
                    parts.append(part)
                    start += len(part)
                    left -= len(part)
                return parts[0] if len(parts) == 1 else b"".join(parts)
            finally:
                os.close(descriptor)


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as e:
        raise NotFound(f"{path}: no such file or folder") from e
    except (OSError, ValueError) as e:
        raise Unreadable(f"{path}: {e}; mend it, then try again") from e
