"""A local file for Arrow to write to, which the disk takes while the rows that follow are encoded. Loaded by executors."""

import io
import os

from remote.store.api import Body
from remote.store.folder.write_behind import WriteBehind


class StagedFile(io.RawIOBase):
    """Is there, but not sure to outlast a power failure, when it is closed. Its verbs raise OSError."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        self._behind = WriteBehind(self._descriptor)
        self._size = 0

    def writable(self) -> bool:
        """Always true: Arrow asks before it writes."""
        return True

    def tell(self) -> int:
        """The number of bytes written so far."""
        return self._size

    def write(self, data: Body) -> int:  # type: ignore[override]  # what Arrow gives
        """Writes all of `data`; returns its size in bytes."""
        size = memoryview(data).nbytes
        self._behind.write(data)
        self._size += size
        return size

    def close(self) -> None:
        """Raises what went wrong behind, too."""
        if self.closed:
            return
        super().close()
        try:
            with self._behind:
                self._behind.wait()
        finally:
            os.close(self._descriptor)
