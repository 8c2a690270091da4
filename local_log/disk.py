"""The file system as our code sees it: `Disk` only reads, as in a live broker's folder; `WritableDisk` is what an engine needs.

`local_log.os_disk` is the real one, and the only module that touches it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from local_log.formats.primitives import Buffer

Writer = Callable[[int, bytes], None]
"""Puts bytes at a position of a file."""


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells a file from another one that has taken its name, and from itself before it was written to."""

    device: int
    inode: int
    size: int
    modified_ns: int


class Disk(Protocol):
    """Files and folders by path. Every verb raises NotFound for a path that is not there (a broker deletes under our feet)
    and Unreadable for one that the operating system does not give."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""

    def is_folder(self, path: str) -> bool:
        """Whether the path is a folder."""

    def size(self, file: str) -> int:
        """Bytes of a file."""

    def modified_ms(self, file: str) -> int:
        """When the file was last written, in milliseconds since 1970."""

    def state(self, file: str) -> FileState:
        """Which file it is, and as of when."""

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        """Bytes `[start, end)` of a file, fewer where it ends sooner. They are copied: a mapped file that shrinks kills us."""

    def read_large(self, file: str, start: int, end: int) -> Buffer:
        """The same of a range of megabytes, into memory that is used again: fresh pages would cost more than the reading."""


class WritableDisk(Disk, Protocol):
    """What an engine does to its files. As in Disk, NotFound and Unreadable are what can go wrong.

    What was written is sure to be there after a power failure only when `sync` of the file has returned; that a file is there
    under its name, only when `sync_folder` of its folder has.
    """

    def exists(self, path: str) -> bool:
        """Whether there is a file or a folder."""

    def is_file(self, path: str) -> bool:
        """Whether there is a file."""

    def files(self, folder: str) -> list[str]:
        """The names of the files in a folder, sorted."""

    def write(self, file: str, start: int, data: bytes) -> None:
        """Puts bytes at a position, making the file where there is none; a gap before them is zeros."""

    def writer(self, file: str) -> Writer:
        """`write` of one file, for who writes to it again and again, until it is renamed or deleted."""

    def truncate(self, file: str, size: int) -> None:
        """Cuts the file, or lengthens it with zeros, to `size` bytes."""

    def rename(self, path: str, to: str) -> None:
        """Gives a file or folder another name in one step; a file of that name is replaced."""

    def delete(self, file: str) -> bool:
        """Removes a file; False where there is none."""

    def make_folder(self, folder: str) -> None:
        """Makes a folder and those above it that are missing."""

    def delete_folder(self, folder: str) -> None:
        """Removes a folder and all that is in it."""

    def sync(self, file: str) -> None:
        """Returns when the file's bytes are on the device."""

    def sync_folder(self, folder: str) -> None:
        """Returns when the folder's names are on the device."""

    def set_modified_ms(self, file: str, ms: int) -> None:
        """States when the file was last written."""

    def real_path(self, path: str) -> str:
        """The path without links, the same for all names of one folder."""

    def lock(self, file: str) -> bool:
        """Takes the file's lock, making it where there is none; False where somebody has it, in this process or another."""

    def unlock(self, file: str) -> None:
        """Lets go of a lock that `lock` took, and removes the file."""

    def release(self, path: str) -> None:
        """Lets go of what is kept open of a file or of a folder's files. They may be used again."""


def replace_file(disk: WritableDisk, file: str, data: bytes) -> None:
    """Puts `data` in place of a file's content: the old content or the new one is there at every moment, also after a crash."""
    temporary = f"{file}.tmp"
    disk.write(temporary, 0, data)
    disk.truncate(temporary, len(data))
    disk.sync(temporary)
    disk.rename(temporary, file)
    disk.sync_folder(parent_of(file))


def parent_of(path: str) -> str:
    """The folder that a path is in."""
    folder, slash, _ = path.rpartition("/")
    return folder or slash or "."
