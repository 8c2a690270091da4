"""A new file's bytes, put on the disk while those that follow are made ready: syncing only at the end would wait for them all.

While the last of them is on its way, the file is read back, and what it holds is noted beside it as an extended attribute: so
a folder has for each large object what S3 has, a checksum that was computed of what arrived.
"""

import os
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from local_log.errors import Corrupt
from local_log.formats.checksum import crc32c
from remote.store.api import Body

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

BEHIND_BYTES_MIN: Final = 4 << 20
"""Less is synced with what comes next: handing it to a thread would cost more than the wait."""

CALL_BYTES: Final = 256 << 10
"""For more in one call Linux looks for memory without gaps to put it in, and takes up to five times as long."""

READ_BYTES: Final = 1 << 20
ATTRIBUTE: Final = "user.crc32c"


class WriteBehind:
    """Writes to a descriptor, and syncs it in a thread that has ended when the block ends. Its methods raise OSError.

    The operating system reports a failed sync only once, so the result of each is checked before the file counts as synced.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pool: ThreadPoolExecutor | None = None
        self._behind: Future[None] | None = None
        self._size = self._unsynced = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def write(self, body: Body) -> None:
        """Writes a part, and has another thread put it on the disk, unless that is still at work or it is little."""
        view = memoryview(body).cast("B")
        size = len(view)
        while view:
            view = view[os.write(self._descriptor, view[:CALL_BYTES]) :]
        self._size += size
        self._unsynced += size
        if self._unsynced >= BEHIND_BYTES_MIN and (self._behind is None or self._behind.done()):
            self.wait()
            self._start()

    def sync(self) -> None:
        """On return, all that was written is on the disk."""
        self.wait()
        os.fsync(self._descriptor)

    def wait(self) -> None:
        """Waits until the other thread is done, and raises what it has met."""
        behind, self._behind = self._behind, None
        if behind is not None:
            behind.result()

    def prove(self, key: str, expected_crc32c: int) -> None:
        """Reads back what was written and notes its CRC-32C. Raises Corrupt, placed in `key`, where it is another."""
        if self._size >= BEHIND_BYTES_MIN:
            self.wait()
            self._start()
        found = self._read_back()
        if found != expected_crc32c:
            raise Corrupt(f"the disk holds CRC-32C {found:08x} where {expected_crc32c:08x} was written; try again", file=key)
        with suppress(OSError):  # a file system without attributes: whoever wants a checksum reads the file
            os.setxattr(self._descriptor, ATTRIBUTE, b"%08x" % found)

    def _read_back(self) -> int:
        import pyarrow as pa  # as in `store`: who only reads does not wait for it

        buffer = memoryview(pa.allocate_buffer(min(self._size, READ_BYTES))).cast("B")
        found = start = 0
        while start < self._size:
            size = os.preadv(self._descriptor, [buffer], start)
            if not size:
                break
            found = crc32c(buffer[:size], found)
            start += size
        return found

    def _start(self) -> None:
        from concurrent.futures import ThreadPoolExecutor

        self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="sync")
        self._behind = self._pool.submit(os.fdatasync, self._descriptor)
        self._unsynced = 0


def noted_crc32c(file: int) -> int | None:
    """The CRC-32C that `prove` has stored with an open file, None if there is none."""
    try:
        return int(os.getxattr(file, ATTRIBUTE), 16)
    except (OSError, ValueError):
        return None
