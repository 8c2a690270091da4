"""The operating system's file system: the disk that everything uses outside tests."""

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Final, NamedTuple

from local_log.disk import Space, Writer
from local_log.errors import NoSuchFile, Unreadable, of_system
from local_log.file_range import FileState
from local_log.formats.primitives import Buffer
from local_log.open_files import OpenFile, OpenFiles, read, read_large, state_of

OPEN_FILES_MAX: Final = 64

_tuple = tuple.__new__  # as a named tuple's constructor, in a third of its time


class OsDisk:
    """The operating system's files."""

    def names(self, folder: str) -> list[str]:
        with _translated(folder):
            return sorted(os.listdir(folder))

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def size(self, file: str) -> int:
        with _translated(file):
            return os.stat(file).st_size

    def modified_ms(self, file: str) -> int:
        with _translated(file):
            return os.stat(file).st_mtime_ns // 1_000_000

    def state(self, file: str) -> FileState:
        with _translated(file):
            status = os.stat(file)
            return FileState(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)

    def space(self, folder: str) -> Space:
        with _translated(folder):
            found = os.statvfs(folder)
            return Space(found.f_frsize * found.f_blocks, found.f_frsize * found.f_bavail)

    def open(self, file: str) -> "_OpenedFile":
        try:
            return _tuple(_OpenedFile, (file, OpenFile(file, os.O_RDONLY)))
        except OSError as e:
            raise _translation(file, e) from e

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        with _translated(file):
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return read(descriptor, start, end)
            finally:
                os.close(descriptor)

    def read_large(self, file: str, start: int, end: int) -> Buffer:
        with _translated(file):
            descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return read_large(descriptor, start, end)
            finally:
                os.close(descriptor)


class OsWritableDisk(OsDisk):
    """The operating system's files, writable, for many threads. Recently written files stay open: one system call an append."""

    _locked: ClassVar[set[tuple[int, int]]] = set()
    """Device and inode of the files that this process has locked. The system's locks do not exclude the process itself, and they
    are released when it closes any descriptor of the file."""
    _locking: ClassVar = threading.Lock()

    def __init__(self, open_files_max: int = OPEN_FILES_MAX) -> None:
        self._locks: dict[str, int] = {}
        self._files = OpenFiles(open_files_max)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_file(self, path: str) -> bool:
        return os.path.isfile(path)

    def files(self, folder: str) -> list[str]:
        with _translated(folder), os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_file())

    def open(self, file: str) -> "_OpenedFile":
        try:
            return _tuple(_OpenedFile, (file, self._files.open(file)))
        except OSError as e:
            raise _translation(file, e) from e

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        """See Disk. Files that are read often stay open."""
        try:
            opened = self._files.open(file)
            return read(opened.number, start, end)
        except OSError as e:
            raise _translation(file, e) from e

    def write(self, file: str, start: int, data: bytes) -> None:
        self._writer(file)(start, data)

    def writer(self, file: str) -> Writer:
        return self._writer(file)

    def _writer(self, file: str) -> Writer:
        with _translated(file):
            opened = self._files.open(file, os.O_CREAT)
        pwrite, number = os.pwrite, opened.number  # `write` also keeps `opened`, so that it stays open

        def write(start: int, data: bytes) -> None:
            try:  # as _translated does, but without its cost: this is the most frequent call
                written = pwrite(number, data, start)
                while written < len(data):
                    written += os.pwrite(opened.number, memoryview(data)[written:], start + written)
            except OSError as e:
                raise _translation(file, e) from e

        return write

    def truncate(self, file: str, size: int) -> None:
        with _translated(file):
            os.truncate(file, size)

    def rename(self, path: str, to: str) -> None:
        self.release(path)
        self.release(to)
        with _translated(path):
            os.replace(path, to)
        self._release_again(path, to)

    def delete(self, file: str) -> bool:
        self.release(file)
        with _translated(file):
            try:
                os.unlink(file)
            except FileNotFoundError:
                return False
        self._release_again(file)
        return True

    def _release_again(self, *paths: str) -> None:
        """What a reader has opened at the last moment is no longer the file of that name: a writer would not find a new one."""
        for path in paths:
            self.release(path)

    def make_folder(self, folder: str) -> None:
        with _translated(folder):
            os.makedirs(folder, exist_ok=True)

    def delete_folder(self, folder: str) -> None:
        from shutil import rmtree  # which brings what compresses archives of files

        self.release(folder)
        with _translated(folder):
            rmtree(folder)
        self._release_again(folder)

    def sync(self, file: str) -> None:
        with _translated(file):
            opened = self._files.open(file)
            os.fsync(opened.number)

    def sync_folder(self, folder: str) -> None:
        with _translated(folder):
            descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def set_modified_ms(self, file: str, ms: int) -> None:
        with _translated(file):
            os.utime(file, ns=(ms * 1_000_000, ms * 1_000_000))

    def mode(self, file: str) -> int:
        with _translated(file):
            return stat.S_IMODE(os.stat(file).st_mode)

    def set_mode(self, file: str, mode: int) -> None:
        with _translated(file):
            os.chmod(file, mode)

    def real_path(self, path: str) -> str:
        with _translated(path):
            return os.path.realpath(path)

    def lock(self, file: str) -> bool:
        """See WritableDisk. It is a POSIX record lock, as Java's FileChannel uses."""
        with _translated(file), self._locking:
            while True:
                if _inode(file) in self._locked:
                    return False
                descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                try:
                    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as e:
                    os.close(descriptor)
                    if e.errno in (errno.EAGAIN, errno.EACCES):
                        return False
                    raise
                inode = _inode(file)
                if inode is not None and inode == _inode_of(os.fstat(descriptor)):
                    self._locked.add(inode)
                    self._locks[file] = descriptor
                    return True
                os.close(descriptor)  # the previous owner has just deleted the file: the lock is on a file without a name

    def unlock(self, file: str) -> None:
        with _translated(file), self._locking:
            descriptor = self._locks.pop(file, None)
            if descriptor is None:
                return
            inode = _inode_of(os.fstat(descriptor))
            try:
                if _inode(file) == inode:
                    os.unlink(file)
            finally:
                self._locked.discard(inode)
                os.close(descriptor)

    def release(self, path: str) -> None:
        # A folder's rename changes the paths of the files in it, so these are closed, too.
        self._files.release(path)


class _OpenedFile(NamedTuple):
    """See `OpenedFile`. A named tuple, since every fetch makes one."""

    name: str
    opened: OpenFile

    def fileno(self) -> int:
        return self.opened.number

    def mapped(self, start: int, end: int) -> memoryview | None:
        return self.opened.mapped(start, end)

    def read(self, start: int, end: int) -> bytes:
        try:
            return read(self.opened.number, start, end)
        except OSError as e:
            raise _translation(self.name, e) from e

    def read_large(self, start: int, end: int) -> Buffer:
        try:
            return read_large(self.opened.number, start, end)
        except OSError as e:
            raise _translation(self.name, e) from e

    def state(self) -> FileState:
        try:
            return state_of(self.opened.number)
        except OSError as e:
            raise _translation(self.name, e) from e


def _inode(file: str) -> tuple[int, int] | None:
    try:
        return _inode_of(os.stat(file))
    except FileNotFoundError:
        return None


def _inode_of(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


@contextmanager
def _translated(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as e:
        raise _translation(path, e) from e


def _translation(path: str, e: Exception) -> NoSuchFile | Unreadable:
    if isinstance(e, FileNotFoundError | NotADirectoryError):
        return NoSuchFile(f"{path}: no such file or folder; check its name")
    return Unreadable(of_system(path, e))
