"""Reads over both tiers of the logs that a LocalTier owns, for as long as it runs."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from local_log.formats.filenames import TopicPartition
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from remote.keys import PartitionPath
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from tiering.local_tier.local_tier import LocalTier
from tiering.read.archive_reads import ArchiveReads
from tiering.read.live_log import LiveLog, archive_loader


@dataclass(slots=True)
class TierReads:
    """A LiveLog for each partition of `tier` that is asked for; `store` has the archive, None for no archive.

    Many threads may use it.
    """

    tier: LocalTier
    store: ObjectStore | None
    reading: ReadContext = field(default_factory=ReadContext)
    _reads: ArchiveReads = field(default_factory=ArchiveReads)
    _logs: dict[TopicPartition, LiveLog] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def log(self, partition: TopicPartition) -> LiveLog:
        """A partition over both tiers. Raises as `LocalTier.log`."""
        log, known = self.tier.log(partition), self._logs.get(partition)
        if known is not None and known.log is log:
            return known
        with self._lock:
            known = self._logs.get(partition)
            if known is None or known.log is not log:  # a topic that was deleted and created again has another log
                known = self._logs[partition] = LiveLog(log, partition, self._load(partition), self._reads)
            return known

    def committed(self, partition: TopicPartition) -> None:
        """To be called after a commit to the partition's archive: the manifest is loaded again when it is needed next."""
        known = self._logs.get(partition)
        if known is not None:
            known.refresh()

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Of partitions whose topic is deleted: else what was open of them would stay so."""
        with self._lock:
            for partition in partitions:
                self._logs.pop(partition, None)

    def close(self) -> None:
        """Cancels what is requested ahead, and forgets all logs."""
        with self._lock:
            self._logs.clear()
        self._reads.forget()

    def _load(self, partition: TopicPartition) -> Callable[[], ArchivedLog | None]:
        if self.store is None:
            return lambda: None
        topic_id = self.tier.topic(partition.topic).topic_id or ZERO_TOPIC_ID
        return archive_loader(self.store, PartitionPath(partition.topic, topic_id, partition.partition), self.reading)
