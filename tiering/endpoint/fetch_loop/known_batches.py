"""Where the batches lie that the compiled loop answers with: in files that are open, whose checksums were checked."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import numpy as np

from local_log.batch_file import BatchFile
from local_log.checked_files import sealed_range
from local_log.errors import Corrupt, LogError
from local_log.file_range import FileRange, FileState
from local_log.formats.batches import scan
from local_log.formats.header_layout import MAGIC
from local_log.formats.record_batch.batch_v2 import Batches, check_crcs
from tiering.endpoint.fetch_loop.known_windows import KnownWindows
from tiering.endpoint.fetch_loop.tables import BATCH, BATCHES_MAX, FILES_MAX, NO_FILE, NO_LOG, SPAN, SPANS_MAX, Tables
from tiering.endpoint.reads import Reads
from tiering.read.tiered_log import TieredLog

LEARNED_BYTES: Final = 128 << 10
"""Of a file, at once: as much as the system reads ahead, so that it is in memory."""
_LEARNED_MAX: Final = 1 << 14


@dataclass(slots=True)
class _Known:
    """One file of a log, and the positions from which on its batches were looked at in this second."""

    log: TieredLog
    file: BatchFile
    state: FileState
    offset: int
    """The first that a fetch read from the file, whose first records may be deleted, or be read from the other tier."""
    learned: set[int] = field(default_factory=set)
    mapping: memoryview | None = None
    """Of the file as far as it is checked."""
    spans: tuple[FileState, int] | None = None
    """The state of the file when its spans were looked at, and how many it had."""


class KnownBatches:
    """Of FILES_MAX files, BATCHES_MAX of each. For the thread of the sockets, which has to `look` every second."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._files: dict[int, _Known] = {}
        self._slots = count()
        self._numbers: dict[int, tuple[int, TieredLog]] = {}
        self._next_number = count()
        self.windows: Final = KnownWindows(tables)

    def number(self, log: TieredLog) -> int:
        """What a log is called in the tables, for as long as it is kept."""
        found = self._numbers.get(id(log))
        if found is None:
            found = self._numbers[id(log)] = next(self._next_number), log
        return found[0]

    def keep(self, logs: Iterable[TieredLog]) -> None:
        """Forgets all but these."""
        kept = {id(log) for log in logs}
        self._numbers = {key: found for key, found in self._numbers.items() if key in kept}
        for slot in [slot for slot, known in self._files.items() if id(known.log) not in kept]:
            self._forget(slot)
        self.windows.keep(kept)

    def learn(self, log: TieredLog, offset: int, sent: FileRange, reads: Reads) -> None:
        """The batches of a log's file from those on that were sent just now for an offset."""
        file, position = reads.file_at_once(log, offset), sent.position
        if file is None:
            return
        slot = self._slot(log, file, offset)
        learned = self._files[slot].learned
        if position in learned:
            return  # what is there is known, and does not help
        if len(learned) >= _LEARNED_MAX:
            learned.clear()
        learned.add(position)
        found = _batches(file, position)
        if len(found):
            self._insert(slot, found)

    def learn_spans(self, log: TieredLog, offset: int, reads: Reads) -> bool:
        """What of a log's file was checked, for larger answers from an offset on. Whether that is known."""
        file = reads.file_at_once(log, offset)
        checked = None if file is None else reads.checked_at_once(file)
        if file is None or checked is None:
            return False
        state, (position, end, first, following, last) = checked
        slot = self._slot(log, file, offset)
        known, rows, row = self._files[slot], self._tables.spans[slot], self._tables.files[slot]
        looked = state, len(first)
        if known.spans == looked and rows["first"][0] <= offset < rows["next"][max(0, row["spans"] - 1)]:
            return True
        if known.mapping is None or len(known.mapping) < state.size:
            known.mapping = file.opened.mapped(0, state.size)
        stop = int(np.searchsorted(following, _stop(file), "right"))
        start = max(0, int(np.searchsorted(following[:stop], offset, "right")) - SPANS_MAX // 8)
        stop = min(stop, start + SPANS_MAX) if known.mapping is not None else start
        found = np.zeros(stop - start, SPAN)
        for name, column in zip(SPAN.names or (), (position, end, first, following, last), strict=True):
            found[name] = column[start:stop]
        known.spans, rows[: stop - start] = looked, found
        row["spans"], row["size"], row["modified_ns"] = len(found), state.size, state.modified_ns
        row["mapping"] = 0 if known.mapping is None else np.frombuffer(known.mapping, np.uint8).ctypes.data
        return len(found) > 0

    def sent_of(self, slot: int, position: int, size: int, last: int, seal: bytes) -> FileRange:
        """Bytes of a file that were sent perhaps: see `sealed_range`."""
        return sealed_range(self._files[slot].file.opened, position, size, last, seal)

    def learn_window(self, log: TieredLog, offset: int, max_bytes: int, reads: Reads) -> bool:
        """The window of the cache in which a log is read on from an offset. Whether it is worth it, and known."""
        return self.windows.learn(log, self.number(log), offset, max_bytes, reads)

    def look(self, reads: Reads) -> None:
        """Forgets files that others have taken the place of, and leaves none of them open; windows that the cache has not."""
        self.windows.look(reads)
        for slot, known in list(self._files.items()):
            row = self._tables.files[slot]
            try:
                file = reads.file_at_once(known.log, known.offset) if row["count"] or row["spans"] else None
                state = None if file is None else file.opened.state()
            except LogError:
                file = state = None
            if file is None or state is None or (file.name, state[:2]) != (known.file.name, known.state[:2]):
                self._forget(slot)
            else:
                known.file = file
                known.learned.clear()
                row["descriptor"] = file.opened.fileno()

    def _slot(self, log: TieredLog, file: BatchFile, offset: int) -> int:
        state = file.opened.state()
        for slot, known in self._files.items():
            if known.log is log and (known.file.name, known.state[:2]) == (file.name, state[:2]):
                known.offset = self._tables.files[slot]["start"] = min(known.offset, offset)
                return slot
        slot = next(self._slots) % FILES_MAX
        self._files.pop(slot, None)
        self._files[slot] = _Known(log, file, state, offset)
        self._tables.files[slot] = (self.number(log), file.opened.fileno(), offset, 0, 0, 0, 0, 0)
        return slot

    def _forget(self, slot: int) -> None:
        self._tables.files[slot] = (NO_LOG, NO_FILE, 0, 0, 0, 0, 0, 0)
        del self._files[slot]

    def _insert(self, slot: int, found: Any) -> None:
        """In the order of offsets, in the place of those that are known of this range; of too many, the new ones alone stay."""
        row, batches = self._tables.files[slot], self._tables.batches[slot]
        known = batches[: row["count"]]
        before = known[known["next"] <= found["first"][0]]
        after = known[known["first"] >= found["next"][-1]]
        together = np.concatenate([before, found, after])
        kept = together if len(together) <= BATCHES_MAX else found[:BATCHES_MAX]
        batches[: len(kept)] = kept
        row["count"] = len(kept)


def _batches(file: BatchFile, position: int) -> Any:
    """Rows of the table of the right batches from a position on. Raises LogError."""
    data = file.opened.read_large(position, position + LEARNED_BYTES)
    try:
        batches, _ = scan(data)
        check_crcs(data, batches)
    except Corrupt:
        return np.zeros(0, BATCH)
    batches = batches[(batches.base_offset < _stop(file)) & (batches.header["magic"] == MAGIC)]
    return _rows(batches, position)


def _stop(file: BatchFile) -> int:
    """The offset that is not to be read from a file any more."""
    return file.end_offset if file.next_offset is None else min(file.end_offset, file.next_offset)


def _rows(batches: Batches, position: int) -> Any:
    rows = np.zeros(len(batches), BATCH)
    rows["first"], rows["next"] = batches.base_offset, batches.last_offset.astype(np.int64) + 1
    rows["position"], rows["size"], rows["crc"] = batches.positions + position, batches.size, batches.header["crc"]
    return rows
