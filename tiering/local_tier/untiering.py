"""Refuses to end the tiering of logs whose first records only the archive has.

A log without tiering starts where its first local segment does, as in Kafka, so that these records would be lost to its readers.
Kafka refuses to turn remote.storage.enable off, too, unless the remote records are to be deleted.
"""

from collections.abc import Iterable

from local_log.engine.config import LogConfig
from local_log.engine.unified_log import UnifiedLog
from tiering.local_tier.errors import InvalidTopicConfig


def refuse_untiering(name: str, config: LogConfig, logs: Iterable[UnifiedLog]) -> None:
    """Raises InvalidTopicConfig if the topic's new settings end the tiering of a log that starts in the archive."""
    if config.remote_storage_enable:
        return
    for log in logs:
        now = log.offsets
        if log.folder.config.remote_storage_enable and now.log_start < now.local_log_start:
            raise untiered(name, log.folder.path, now.log_start, now.local_log_start)


def untiered(name: str, path: str, start: int, local_start: int) -> InvalidTopicConfig:
    """The error for a topic without tiering whose log in `path` has the records [start, local_start) in the archive alone."""
    return InvalidTopicConfig(
        f"topic {name}: its tiering cannot end while only the archive has the offsets from {start} to {local_start - 1} of {path}"
        "; keep remote.storage.enable=true without cleanup.policy=compact, with remote.log.copy.disable=true if nothing more is "
        "to be archived, or delete these records first"
    )
