"""Appends one folder's log to another's, for `tiering log append`."""

from contextlib import suppress
from typing import Any

from local_log.disk import parent_of
from local_log.engine.config import LogConfig
from local_log.errors import NotFound
from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT, TopicPartition, parse_partition_dir
from local_log.formats.partition_metadata import ZERO_TOPIC_ID, new_uuid
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader, open_log
from tiering.log_tools.opened_partition import Opening, first_base, opened
from tiering.log_tools.partition import append_all, state
from tiering.machine import IDS, local_disk

_NO_LOG = -1


def append_log(source: str, target: str, config: LogConfig, leader_epoch: int | None) -> dict[str, Any]:
    """Appends all batches of `source` to the log in `target`, as a follower or as a leader with this epoch; returns its state.

    A log that is created gets a topic id, and as a follower the start of its source. Raises NotFound, Invalid, Corrupt, Refused.
    """
    source, target = source.rstrip("/"), target.rstrip("/")
    copied = _reader(source)
    is_new = first_base(local_disk(), target, _NO_LOG) == _NO_LOG
    follows = is_new and leader_epoch is None and bool(copied.segments)
    opening = Opening(
        config,
        log_start_offset=copied.segments[0].base_offset if follows else None,
        is_made=True,
        topic_id=_topic_id(target, copied) if is_new else None,
    )
    with opened(target, opening) as log:
        append_all(source, log, leader_epoch)
        log.update_high_watermark(log.log_end_offset)
        if follows:
            log.maybe_increment_log_start_offset(min(copied.log_start_offset, log.log_end_offset))
        return state(log)


def _reader(folder: str) -> LogReader:
    partition = _partition(folder)
    starts = LogDir(local_disk(), parent_of(folder)).checkpoint(LOG_START_OFFSET_CHECKPOINT)
    return open_log(local_disk(), folder, partition, starts.get(partition))


def _partition(folder: str) -> TopicPartition:
    return parse_partition_dir(folder.rpartition("/")[2]) or TopicPartition("", 0)


def _topic_id(target: str, source: LogReader) -> str:
    """The id of the target's topic: that of its partitions beside it, that of a source of the same name, else a new one."""
    disk, topic = local_disk(), _partition(target).topic
    beside = LogDir(disk, parent_of(target))
    logs = [source] if source.partition.topic == topic else []
    with suppress(NotFound):  # the log directory may be created, too
        logs = [*(open_log(disk, f"{beside.path}/{p}", p) for p in beside.partitions() if p.topic == topic), *logs]
    known = [log.topic_id for log in logs if log.topic_id != ZERO_TOPIC_ID]
    return known[0] if known else new_uuid(IDS.new_id)
