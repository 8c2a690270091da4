"""File descriptors: reads, and a cache of open files. Everything here raises OSError."""

import mmap
import os
import sys
import threading
from typing import Final

from local_log.file_range import FileState

_SMALL_BYTES_MAX: Final = 256 << 10
"""Up to here Python keeps the pages, too."""
_ALONE_BYTES_MAX: Final = 4 << 20
"""To load Arrow takes longer than to get pages for so many bytes again."""

_tuple = tuple.__new__  # as a named tuple's constructor, in a third of its time: every fetch looks at states


class OpenFile:
    """An open file. It is closed when nobody references it: no cache, no thread, no answer that is being sent."""

    __slots__ = ("_mapping", "number")

    def __init__(self, file: str, flags: int) -> None:
        self.number = os.open(file, os.O_CLOEXEC | flags, 0o644)
        self._mapping: memoryview | None = None

    def mapped(self, start: int, end: int) -> memoryview | None:
        """See `OpenedFile`."""
        self._mapping = mapping = mapping_of(self.number, end, self._mapping)
        return None if mapping is None else mapping[start:end]

    def __del__(self) -> None:
        if hasattr(self, "number"):
            os.close(self.number)


class OpenFiles:
    """The most recently opened files, for many threads. A file that a caller references stays open after the cache evicts it."""

    def __init__(self, files_max: int) -> None:
        self._files_max = files_max
        self._open: dict[str, OpenFile] = {}
        self._lock = threading.Lock()

    def open(self, file: str, flags: int = 0) -> OpenFile:
        """The open file; opens it if the cache does not have it."""
        found = self._open.get(file)  # without the lock: a caller that comes at the moment of `release` came before it
        if found is not None:
            return found
        with self._lock:
            found = self._open.get(file)
            if found is None:
                found = self._open[file] = OpenFile(file, os.O_RDWR | flags)
                if len(self._open) > self._files_max:
                    del self._open[next(iter(self._open))]
            return found

    def release(self, path: str) -> None:
        """Removes a file, or all files of a folder, from the cache."""
        with self._lock:
            for file in [f for f in self._open if f == path or f.startswith(f"{path}/")]:
                del self._open[file]


def state_of(descriptor: int) -> FileState:
    """The open file's identity and version."""
    status = os.fstat(descriptor)
    return _tuple(FileState, (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))


def mapping_of(descriptor: int, end: int, known: memoryview | None) -> memoryview | None:
    """The whole file in this process's address space, perhaps as it is `known`; None if it cannot be or ends before `end`."""
    if known is not None and len(known) >= end:
        return known
    try:
        found = memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):  # not every file system can, and no empty file can be
        return None
    return found if len(found) >= end else None


def read(descriptor: int, start: int, end: int | None) -> bytes:
    """Bytes `[start, end)`, fewer if the file ends sooner."""
    left = (os.fstat(descriptor).st_size if end is None else end) - start
    data = os.pread(descriptor, left, start) if left > 0 else b""
    if not 0 < len(data) < left:
        return data  # nearly always
    parts, done = [data], len(data)
    while done < left and (part := os.pread(descriptor, left - done, start + done)):
        parts.append(part)
        done += len(part)
    return b"".join(parts)


def read_large(descriptor: int, start: int, end: int) -> memoryview:
    """As `read`, into memory of Arrow's pool, which keeps its pages; of larger bytes Python returns them to the system."""
    if end - start <= (_SMALL_BYTES_MAX if "pyarrow" in sys.modules else _ALONE_BYTES_MAX):
        return memoryview(read(descriptor, start, end))
    import pyarrow as pa

    data = memoryview(pa.allocate_buffer(max(0, end - start))).cast("B")
    done = 0
    while done < len(data) and (more := os.preadv(descriptor, [data[done:]], start + done)):
        done += more
    return data[:done].toreadonly()
