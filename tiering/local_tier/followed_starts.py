"""The offsets up to which records were deleted from tiered logs: their archives delete these records, too.

The log start offset alone does not tell. As in Kafka, a log without tiering starts at its first local segment, and retention
moves that start while the archive keeps what was copied before. The same holds while a broker has the directory. So these
offsets are kept apart from the checkpoints, in the file of topics, and move only when the log start of a tiered log moves here.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from local_log.engine.unified_log import UnifiedLog
from local_log.formats.filenames import TopicPartition
from tiering.local_tier.topics_file import Topic, Topics


@dataclass(frozen=True, slots=True)
class _Start:
    """A log's start offset as it was last seen, and what of it the archive follows."""

    seen: int
    followed: int


@dataclass(slots=True)
class FollowedStarts:
    """The offsets of all open logs. Many threads may use it."""

    _starts: dict[TopicPartition, _Start] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look(self, partition: TopicPartition, log: UnifiedLog, saved: int = 0) -> int:
        """The offset that the archive follows, 0 of a log without tiering. `saved` is that of the file, for the first look."""
        with self._lock:
            start, is_tiered = log.offsets.log_start, log.folder.config.remote_storage_enable
            before = self._starts.get(partition, _Start(start, saved))
            followed = start if start > before.seen else min(before.followed, start)
            self._starts[partition] = _Start(start, followed if is_tiered else 0)
            return self._starts[partition].followed

    def forget(self, partition: TopicPartition) -> None:
        """The log is deleted."""
        with self._lock:
            self._starts.pop(partition, None)

    def kept(self, topics: Topics, logs: Mapping[TopicPartition, UnifiedLog]) -> Topics:
        """The topics with the offsets of these logs; those of the others stay as they are."""
        changed: dict[str, dict[int, int]] = {}
        for partition, log in logs.items():
            topic = topics.topics.get(partition.topic)
            if topic is None:
                continue
            number, saved = partition.partition, topic.log_start_offsets.get(partition.partition)
            now = self.look(partition, log, saved or 0)
            if log.folder.config.remote_storage_enable and now != saved:
                changed.setdefault(partition.topic, dict(topic.log_start_offsets))[number] = now
            elif not log.folder.config.remote_storage_enable and saved is not None:
                del changed.setdefault(partition.topic, dict(topic.log_start_offsets))[number]
        return replace(topics, topics={**topics.topics, **{n: _with(topics.topics[n], of) for n, of in changed.items()}})


def _with(topic: Topic, offsets: Mapping[int, int]) -> Topic:
    return replace(topic, log_start_offsets=dict(sorted(offsets.items())))
