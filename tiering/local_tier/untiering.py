"""Refuses to end the tiering of logs whose first records only the archive has.

A log without tiering starts where its first local segment does, as in Kafka, so that these records would be lost to its readers.
Kafka refuses to turn remote.storage.enable off, too, unless the remote records are to be deleted, and does not start on tiered
topics where tiered storage is turned off for all of them.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from local_log.engine.config import LogConfig
from local_log.engine.manager.data_dir import DataDir
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Corrupt
from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT, TopicPartition
from local_log.log_dir import LogDir
from tiering.local_tier.errors import InvalidTopicConfig
from tiering.local_tier.topics_file import Topic
from tiering.log_tools.opened_partition import first_base


def refuse_untiering(name: str, config: LogConfig, logs: Iterable[UnifiedLog]) -> None:
    """Raises InvalidTopicConfig if the topic's new settings end the tiering of a log that starts in the archive."""
    if config.remote_storage_enable:
        return
    for log in logs:
        now = log.offsets
        if log.folder.config.remote_storage_enable and now.log_start < now.local_log_start:
            raise _untiered(name, log.folder.path, now.log_start, now.local_log_start)


def refuse_untiered(directory: DataDir, topics: Mapping[str, Topic]) -> None:
    """The same for topics whose logs were tiered before and are not any more, before they are opened. Raises Offline, too."""
    starts: Mapping[TopicPartition, int] = {}
    with suppress(Corrupt):  # a damaged checkpoint counts as empty, see DataDir
        starts = LogDir(directory.disk, directory.path).checkpoint(LOG_START_OFFSET_CHECKPOINT) if topics else {}
    for name, topic in topics.items():
        for partition in (TopicPartition(name, number) for number in topic.log_start_offsets):
            path, start = f"{directory.path}/{partition}", starts.get(partition, 0)
            first = first_base(directory.disk, path, start)
            if start < first:
                raise _untiered(name, path, start, first)


def _untiered(name: str, path: str, start: int, local_start: int) -> InvalidTopicConfig:
    """The error for a topic without tiering whose log in `path` has the records [start, local_start) in the archive alone."""
    return InvalidTopicConfig(
        f"topic {name}: its tiering cannot end while only the archive has the offsets from {start} to {local_start - 1} of {path}"
        "; keep it among the topics that are archived, with remote.storage.enable=true and without cleanup.policy=compact; set "
        "remote.log.copy.disable=true if nothing more is to be archived; or delete these records while the topic is tiered"
    )
