"""Windows of the cache that the compiled loop answers with: bytes of archived segments in memory, whose batches were checked."""

from collections.abc import Container, Iterable
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from remote.read.window_cache import Window
from tiering.endpoint.fetch_loop.tables import FILES_MAX, IN_MEMORY, NO_FILE, NO_LOG, SPANS_MAX, WINDOWS_MAX, Tables
from tiering.endpoint.reads import Reads
from tiering.read.tiered_log import TieredLog

ANSWERS_MIN: Final = 2
"""A window has to have batches for so many answers, or it is not worth it to look at it."""
_NOTHING: Final = (NO_LOG, NO_FILE, 0, 0, 0, 0, 0, 0)


class _Known(NamedTuple):
    log: TieredLog
    window: Window


class KnownWindows:
    """Of WINDOWS_MAX windows. For the thread of the sockets, which has to `look` every second.

    They are in the cache yet, or were a second ago: what is not is forgotten, so that its memory can be used again.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._windows: dict[int, _Known] = {}
        self._slots = count()

    def learn(self, log: TieredLog, number: int, offset: int, max_bytes: int, reads: Reads) -> bool:
        """The window in which a log that the tables call `number` is read on from an offset, for answers of up to `max_bytes`.

        Whether it is worth it, and known. Raises LogError.
        """
        self.look(reads)
        lent = reads.lent(log, offset)
        if lent is None or not len(lent.ends) or lent.ends[-1] - lent.starts[0] < ANSWERS_MIN * max_bytes:
            return False
        rows, slot = min(len(lent.ends), SPANS_MAX), self._slot(log, lent.window)
        known, following = self._tables.files[slot], self._tables.spans[slot]["next"]
        if known["spans"] and known["start"] <= offset < following[known["spans"] - 1]:
            return True  # somebody reads it from an earlier offset on
        spans = self._tables.spans[slot, :rows]
        spans["position"], spans["end"] = lent.starts[:rows], lent.ends[:rows]
        spans["first"], spans["next"], spans["last"] = lent.bases[:rows], lent.nexts[:rows], lent.starts[:rows]
        before_segment = np.frombuffer(lent.window.data, np.uint8).ctypes.data - lent.window.start
        self._tables.files[slot] = (number, IN_MEMORY, offset, 0, rows, 0, 0, before_segment)
        return True

    def keep(self, logs: Container[int]) -> None:
        """Forgets windows of all logs but those with these ids."""
        self._forget(slot for slot, known in self._windows.items() if id(known.log) not in logs)

    def look(self, reads: Reads) -> None:
        """Forgets windows that the cache has no longer."""
        self._forget(slot for slot, known in self._windows.items() if not reads.is_lent(known.window))

    def sent_of(self, slot: int, position: int, size: int) -> memoryview:
        """Bytes of a window at a position of its segment."""
        window = self._windows[slot].window
        return window.data[position - window.start : position - window.start + size]

    def _slot(self, log: TieredLog, window: Window) -> int:
        for slot, known in self._windows.items():
            if known.log is log and known.window is window:
                return slot
        slot = FILES_MAX + next(self._slots) % WINDOWS_MAX
        self._tables.files[slot] = _NOTHING
        self._windows[slot] = _Known(log, window)
        return slot

    def _forget(self, slots: Iterable[int]) -> None:
        for slot in list(slots):
            self._tables.files[slot] = _NOTHING
            del self._windows[slot]
