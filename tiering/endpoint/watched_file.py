"""Files that are read again when they have changed: users, keys, and rules."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from local_log.disk import Disk, WritableDisk
from local_log.errors import Conflict, Corrupt, Invalid, LogError
from local_log.file_range import FileState
from remote.clock import Time

BYTES_MAX: Final = 64 << 20
LOOK_MS: Final = 1_000
"""How often it is looked whether a file of rules has changed."""

T = TypeVar("T")


def replace_watched(disk: WritableDisk, path: str, data: bytes, mode: int | None = None) -> None:
    """Replaces a file by one that can be read again. Raises LogError, OSError; it is as it was then.

    `mode` says who may read it. Without one, as many may as before.
    """
    if len(data) > BYTES_MAX:
        raise Invalid(f"{path} would have {len(data)} bytes, where {BYTES_MAX} are the most: delete something first")
    staged = f"{path}.new"
    disk.delete(staged)
    disk.write(staged, 0, b"")
    if mode is None and disk.exists(path):
        mode = disk.mode(path)
    if mode is not None:  # while it is empty; the process's umask would be that of all other threads, too
        disk.set_mode(staged, mode)
    disk.write(staged, 0, data)
    disk.sync(staged)
    disk.rename(staged, path)
    disk.sync_folder(os.path.dirname(os.path.abspath(path)))


@contextmanager
def changing(disk: WritableDisk, path: str) -> Iterator[None]:
    """Lets no other process change the file meanwhile. Raises Conflict if one changes it now, LogError."""
    lock = f"{path}.lock"
    if not disk.lock(lock):
        raise Conflict(f"another process changes {path} now; try again")
    try:
        yield
    finally:
        disk.unlock(lock)


@dataclass(slots=True)
class ChangingFile(Generic[T]):
    """What `read` makes of the bytes of the file at `path`, as it is now. For many threads.

    `disk` opens the file each time it reads it, and only to read: others replace the file, and it may be on a read-only mount.
    """

    disk: Disk
    path: str
    read: Callable[[bytes], T] = field(repr=False)
    bytes_max: int = BYTES_MAX
    _state: FileState | None = None
    _found: T | LogError | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def now(self) -> T:
        """A file that has not changed is not read again, even if it cannot be used. Raises LogError, what `read` raises."""
        with self._lock:
            state = self.disk.state(self.path)
            if self._state is None or state != self._state:
                self._found = self._read(state.size)
                self._state = state
            found = self._found
        if isinstance(found, LogError):
            raise found.with_traceback(None)  # else each time it is raised adds to what the error holds
        return found  # type: ignore[return-value]  # it was read

    def _read(self, size: int) -> T | LogError:
        if size > self.bytes_max:
            return Corrupt(f"a file of {size} bytes, where {self.bytes_max} are the most", file=self.path)
        data = self.disk.read(self.path)
        try:
            return self.read(data)
        except Corrupt as e:
            return e.at(self.path)
        except LogError as e:
            return e


@dataclass(slots=True)
class WatchedFile:
    """Rules, of whose file `take` is given the bytes. What cannot be used changes nothing, and `report` is told of it once."""

    disk: Disk
    writable: WritableDisk
    path: str
    clock: Time
    take: Callable[[bytes], object]
    report: Callable[[str], object]
    _file: ChangingFile[object] = field(init=False)
    _told: str = ""
    _looked_ms: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _changing: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._file = ChangingFile(self.disk, self.path, self.take)

    def load(self) -> None:
        """Reads it. Raises LogError."""
        self._file.now()

    def look(self) -> None:
        """Reads it again if it has changed, and it was not looked at a moment ago."""
        now_ms = self.clock.hi_res_clock_ms()
        if now_ms - self._looked_ms < LOOK_MS or not self._lock.acquire(blocking=False):
            return
        try:
            self._looked_ms = now_ms
            self.load()
            self._told = ""
        except LogError as e:
            if self._told != str(e):
                self._told = str(e)
                self.report(f"what it said before is still in force: {e}")
        finally:
            self._lock.release()

    def change(self, changed: Callable[[], bytes]) -> None:
        """Replaces the file by what `changed` gives once it is read. Raises LogError, OSError; nothing has changed then."""
        with self._changing, changing(self.writable, self.path):
            self.load()
            replace_watched(self.writable, self.path, changed())
            self.load()
