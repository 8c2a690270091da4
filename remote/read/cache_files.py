"""A folder of files that may be lost at any moment: bounded in bytes, checked when read back, shared by threads and processes.

A file is 4 bytes "kct1", the uint32 CRC-32C of its name and body, and the body. It appears whole, by rename, and is read again
after a restart. When room is needed, those go first that were longest not asked for, which is what their modification time
says. Nothing here fails a read: a disk that refuses is a cache that has nothing.
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
"""A temporary file that is older was left by a process that died."""

_NAME: Final = re.compile(r"[0-9A-Za-z_-]{1,200}")

_SLACK: Final = 8
"""When the bound is reached, an eighth of it is freed, so that the folder is not listed for every file."""


class CacheDisk(Protocol):
    """What a cache does to its folder. The verbs, and NotFound and Unreadable, are those of `local_log.disk`."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder."""

    def size(self, file: str) -> int:
        """Bytes of a file."""

    def modified_ms(self, file: str) -> int:
        """When it was last written."""

    def set_modified_ms(self, file: str, ms: int) -> None:
        """States when it was last written."""

    def read(self, file: str) -> bytes:
        """All of a file."""

    def write(self, file: str, start: int, data: bytes) -> None:
        """Puts bytes at a position, making the file where there is none."""

    def rename(self, path: str, to: str) -> None:
        """Gives a file another name in one step, in place of what had it."""

    def delete(self, file: str) -> bool:
        """Removes a file; False where there is none."""

    def make_folder(self, folder: str) -> None:
        """Makes a folder and those above it that are missing."""


class CacheFiles:
    """The files in `folder` whose names end with `suffix`, of `bytes_max` together; others there are left alone.

    Each process keeps to the bound by itself and looks at the folder again after every eighth of it that it has written, so
    several processes together may pass it by an eighth for each further one. Calls of several threads at once are fine.
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
        """What may be written before the folder is looked at again."""

    def get(self, name: str) -> bytes | None:
        """The body that was put under a name, None where there is none (any more). One that is damaged is removed."""
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
        """Keeps a body, unless it is larger than the bound, or its name is no plain word, as a manifest could have it."""
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
        """Forgets what is under a name."""
        if _NAME.fullmatch(name):
            self._delete(self._file(name))

    def _file(self, name: str) -> str:
        return f"{self._folder}/{name}{self._suffix}"

    def _write(self, temporary: str, stored: bytes) -> None:
        try:
            self._disk.write(temporary, 0, stored)
        except NotFound:  # the first file of all, or somebody has cleared the cache away
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
        """Deletes what was longest not asked for, if `size` bytes have no room; gives what may be written unwatched."""
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
        """Time of the last use, size and path of what may be deleted; bytes of what is just being written.

        A temporary file that nobody is at any more comes before all others.
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
