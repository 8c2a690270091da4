"""Where each log's next round of cleaning begins, with the file cleaner-offset-checkpoint of each log directory."""

import threading
from collections.abc import Callable, Mapping

from local_log.engine.manager.data_dir import DataDir
from local_log.engine.manager.managed_log import ManagedLog
from local_log.formats.filenames import TopicPartition


class CleanerOffsets:
    """The offsets, for many threads. `logs` are the open ones; others lose their offsets at the next write."""

    def __init__(self, logs: Callable[[], Mapping[TopicPartition, ManagedLog]]) -> None:
        self._logs = logs
        self._offsets: dict[TopicPartition, int] = {}
        self._lock = threading.Lock()

    def read(self) -> None:
        """Takes what the checkpoint files said at startup."""
        for partition, managed in self._logs().items():
            offset = managed.directory.said.cleaner_offsets.get(partition)
            if offset is not None:
                self._offsets[partition] = offset

    def get(self, partition: TopicPartition) -> int | None:
        """The offset, None for a log that was never cleaned."""
        return self._offsets.get(partition)

    def set(self, managed: ManagedLog, offset: int) -> None:
        """Sets a log's offset, and writes the checkpoint. Raises Offline."""
        with self._lock:
            self._offsets[managed.partition] = offset
            self._write(managed.directory)

    def truncate(self, managed: ManagedLog, offset: int) -> None:
        """Lowers a log's offset to this one if it is above it. Raises Offline."""
        if managed.log.folder.config.compact and self._offsets.get(managed.partition, 0) > offset:
            self.set(managed, offset)

    def remove(self, managed: ManagedLog) -> None:
        """Removes the offset of a log that is deleted. Raises Offline."""
        with self._lock:
            if self._offsets.pop(managed.partition, None) is not None:
                self._write(managed.directory)

    def _write(self, directory: DataDir) -> None:
        logs = self._logs()
        of = {p: offset for p, offset in self._offsets.items() if p in logs and logs[p].directory is directory}
        directory.write_cleaner_offsets(of)
