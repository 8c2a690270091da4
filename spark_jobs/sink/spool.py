"""A segment on this machine until it is uploaded: a store wants an object's size and CRC-32C before its first byte."""

from tempfile import SpooledTemporaryFile

from local_log.formats.primitives import Buffer

MEMORY_BYTES = 1 << 20


class Spool:
    """Bytes that are appended and read back. More than a MiB of them are in an unnamed temporary file."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(MEMORY_BYTES)  # noqa: SIM115  # it lives as long as the segment
        self.size = 0

    def append(self, data: Buffer) -> None:
        """Appends bytes; `size` grows by as many."""
        self._file.seek(self.size)
        self._file.write(data)
        self.size += len(data)

    def read(self, start: int, end: int) -> bytes:
        """The bytes `[start, end)` that were appended."""
        self._file.seek(start)
        return self._file.read(end - start)

    def close(self) -> None:
        """Frees the memory and deletes the file."""
        self._file.close()
