"""What the log cleaner has done and what it is behind with: the values of Kafka's metrics of LogCleaner and LogCleanerManager."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from local_log.engine.cleaner import DirtyPart


@dataclass(frozen=True, slots=True)
class CleanerStatus:
    """The metrics; the percentages and times are those of each thread's last round, or the greatest of these.

    `uncleanable` has by log directory the number of partitions that are left alone after an error, and their bytes that could
    be cleaned. `max_dirty_percent` is that of the dirtiest log when the cleaner last looked.
    """

    recopy_percent: int = 0
    max_clean_time_secs: int = 0
    max_buffer_utilization_percent: int = 0
    max_compaction_delay_secs: int = 0
    dead_threads: int = 0
    max_dirty_percent: int = 0
    time_since_last_run_ms: int = 0
    uncleanable: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Round:
    """A finished round over one log: the bytes of the cleaned segments before and after, and how full the map was, 0 to 1."""

    bytes_read: int
    bytes_written: int
    elapsed_ms: int
    map_utilization: float


@dataclass(slots=True)
class CleanerStats:
    """What is counted; many threads may use it. `last_run_ms` is when the cleaner last looked for work."""

    last_run_ms: int
    dead_threads: int = 0
    _dirty_ratio: float = 0.0
    _overdue_ms: dict[int, int] = field(default_factory=dict)
    _rounds: dict[int, Round] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def looked(self, thread: int, now_ms: int, parts: Iterable[DirtyPart]) -> None:
        """A thread has looked at all logs."""
        found = tuple(parts)
        with self._lock:
            self.last_run_ms = now_ms
            self._dirty_ratio = max((part.dirty_ratio for part in found), default=0.0)
            self._overdue_ms[thread] = max((part.overdue_ms for part in found), default=0)

    def cleaned(self, thread: int, done: Round) -> None:
        """A thread has finished a round."""
        with self._lock:
            self._rounds[thread] = done

    def died(self) -> None:
        """A thread has ended with an exception."""
        with self._lock:
            self.dead_threads += 1

    def status(self, now_ms: int, uncleanable: Mapping[str, tuple[int, int]]) -> CleanerStatus:
        """The metrics now."""
        with self._lock:
            rounds, overdue = list(self._rounds.values()), list(self._overdue_ms.values())
            return CleanerStatus(
                recopy_percent=100 * sum(r.bytes_written for r in rounds) // max(1, sum(r.bytes_read for r in rounds)),
                max_clean_time_secs=max((r.elapsed_ms for r in rounds), default=0) // 1000,
                max_buffer_utilization_percent=int(100 * max((r.map_utilization for r in rounds), default=0.0)),
                max_compaction_delay_secs=max(overdue, default=0) // 1000,
                dead_threads=self.dead_threads,
                max_dirty_percent=int(100 * self._dirty_ratio),
                time_since_last_run_ms=max(0, now_ms - self.last_run_ms),
                uncleanable=uncleanable,
            )


def bytes_below(sizes: Iterable[tuple[int, int]], offset: int) -> int:
    """The bytes of the segments, (base offset, bytes), that start below an offset."""
    return sum(size for base, size in sizes if base < offset)
