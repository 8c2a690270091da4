"""The last offset of each key in a part of a log, within a bound of memory (SkimpyOffsetMap)."""

from typing import Any

import numpy as np

from local_log.errors import Invalid
from local_log.formats.kernels.constants import ENTRY_WORDS
from local_log.formats.record_batch.writer import binary_buffers

ENTRY_BYTES = ENTRY_WORDS * 8


class OffsetMap:
    """Offsets by the MD5 of their keys: 24 bytes for each key, so two keys of the same MD5 count as one, as in Kafka.

    `latest_offset` is the last offset that the map covers, -1 for none.
    """

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        """`memory_bytes` is log.cleaner.dedupe.buffer.size, `load_factor` log.cleaner.io.buffer.load.factor. Raises Invalid."""
        self.slots = memory_bytes // ENTRY_BYTES
        self.size_max = int(self.slots * load_factor)
        if not (0 < load_factor <= 1 and self.slots * load_factor > 1):
            raise Invalid(
                f"log.cleaner.dedupe.buffer.size={memory_bytes} with log.cleaner.io.buffer.load.factor={load_factor}: "
                f"no room for one key of {ENTRY_BYTES} bytes; raise the size"
            )
        self._table = np.zeros(self.slots * ENTRY_WORDS, np.uint64)
        self._size = 0
        self.latest_offset = -1

    def __len__(self) -> int:
        return self._size

    @property
    def memory_bytes(self) -> int:
        """The memory that the map uses, whatever it has in it."""
        return int(self._table.nbytes)

    def clear(self) -> None:
        """Removes all keys."""
        if self._size:
            self._table.fill(0)
        self._size = 0
        self.latest_offset = -1

    def put(self, keys: Any, offsets: Any, start_offset: int) -> int:
        """Sets the offset of each key that is not null, from `start_offset` on, until the map is full; the number of rows done.

        `keys` is an Arrow column of binary; offsets increase.
        """
        from local_log.formats.kernels.md5 import room
        from local_log.formats.kernels.offset_map import put_keys

        table = (self._table, self._size, self.size_max)
        done, self._size = put_keys(*binary_buffers(keys), offsets, start_offset, *table, *room(len(keys)))
        used = (offsets[:done] >= start_offset) & keys.is_valid().to_numpy(zero_copy_only=False)[:done]
        if used.any():
            self.latest_offset = int(offsets[:done][used][-1])
        return int(done)

    def covers(self, offset: int) -> None:
        """All keys up to `offset`, inclusive, are in the map."""
        self.latest_offset = max(self.latest_offset, offset)

    def offsets(self) -> Any:
        """The offsets of all keys, sorted."""
        entries = self._table.reshape(-1, ENTRY_WORDS)
        return np.sort(entries[(entries[:, 0] != 0) | (entries[:, 1] != 0), 2].astype(np.int64))

    def latest_of(self, keys: Any) -> Any:
        """The offset of each key, -1 if it has none; 2^63-1 for a null key."""
        from local_log.formats.kernels.md5 import room
        from local_log.formats.kernels.offset_map import latest_offsets

        out = np.empty(len(keys), np.int64)
        latest_offsets(*binary_buffers(keys), self._table, out, *room(len(keys)))
        return out
