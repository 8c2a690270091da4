"""A bounded cache of files on local disk, shared by threads and processes and verified when a file is read.

A file consists of the 4 bytes "kct1", the uint32 CRC-32C of its name and body, and the body. A file is written under a
temporary name and renamed, and stays valid after a restart. Eviction is least recently used; the modification time of a file is
its last use. No failure of the disk fails a read: the cache then has no such file.
"""

import re
import struct
import threading
from typing import Final, Protocol

from local_log.errors import NotFound, Unreadable
from local_log.formats.checksum import crc32c
from remote.clock import Clock, Ids

HEADER: Final = struct.Struct(">4sI")
MAGIC: Final = b"kct1"
TEMPORARY_MS_MAX: Final = 3_600_000
"""An older temporary file was left by a process that died."""

_NAME: Final = re.compile(r"[0-9A-Za-z_-]{1,200}")

_SLACK: Final = 8
"""An eviction frees an eighth of the limit, so that the folder is not listed for every new file."""


class CacheDisk(Protocol):
    """The file operations of a cache. Methods and errors (NotFound, Unreadable) are those of `local_log.disk`."""

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder. Raises NotFound."""

    def size(self, file: str) -> int:
        """The size of a file in bytes. Raises NotFound."""

    def modified_ms(self, file: str) -> int:
        """The modification time of a file in ms since 1970."""

    def set_modified_ms(self, file: str, ms: int) -> None:
        """Sets the modification time of a file."""

    def read(self, file: str) -> bytes:
        """The content of a file. Raises NotFound, Unreadable."""

    def write(self, file: str, start: int, data: bytes) -> None:
        """Writes bytes at position `start`; creates the file if it does not exist."""

    def rename(self, path: str, to: str) -> None:
        """Renames a file atomically and replaces an existing one."""

    def delete(self, file: str) -> bool:
        """Deletes a file; False if it does not exist."""

    def make_folder(self, folder: str) -> None:
        """Creates a folder and its missing parents."""


class CacheFiles:
    """The files in `folder` whose names end with `suffix`, at most `bytes_max` in total; other files are not touched.

    Each process enforces the limit for itself and lists the folder again after it has written an eighth of the limit. Several
    processes together can exceed the limit by an eighth for each further process. Thread-safe.
    """

    def __init__(self, disk: CacheDisk, folder: str, suffix: str, bytes_max: int, clock: Clock, ids: Ids) -> None:
        self.bytes_max = bytes_max
        self._disk = disk
        self._folder = folder
        self._suffix = suffix
        self._clock = clock
        self._ids = ids
        self._temporary = re.compile(rf"[^.]+{re.escape(suffix)}\.[0-9a-f]{{32}}\.tmp")
        self._lock = threading.Lock()
        self._room = 0
        """Bytes that may be written before the folder is listed again."""

    def get(self, name: str) -> bytes | None:
        """The body under a name, or None if it was never put or was evicted. A damaged file is deleted."""
        if not _NAME.fullmatch(name):
            return None
        file = self._file(name)
        try:
            stored = self._disk.read(file)
            body = stored[HEADER.size :]
            if stored[: HEADER.size] != _header(name, body):
                self._disk.delete(file)
                return None
            self._disk.set_modified_ms(file, self._clock.now_ms())
        except (NotFound, Unreadable):
            return None
        return body

    def put(self, name: str, body: bytes) -> None:
        """Stores a body. Ignored if the body exceeds the limit, or if the name could lead to another folder."""
        if HEADER.size + len(body) > self.bytes_max or not _NAME.fullmatch(name):
            return
        file = self._file(name)
        temporary = f"{file}.{self._ids.new_id()}.tmp"
        try:
            self._make_room(HEADER.size + len(body))
            self._write(temporary, _header(name, body) + body)
            self._disk.set_modified_ms(temporary, self._clock.now_ms())
            self._disk.rename(temporary, file)
        except (NotFound, Unreadable):
            self._delete(temporary)

    def remove(self, name: str) -> None:
        """Deletes the body under a name."""
        if _NAME.fullmatch(name):
            self._delete(self._file(name))

    def _file(self, name: str) -> str:
        return f"{self._folder}/{name}{self._suffix}"

    def _write(self, temporary: str, stored: bytes) -> None:
        try:
            self._disk.write(temporary, 0, stored)
        except NotFound:  # the first file, or the folder was deleted
            self._disk.make_folder(self._folder)
            self._disk.write(temporary, 0, stored)

    def _make_room(self, size: int) -> None:
        with self._lock:
            enough = self._room >= size
            self._room -= size
        if not enough:
            room = self._evict(size)
            with self._lock:
                self._room = room - size

    def _evict(self, size: int) -> int:
        """Deletes least recently used files until `size` bytes fit; returns the bytes to write before the next check."""
        kept, in_use = self._kept()
        total = in_use + sum(freed for _, freed, _ in kept)
        if total + size > self.bytes_max:
            goal = max(0, self.bytes_max - max(size, self.bytes_max // _SLACK))
            for _, freed, file in sorted(kept):
                if total <= goal:
                    break
                self._delete(file)
                total -= freed
        return min(self.bytes_max - total, max(size, self.bytes_max // _SLACK))

    def _kept(self) -> tuple[list[tuple[int, int, str]], int]:
        """Last use, size and path of each file that may be deleted, and the bytes of files that are being written.

        Abandoned temporary files sort before all others.
        """
        found, in_use = [], 0
        try:
            names = self._disk.names(self._folder)
        except (NotFound, Unreadable):
            return [], 0
        for name in names:
            file = f"{self._folder}/{name}"
            is_temporary = self._temporary.fullmatch(name) is not None
            if not is_temporary and not name.endswith(self._suffix):
                continue
            try:
                used_ms, size = self._disk.modified_ms(file), self._disk.size(file)
            except (NotFound, Unreadable):
                continue  # another process has just removed it
            if is_temporary and used_ms + TEMPORARY_MS_MAX > self._clock.now_ms():
                in_use += size
            else:
                found.append((-1 if is_temporary else used_ms, size, file))
        return found, in_use

    def _delete(self, file: str) -> None:
        try:
            self._disk.delete(file)
        except (NotFound, Unreadable):
            return


def _header(name: str, body: bytes) -> bytes:
    return HEADER.pack(MAGIC, crc32c(body, crc32c(name.encode())))
