"""A disk that goes offline at its first failure and rejects all later calls: the effect of a failed write is unknown.

A failed write or fsync must not be retried: the system may have dropped the dirty pages, and the next fsync would succeed.
"""

import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from local_log.disk import Space, WritableDisk, Writer
from local_log.errors import Unreadable
from local_log.file_range import FileState, OpenedFile
from local_log.formats.primitives import Buffer

P = ParamSpec("P")
T = TypeVar("T")


class Offline(Unreadable):
    """A log directory that is offline since its disk failed: repair the disk, then restart."""

    def __init__(self, directory: str, cause: str) -> None:
        super().__init__(directory, cause)
        self.directory = directory
        self.cause = cause

    def __str__(self) -> str:
        return f"{self.directory}: this log directory is offline since its disk failed ({self.cause}); mend it, then start again"


class GuardedDisk:
    """The disk of one log directory. Calls `on_failure` once, when the directory goes offline."""

    def __init__(self, disk: WritableDisk, directory: str, on_failure: Callable[[], None]) -> None:
        self._disk = disk
        self._directory = directory
        self._on_failure = on_failure
        self.failure: Offline | None = None
        self._failing = threading.Lock()

    def fail(self, cause: str) -> Offline:
        """Takes the directory offline; returns the error that all later calls raise."""
        with self._failing:  # several threads recover logs of one disk, and all of them fail at once
            first = self.failure is None
            failure = self.failure = self.failure or Offline(self._directory, cause)
        if first:
            self._on_failure()
        return failure

    def _do(self, verb: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        if self.failure is not None:
            raise Offline(self._directory, self.failure.cause)
        try:
            return verb(*args, **options)
        except Unreadable as e:
            raise self.fail(str(e)) from e

    def names(self, folder: str) -> list[str]:
        return self._do(self._disk.names, folder)

    def is_folder(self, path: str) -> bool:
        return self._do(self._disk.is_folder, path)

    def size(self, file: str) -> int:
        return self._do(self._disk.size, file)

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        return self._do(self._disk.read, file, start, end)

    def read_large(self, file: str, start: int, end: int) -> Buffer:
        return self._do(self._disk.read_large, file, start, end)

    def space(self, folder: str) -> Space:
        return self._do(self._disk.space, folder)

    def open(self, file: str) -> OpenedFile:
        return _GuardedFile(self._do(self._disk.open, file), self._do)

    def exists(self, path: str) -> bool:
        return self._do(self._disk.exists, path)

    def is_file(self, path: str) -> bool:
        return self._do(self._disk.is_file, path)

    def files(self, folder: str) -> list[str]:
        return self._do(self._disk.files, folder)

    def write(self, file: str, start: int, data: bytes) -> None:
        self._do(self._disk.write, file, start, data)

    def writer(self, file: str) -> Writer:
        write = self._do(self._disk.writer, file)
        return lambda start, data: self._do(write, start, data)

    def truncate(self, file: str, size: int) -> None:
        self._do(self._disk.truncate, file, size)

    def rename(self, path: str, to: str) -> None:
        self._do(self._disk.rename, path, to)

    def delete(self, file: str) -> bool:
        return self._do(self._disk.delete, file)

    def make_folder(self, folder: str) -> None:
        self._do(self._disk.make_folder, folder)

    def delete_folder(self, folder: str) -> None:
        self._do(self._disk.delete_folder, folder)

    def sync(self, file: str) -> None:
        self._do(self._disk.sync, file)

    def sync_folder(self, folder: str) -> None:
        self._do(self._disk.sync_folder, folder)

    def modified_ms(self, file: str) -> int:
        return self._do(self._disk.modified_ms, file)

    def state(self, file: str) -> FileState:
        return self._do(self._disk.state, file)

    def set_modified_ms(self, file: str, ms: int) -> None:
        self._do(self._disk.set_modified_ms, file, ms)

    def mode(self, file: str) -> int:
        return self._do(self._disk.mode, file)

    def set_mode(self, file: str, mode: int) -> None:
        self._do(self._disk.set_mode, file, mode)

    def real_path(self, path: str) -> str:
        return self._do(self._disk.real_path, path)

    def lock(self, file: str) -> bool:
        return self._do(self._disk.lock, file)

    def unlock(self, file: str) -> None:
        self._do(self._disk.unlock, file)

    def release(self, path: str) -> None:
        """See WritableDisk. It also works offline."""
        self._disk.release(path)


class _GuardedFile:
    """An open file of a guarded disk: a failing read takes the directory offline, too."""

    def __init__(self, file: OpenedFile, do: Callable[..., Any]) -> None:
        self._file = file
        self._do = do

    def fileno(self) -> int:
        return self._file.fileno()

    def mapped(self, start: int, end: int) -> memoryview | None:
        return self._file.mapped(start, end)

    def read(self, start: int, end: int) -> bytes:
        data: bytes = self._do(self._file.read, start, end)
        return data

    def read_large(self, start: int, end: int) -> Buffer:
        data: Buffer = self._do(self._file.read_large, start, end)
        return data

    def state(self) -> FileState:
        state: FileState = self._do(self._file.state)
        return state


def unless_offline(act: Callable[[], T]) -> T | None:
    """The result of `act`; None if a directory is or goes offline, which its `failure` reports."""
    try:
        return act()
    except Offline:
        return None
