"""A log directory that this process owns, as offloads and agents read a broker's, with the offsets of the open logs."""

from contextlib import suppress
from dataclasses import dataclass

from local_log.errors import NotFound
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, TopicPartition
from local_log.log_dir import LogDir
from tiering.local_tier.local_tier import LocalTier


@dataclass(frozen=True, slots=True)
class OwnLogDir(LogDir):
    """The log directory at `path` of `tier`. Its checkpoint files may be seconds old; the published offsets are not."""

    tier: LocalTier

    def partitions(self) -> tuple[TopicPartition, ...]:
        """See LogDir. Raises Offline, too: what is seen where a disk is not mounted says nothing of its logs."""
        for failure in self.tier.offline:
            if failure.directory == self.path:
                raise failure
        return LogDir.partitions(self)

    def checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """The offsets of the open logs for the high watermarks and log start offsets, else the file's."""
        if name not in (HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT):
            return LogDir.checkpoint(self, name)
        offsets = self.tier.offsets(self.path)
        if name == HIGH_WATERMARK_CHECKPOINT:
            return {partition: now.high_watermark.offset for partition, now in offsets.items()}
        return {partition: now.log_start for partition, now in offsets.items()}

    def settle(self, partition: TopicPartition) -> None:
        """See LogDir. The segments to be archived were synced when they were rolled; markers of their transactions may be later.

        A marker that a loss of power takes leaves its transaction open, and it may end in another way than the archive says.
        """
        with suppress(NotFound):  # deleted meanwhile
            self.tier.log(partition).sync_appended()

    def deleted_to(self, partition: TopicPartition) -> int:
        """See LogDir. The start of a tiered log moves only by DeleteRecords and with the archive's."""
        with suppress(NotFound):  # deleted meanwhile
            return self.tier.followed_start(partition)
        return 0
