"""Refuses appends before a volume is full: a log directory whose disk fails can no longer be read, either."""

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from local_log.disk import parent_of

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
