"""Writes the transaction index of a segment: append, list, truncate (TransactionIndex)."""

from collections.abc import Iterator

from local_log.disk import WritableDisk
from local_log.engine.index_file import CorruptIndex
from local_log.errors import Corrupt, Invalid
from local_log.formats.indexes.transaction import ENTRY as TXN_ENTRY
from local_log.formats.indexes.transaction import AbortedTxn


class TxnIndexFile:
    """`.txnindex`: the aborted transactions whose marker is in the segment. The file is created with the first entry."""

    def __init__(self, disk: WritableDisk, file: str, base_offset: int) -> None:
        self._disk = disk
        self.file = file
        self.base_offset = base_offset
        self._exists = disk.exists(file)
        self._last_offset: int | None = None  # of the entries appended since the file was opened, as in Kafka

    def all(self) -> Iterator[AbortedTxn]:
        """The entries, in order. Raises Corrupt for one of an unknown version."""
        data = self._disk.read(self.file) if self._exists else b""
        for at in range(0, len(data) - TXN_ENTRY.size + 1, TXN_ENTRY.size):
            version, producer_id, first, last, last_stable = TXN_ENTRY.unpack_from(data, at)
            if version >> 8 > 0:  # Kafka checks only the first of the two bytes
                raise Corrupt(f"an aborted transaction of version {version}; Kafka writes version 0", file=self.file, position=at)
            yield AbortedTxn(first, last, producer_id, last_stable)

    def check(self) -> None:
        """Raises CorruptIndex if a transaction's marker is before the segment's base offset."""
        for at, aborted in enumerate(self.all()):
            if aborted.last_offset < self.base_offset:
                problem = f"an aborted transaction with its marker at {aborted.last_offset}, before the segment"
                raise CorruptIndex(problem, file=self.file, position=at * TXN_ENTRY.size)

    def append(self, aborted: AbortedTxn) -> None:
        """Adds an entry. Raises Invalid unless its marker is after that of the entry appended before."""
        if self._last_offset is not None and self._last_offset >= aborted.last_offset:
            raise Invalid(f"{self.file}: a marker at {aborted.last_offset} after one at {self._last_offset}")
        self._last_offset = aborted.last_offset
        size = self._disk.size(self.file) if self._exists else 0
        row = TXN_ENTRY.pack(0, aborted.producer_id, aborted.first_offset, aborted.last_offset, aborted.last_stable_offset)
        self._disk.write(self.file, size, row)
        self._exists = True

    def truncate_to(self, offset: int) -> None:
        """Drops the entries from the first one on whose marker is at or above `offset`."""
        last = None
        for at, aborted in enumerate(self.all()):
            if aborted.last_offset >= offset:
                self._disk.truncate(self.file, at * TXN_ENTRY.size)
                self._last_offset = last
                return
            last = aborted.last_offset

    def reset(self) -> None:
        """Empties the file, if it exists."""
        if self._exists:
            self._disk.truncate(self.file, 0)
        self._last_offset = None

    def sync(self) -> None:
        """Flushes the entries to the device."""
        if self._exists:
            self._disk.sync(self.file)
