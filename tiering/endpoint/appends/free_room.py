"""Refuses appends before a volume is full: a log directory whose disk fails can no longer be read, either.

Producers are refused first. Groups, transactions and new topics may use half of what is kept free.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from local_log.disk import Disk, parent_of
from local_log.errors import Unreadable
from remote.clock import Clock

if TYPE_CHECKING:
    from local_log.engine.unified_log import UnifiedLog

LOOKED_MS_MAX: Final = 1_000
"""So long what was seen of a volume counts; others may write to it, too."""


@dataclass(slots=True)
class FreeRoom:
    """What may be appended to log directories before their volumes are looked at again. For many threads."""

    _left: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Bytes, and when the volume was looked at, by directory."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, log: "UnifiedLog", size: int, kept_bytes: int, now_ms: int) -> bool:
        """Whether so many bytes may be appended, after which `kept_bytes` are still free. Raises LogError if nobody can say."""
        directory = parent_of(log.folder.path)
        with self._lock:
            left, looked_ms = self._left.get(directory, (-1, 0))
            if left < size or not 0 <= now_ms - looked_ms < LOOKED_MS_MAX:
                left, looked_ms = log.folder.disk.space(directory).usable - kept_bytes, now_ms
            is_room = left >= size
            self._left[directory] = left - size if is_room else left, looked_ms
        return is_room

    def check(self, log: "UnifiedLog", size: int, kept_bytes: int, now_ms: int) -> None:
        """Raises Unreadable if so many bytes may not be appended, or if nobody can say."""
        if not self.take(log, size, kept_bytes, now_ms):
            raise _full(log.folder.path, kept_bytes, "nothing is appended")


@dataclass(frozen=True, slots=True)
class CoordinatorsRoom:
    """For the records of coordinators, of which half of `min_free_bytes` is kept free."""

    min_free_bytes: int
    clock: Clock
    _room: FreeRoom = field(default_factory=FreeRoom)

    def __call__(self, log: "UnifiedLog", size: int) -> None:
        """Raises Unreadable if so many bytes may not be appended."""
        self._room.check(log, size, self.min_free_bytes // 2, self.clock.now_ms())


def check_room_for_topics(directories: Iterable[tuple[str, Disk | None]], min_free_bytes: int) -> None:
    """Raises Unreadable where there is no room for the files of a new topic."""
    for path, disk in directories:
        if disk is not None and disk.space(path).usable < min_free_bytes // 2:
            raise _full(path, min_free_bytes // 2, "no topic is created")


def _full(path: str, kept_bytes: int, so: str) -> Unreadable:
    return Unreadable(
        f"{path}: its volume has less than {kept_bytes} bytes free (storage.min.free.bytes), so {so}; free some space there"
    )
