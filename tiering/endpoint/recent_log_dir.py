"""A log directory as it was a moment ago: its list of partitions and its checkpoint files are read once for many topics."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final, TypeVar

from local_log.formats.filenames import TopicPartition
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from remote.clock import Time

T = TypeVar("T")

LIST_MS_MAX: Final = 1_000
CHECKPOINT_MS_MAX: Final = 100
SHARE: Final = 10
"""What takes long to read is kept so many times as long, so that reading takes a small share of the time."""


@dataclass(frozen=True, slots=True)
class RecentLogDir(LogDir):
    """For many threads. Each checkpoint has a line for every partition: without this, each topic would read all lines."""

    clock: Time = field(kw_only=True)
    _read: dict[str, tuple[int, Any]] = field(default_factory=dict, compare=False, repr=False)
    """What was read, and until when it is kept, by what it is."""
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """As they were listed LIST_MS_MAX ago, or longer where listing takes long. Raises NotFound."""
        return tuple(partition for of_topic in self._by_topic().values() for partition in of_topic)

    def partitions_of(self, topic: str) -> tuple[TopicPartition, ...]:
        """Likewise those of one topic. Raises NotFound."""
        return self._by_topic().get(topic, ())

    def checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """A checkpoint file as it was CHECKPOINT_MS_MAX ago, or longer if it is large. Raises Corrupt, Unreadable."""
        return self._recent(name, CHECKPOINT_MS_MAX, lambda: LogDir.checkpoint(self, name))

    def _log(self, partition: TopicPartition, start: int | None, high_watermark: int | None) -> LogReader:
        """It is kept for a while, in which the topic may be deleted and created anew: of the new one nothing is read."""
        inode = self.disk.state(f"{self.path}/{partition}")[:2]  # before the listing
        return replace(LogDir._log(self, partition, start, high_watermark), inode=inode)

    def _by_topic(self) -> dict[str, tuple[TopicPartition, ...]]:
        def listed() -> dict[str, tuple[TopicPartition, ...]]:
            topics = groupby(LogDir.partitions(self), lambda partition: partition.topic)
            return {topic: tuple(partitions) for topic, partitions in topics}

        return self._recent("", LIST_MS_MAX, listed)

    def _recent(self, what: str, ms_max: int, read: Callable[[], T]) -> T:
        with self._lock:
            now_ms = self.clock.hi_res_clock_ms()
            known = self._read.get(what)
            if known is None or now_ms >= known[0]:
                found_now = read()
                took_ms = self.clock.hi_res_clock_ms() - now_ms
                known = self._read[what] = now_ms + max(ms_max, SHARE * took_ms), found_now
            found: T = known[1]
            return found
