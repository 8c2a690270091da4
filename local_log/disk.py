"""The file system. `Disk` only reads, as from a live broker's folder; `WritableDisk` is what the storage engine uses.

`local_log.os_disk` implements both, and is the only module that accesses the operating system's files.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from local_log.errors import NotFound, Unreadable
from local_log.file_range import FileState, OpenedFile
from local_log.formats.checksum import crc32c
from local_log.formats.primitives import Buffer

_PART_BYTES: Final = 8 << 20

Writer = Callable[[int, bytes], None]
"""Writes bytes at a position of a file."""


@dataclass(frozen=True, slots=True)
class Space:
    """The bytes of a volume, and those that are free for us."""

    total: int
    usable: int


class Disk(Protocol):
    """Files and folders by path. Every method raises NotFound for a missing path (a live broker deletes files at any time)
    and Unreadable for one that the operating system cannot read."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""

    def is_folder(self, path: str) -> bool:
        """Whether the path is a folder."""

    def size(self, file: str) -> int:
        """The file's size in bytes."""

    def modified_ms(self, file: str) -> int:
        """When the file was last written, in ms since 1970."""

    def state(self, file: str) -> FileState:
        """The file's identity and version."""

    def space(self, folder: str) -> Space:
        """Of the volume that the folder is on."""

    def open(self, file: str) -> OpenedFile:
        """The file, to be read."""

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        """Bytes `[start, end)`, fewer if the file ends sooner. They are copied: a mapped file that shrinks kills the process."""

    def read_large(self, file: str, start: int, end: int) -> Buffer:
        """As `read`, for ranges of megabytes: it reuses memory, since page faults of new memory would cost more than the read."""


class WritableDisk(Disk, Protocol):
    """A disk with the writes that the storage engine needs. Raises as Disk does.

    A file's bytes survive a power failure only after `sync` of the file has returned, its name only after `sync_folder` of its
    folder has.
    """

    def exists(self, path: str) -> bool:
        """Whether a file or folder of this path exists."""

    def is_file(self, path: str) -> bool:
        """Whether a file of this path exists."""

    def files(self, folder: str) -> list[str]:
        """The names of a folder's files, sorted."""

    def write(self, file: str, start: int, data: bytes) -> None:
        """Writes bytes at a position. Creates the file if it is missing, and fills a gap before the position with zeros."""

    def writer(self, file: str) -> Writer:
        """A function that writes to one file as `write` does. It is valid until the file is renamed or deleted."""

    def truncate(self, file: str, size: int) -> None:
        """Cuts the file to `size` bytes, or extends it with zeros."""

    def rename(self, path: str, to: str) -> None:
        """Renames a file or folder atomically, and replaces a file of the new name."""

    def delete(self, file: str) -> bool:
        """Deletes a file; False if there was none."""

    def make_folder(self, folder: str) -> None:
        """Creates a folder and its missing parents."""

    def delete_folder(self, folder: str) -> None:
        """Deletes a folder and everything in it."""

    def sync(self, file: str) -> None:
        """Flushes the file's bytes to the device (fsync)."""

    def sync_folder(self, folder: str) -> None:
        """Flushes the folder's entries to the device (fsync)."""

    def set_modified_ms(self, file: str, ms: int) -> None:
        """Sets when the file was last written, in ms since 1970."""

    def mode(self, file: str) -> int:
        """Who may read and write a file: the permission bits of its mode."""

    def set_mode(self, file: str, mode: int) -> None:
        """Sets who may read and write a file."""

    def real_path(self, path: str) -> str:
        """The canonical path, without symbolic links."""

    def lock(self, file: str) -> bool:
        """Locks the file and creates it if it is missing; False if another owner, in any process, has the lock."""

    def unlock(self, file: str) -> None:
        """Releases a lock that `lock` acquired, and deletes the file."""

    def release(self, path: str) -> None:
        """Closes the descriptors that are open for a file, or for the files of a folder. Later calls open them again."""


def replace_file(disk: WritableDisk, file: str, data: bytes) -> None:
    """Replaces a file's content atomically: after a crash the file has the old content or the new."""
    temporary = f"{file}.tmp"
    disk.write(temporary, 0, data)
    disk.truncate(temporary, len(data))
    disk.sync(temporary)
    disk.rename(temporary, file)
    disk.sync_folder(parent_of(file))


def make_missing_folder(disk: WritableDisk, folder: str) -> None:
    """Creates a folder if it is missing; its name survives a crash, those of missing parents may not.

    Also of one that is there: who has created it may have been killed before its name was synced. Then the folder that it is in
    need not be readable.
    """
    if disk.is_folder(folder):
        with suppress(Unreadable):
            disk.sync_folder(parent_of(folder))
    else:
        disk.make_folder(folder)
        disk.sync_folder(parent_of(folder))


def parent_of(path: str) -> str:
    """The folder that a path is in."""
    folder, slash, _ = path.rpartition("/")
    return folder or slash or "."


def has_content(disk: Disk, file: str, size: int, expected_crc32c: int) -> bool:
    """Whether the file has this size and this CRC-32C."""
    try:
        if disk.size(file) != size:
            return False
        found = 0
        for start in range(0, size, _PART_BYTES):
            found = crc32c(disk.read_large(file, start, min(size, start + _PART_BYTES)), found)
    except NotFound:
        return False
    return found == expected_crc32c
