"""An archive in a folder: a key is a file's path below the root, and a hard link is what makes a key appear.

A body goes to a temporary file beside its place, is synced, and is then linked to its name: link(2) refuses a name that
is taken, and never shows a half-written file as O_EXCL on the name itself would. A process killed in between leaves
a file named `.tmp-…`, which no listing shows: an abandoned upload. Symbolic links are not followed by listings.
"""

import errno
import itertools
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from local_log.errors import AlreadyExists, BadRange, Invalid, LogError, NotFound, Unavailable, Unknown
from local_log.file_range import FileState
from local_log.formats.primitives import Buffer
from local_log.open_files import mapping_of, read, read_large, state_of
from remote.store.api import AbandonedUpload, Body, FileOpener, ObjectMeta
from remote.store.folder.write_behind import WriteBehind, noted_crc32c
from remote.store.shared import check_folder, check_key, check_prefix, checked, walk

temporary_prefix = ".tmp-"
temporary_names_max = 10_000
"""How many leftovers with our process id in their name we step over before giving up."""

_LARGE_BYTES = 64 << 10
_setup = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTSUP, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR}
_full = {errno.ENOSPC, errno.EDQUOT, errno.EMLINK}
_counter = itertools.count()


class FolderStore:
    """Objects as files below `root`, a path that need not exist yet. Durable on any file system with hard links."""

    def __init__(self, root: str) -> None:
        if not root:
            raise Invalid("an empty path names no folder; give the archive's folder")
        self.root = os.path.abspath(root)
        self.url = f"file://{self.root}"

    def get(self, key: str) -> bytes:
        """All bytes of an object. Raises NotFound, Unavailable, Invalid."""
        with self._opened(key) as (descriptor, found):
            return bytes(_read(descriptor, 0, found.st_size))

    def get_range(self, key: str, start: int, end: int) -> memoryview:
        """Bytes `[start, end)`. Raises NotFound, Unavailable, Invalid, BadRange."""
        with self._opened(key) as (descriptor, found):
            if not 0 <= start <= end <= found.st_size:
                raise BadRange(f"{self.url}: {key} has {found.st_size} bytes, not [{start}, {end}); ask for a range inside")
            return _read(descriptor, start, end)

    def file_opener(self, key: str) -> FileOpener:
        """Opens the file of an object. Raises Invalid."""
        path = self._path(key)
        return lambda: self._open(key, path)[0]

    def head(self, key: str) -> ObjectMeta:
        """With the checksum that an upload has noted, where the file system can. Raises NotFound, Unavailable, Invalid."""
        with self._opened(key) as (descriptor, found):
            return replace(_meta(key, found), crc32c=noted_crc32c(descriptor))

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        """Files below `prefix`, opening only the folders on the way. Raises Unavailable, Invalid."""
        check_prefix(prefix)
        return walk(prefix, self._entries, _described, limit, start_after)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Names of the folders that hold an object. Raises Unavailable, Invalid."""
        check_folder(prefix)
        names = sorted(name for name, _ in self._entries(prefix) if name.endswith("/"))
        return (name[:-1] for name in names if self._holds_any(prefix + name))

    def put_if_absent(self, key: str, body: Body) -> None:
        """Links a synced file to its name. Raises AlreadyExists, Unknown (not known durable), Unavailable, Invalid."""
        self._create(key, (body,))

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        """The same for any size, one part in memory at a time. Raises Corrupt too, for other parts than promised."""
        self._create(key, checked(key, parts, size, crc32c), crc32c)

    def make_durable(self, key: str) -> None:
        """Syncs the folders of a file whose link somebody else may have made just now. Raises Unknown, Invalid."""
        self._sync(key, self._folders(os.path.dirname(self._path(key))))

    def delete(self, key: str) -> None:
        """Removes the file; its folder stays, since another file may just be coming up. Raises Unavailable, Invalid."""
        with self._translated(key), suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            os.unlink(self._path(key))

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        """Temporary files whose process has been killed. Raises Unavailable, Invalid."""
        check_prefix(prefix)
        for meta in walk(prefix, self._temporary_entries, _described):
            if meta.modified_ms is not None and meta.modified_ms < before_ms:
                yield AbandonedUpload(meta.key, os.path.basename(meta.key), meta.modified_ms)

    def abort_upload(self, upload: AbandonedUpload) -> None:
        """Removes the temporary file. Raises Unavailable, Invalid (it is none)."""
        check_key(upload.key)
        if not os.path.basename(upload.key).startswith(temporary_prefix):
            raise Invalid(f"{upload.key!r} is no temporary file; delete objects by `delete`")
        with self._translated(upload.key), suppress(FileNotFoundError):
            os.unlink(os.path.join(self.root, upload.key))

    def _path(self, key: str) -> str:
        check_key(key)
        if any(part.startswith(temporary_prefix) for part in key.split("/")):
            raise Invalid(f"{key!r} looks like a temporary file; give a key without '{temporary_prefix}'")
        return os.path.join(self.root, key)

    @contextmanager
    def _opened(self, key: str) -> Iterator[tuple[int, os.stat_result]]:
        """A regular file's descriptor and what it is."""
        opened, found = self._open(key, self._path(key))
        with self._translated(key, reading=True):
            yield opened.fileno(), found

    def _open(self, key: str, path: str) -> tuple["_Opened", os.stat_result]:
        """A regular file and what it is; a folder or a pipe under that name is no object."""
        try:  # not `_translated`, for its cost: every fetch opens a file
            # Without O_NONBLOCK a stray FIFO would hang the open for ever.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            opened, found = _Opened(self, key, descriptor), os.fstat(descriptor)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound(f"{self.url}: no object {key}") from error
        except OSError as error:
            raise self._translation(key, error, reading=True) from error
        if not stat.S_ISREG(found.st_mode):
            raise NotFound(f"{self.url}: no object {key}")
        return opened, found

    def _entries(self, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """The objects and folders in a folder; nothing if it is not there. Names that no key can have are passed over."""
        return (found for found in self._scanned(folder) if not found[0].startswith(temporary_prefix))

    def _temporary_entries(self, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """The temporary files and folders in a folder."""
        return (found for found in self._scanned(folder) if found[0].endswith("/") or found[0].startswith(temporary_prefix))

    def _scanned(self, folder: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
        with self._translated(folder, reading=True):
            try:
                scan = os.scandir(os.path.join(self.root, folder))
            except (FileNotFoundError, NotADirectoryError):
                return
            with scan:
                for entry in scan:
                    if not _is_text(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        yield entry.name + "/", entry
                    elif entry.is_file(follow_symlinks=False):
                        yield entry.name, entry

    def _holds_any(self, folder: str) -> bool:
        # Depth first with one folder open at a time, so that the first file ends it.
        folders = [folder]
        while folders:
            folder = folders.pop()
            for name, _ in self._entries(folder):
                if not name.endswith("/"):
                    return True
                folders.append(folder + name)
        return False

    def _create(self, key: str, parts: Iterable[Body], proved_crc32c: int | None = None) -> None:
        path = self._path(key)
        with self._translated(key):
            folders = self._make_folders(os.path.dirname(path))
            temporary, descriptor = _temporary(folders[0])
        try:
            try:
                with WriteBehind(descriptor) as file:
                    for part in parts:
                        with self._translated(key):
                            file.write(part)
                    with self._translated(key):
                        if proved_crc32c is not None:
                            file.prove(key, proved_crc32c)
                        file.sync()
            finally:
                os.close(descriptor)
            self._link(key, temporary, path, folders)
        finally:
            # One that cannot be removed is not listed, and must not turn a finished put into a failed one.
            with suppress(OSError):
                os.unlink(temporary)

    def _make_folders(self, folder: str) -> tuple[str, ...]:
        """Makes what is missing, and gives the folders to sync, the innermost first."""
        folders = self._folders(folder)
        try:
            os.makedirs(folder, exist_ok=True)
        except FileExistsError as error:
            raise NotADirectoryError(errno.ENOTDIR, "a file stands where a folder is needed", folder) from error
        return folders

    def _folders(self, folder: str) -> tuple[str, ...]:
        """The folders to sync, the innermost first.

        Those up to the root are always among them: one that we find may have been made by somebody who has not
        synced its parent yet. Syncing a clean folder takes some 40 µs.
        """
        folders = [folder]
        while len(folders[-1]) > len(self.root) or not os.path.isdir(folders[-1]):
            folders.append(os.path.dirname(folders[-1]))
        return tuple(folders)

    def _link(self, key: str, temporary: str, path: str, folders: tuple[str, ...]) -> None:
        with self._translated(key, Unknown):
            try:
                os.link(temporary, path)
            except FileExistsError as error:
                # The winner may not have synced yet, and what is read back next must not be lost in a crash.
                self._sync(key, folders)
                raise AlreadyExists(key) from error
        self._sync(key, folders)

    def _sync(self, key: str, folders: tuple[str, ...]) -> None:
        try:
            for folder in folders:
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                try:
                    os.fsync(descriptor)
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise Unknown(f"{self.url}: {key} is there, but might not outlive a crash: {error}") from error

    @contextmanager
    def _translated(self, key: str, otherwise: type[LogError] = Unavailable, *, reading: bool = False) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise self._translation(key, error, otherwise, reading=reading) from error

    def _translation(
        self, key: str, error: OSError, otherwise: type[LogError] = Unavailable, *, reading: bool = False
    ) -> LogError:
        where = f"{self.url}: {key}: {error}"
        if error.errno in _setup:
            kind = "read" if reading else "write, on a file system with hard links"
            return Invalid(f"{where}; give a folder that this user may {kind}")
        if error.errno in _full:
            return Unavailable(f"{where}; free some space")
        return otherwise(f"{where}; see whether its disk or network is well, then run it again")


class _Opened:
    """See OpenedFile. It is closed when nobody references it."""

    __slots__ = ("_descriptor", "_key", "_mapping", "_store")

    def __init__(self, store: FolderStore, key: str, descriptor: int) -> None:
        self._store, self._key, self._descriptor = store, key, descriptor
        self._mapping: memoryview | None = None

    def __del__(self) -> None:
        os.close(self._descriptor)

    def fileno(self) -> int:
        return self._descriptor

    def mapped(self, start: int, end: int) -> memoryview | None:
        self._mapping = mapping = mapping_of(self._descriptor, end, self._mapping)
        return None if mapping is None else mapping[start:end]

    def read(self, start: int, end: int) -> bytes:
        try:
            return read(self._descriptor, start, end)
        except OSError as error:
            raise self._store._translation(self._key, error, reading=True) from error

    def read_large(self, start: int, end: int) -> Buffer:
        try:
            return read_large(self._descriptor, start, end)
        except OSError as error:
            raise self._store._translation(self._key, error, reading=True) from error

    def state(self) -> FileState:
        try:
            return state_of(self._descriptor)
        except OSError as error:
            raise self._store._translation(self._key, error, reading=True) from error


def _temporary(folder: str) -> tuple[str, int]:
    for number in itertools.islice(_counter, temporary_names_max):
        path = os.path.join(folder, f"{temporary_prefix}{os.getpid()}-{number}")
        with suppress(FileExistsError):  # left behind by an earlier process with our id, or another machine's
            return path, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    raise OSError(errno.EEXIST, f"more than {temporary_names_max} leftovers; remove the {temporary_prefix}* files", folder)


def _memory(size: int) -> memoryview:
    """Of Arrow's pool where it is large, which keeps its pages.

    Python's own memory gives them back, and fresh ones cost as much as reading into them.
    """
    if size < _LARGE_BYTES:
        return memoryview(bytearray(size))
    import pyarrow as pa  # a start that reads manifests alone does not wait for it

    return memoryview(pa.allocate_buffer(size)).cast("B")


def _read(descriptor: int, start: int, end: int) -> memoryview:
    """One call nearly always; Linux gives at most 2 GiB at a time."""
    data = _memory(end - start)
    rest = data
    while rest:
        size = os.preadv(descriptor, [rest], end - len(rest))
        if not size:
            raise OSError(errno.EIO, "the file became shorter while it was read")
        rest = rest[size:]
    return data.toreadonly()


def _described(key: str, entry: os.DirEntry[str]) -> ObjectMeta | None:
    try:
        return _meta(key, entry.stat(follow_symlinks=False))
    except FileNotFoundError:
        return None


def _meta(key: str, found: os.stat_result) -> ObjectMeta:
    return ObjectMeta(key, found.st_size, modified_ms=found.st_mtime_ns // 1_000_000)


def _is_text(name: str) -> bool:
    """Whether a file's name is UTF-8; what is not reaches Python as lone surrogates."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
