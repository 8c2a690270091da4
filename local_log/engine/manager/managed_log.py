"""An open log of the log manager: its partition, directory and topic id, and renames of its folder."""

from collections.abc import Iterable
from dataclasses import dataclass

from local_log.disk import replace_file
from local_log.engine.manager.data_dir import DataDir
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Invalid, NotFound, placed
from local_log.formats.filenames import PARTITION_METADATA, TopicPartition
from local_log.formats.partition_metadata import read_topic_id, write_topic_id


class InconsistentTopicId(Invalid):
    """The folder belongs to another topic id: the topic was deleted and created again. Kafka's InconsistentTopicIdException."""


@dataclass(slots=True)
class ManagedLog:
    """A partition's log. `topic_id` is None for a topic from before topic ids."""

    partition: TopicPartition
    directory: DataDir
    log: UnifiedLog
    topic_id: str | None

    @property
    def is_online(self) -> bool:
        """Whether its log directory is online, that is, the disk has not failed."""
        return self.directory.failure is None

    def assign_topic_id(self, topic_id: str) -> None:
        """Writes the topic id to partition.metadata if there is none. Raises InconsistentTopicId, Offline."""
        if self.topic_id is None:
            replace_file(self.directory.disk, f"{self.log.folder.path}/{PARTITION_METADATA}", write_topic_id(topic_id))
            self.topic_id = topic_id
        elif self.topic_id != topic_id:
            raise InconsistentTopicId(
                f"{self.log.folder.path}: holds the topic of id {self.topic_id}, not {topic_id}; delete it before another is made"
            )

    def rename(self, name: str) -> None:
        """Renames the log's folder. The open log continues to use the folder under its new path. Raises Offline."""
        with self.log.lock:
            self._rename(name)

    def _rename(self, name: str) -> None:
        log, disk = self.log, self.directory.disk
        path = f"{self.directory.path}/{name}"
        disk.rename(log.folder.path, path)
        disk.sync_folder(self.directory.path)
        log.folder.path = path
        log.folder.doomed.clear()
        for segment in log.local.segments:
            segment.moved_to(path)
        log.producers.moved_to(path)
        log.epochs.moved_to(path)


def topic_id_in(directory: DataDir, path: str) -> str | None:
    """The topic id in a partition's folder; None for a topic from before topic ids. Raises Corrupt, Offline."""
    file = f"{path}/{PARTITION_METADATA}"
    try:
        with placed(file):
            return read_topic_id(directory.disk.read(file))
    except NotFound:
        return None


def write_recovery_points(directory: DataDir, logs: Iterable[ManagedLog]) -> None:
    """Writes the recovery points of the directory's logs. Raises Offline."""
    directory.write_recovery_points({m.partition: m.log.recovery_point for m in logs})


def write_log_start_offsets(directory: DataDir, logs: Iterable[ManagedLog]) -> None:
    """Writes the log start offsets of tiered logs and of those that start after their first segment's base. Raises Offline."""
    said = {
        m.partition: m.log.log_start_offset
        for m in logs
        if m.log.folder.config.remote_storage_enable or m.log.log_start_offset > m.log.local.segments.first.base_offset
    }
    directory.write_log_start_offsets(said)


def write_high_watermarks(directory: DataDir, logs: Iterable[ManagedLog]) -> None:
    """Writes the high watermarks of the directory's logs. Raises Offline."""
    directory.write_high_watermarks({m.partition: m.log.high_watermark for m in logs})
