"""Every name in a Kafka log directory: made and parsed here and nowhere else (LogFileUtils, LogReader)."""

import re
from dataclasses import dataclass

from local_log.errors import Invalid
from local_log.formats.primitives import INT32_MAX, INT64_MAX

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_0_7 = ".kafka"
SEGMENT_SUFFIXES = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
DELETE_DIR = "-delete"
STRAY_DIR = "-stray"
FUTURE_DIR = "-future"

LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
PARTITION_METADATA = "partition.metadata"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
REMOTE_INDEX_CACHE_DIR = "remote-log-index-cache"
"""A folder of a log directory that is none of its partitions; nor is __cluster_metadata's, which the controllers keep."""

_OFFSET_FILE = re.compile(r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
_METADATA_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_POSITION_FILE = re.compile(r"([0-9]{1,20})\.kafka")
_PARTITION_DIR = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_LOG_DIR = re.compile(r"(?P<topic>.+)-(?P<partition>\+?[0-9]+)", re.DOTALL)
_MARKED_LOG_DIR = re.compile(r"(?P<log>\S+-\S+)\.\S+(?P<mark>-delete|-future|-stray)")
_NAME_MAX = 255


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A partition of a topic; as text `topic-partition`, the name of its folder."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def offset_file(base_offset: int, suffix: str) -> str:
    """The name of a file that starts at `base_offset`; snapshots are named after the offset that they precede."""
    if not 0 <= base_offset <= INT64_MAX:
        raise Invalid(f"offset {base_offset} names no file; offsets are 0 to 2^63-1")
    return f"{base_offset:020d}{suffix}"


def parse_offset_file(name: str) -> tuple[int, str] | None:
    """Base offset and suffix, or None for a file that is not a segment's (temporary and deleted ones are not)."""
    match = _OFFSET_FILE.fullmatch(name)
    if match is None or int(match[1]) > INT64_MAX:
        return None
    return int(match[1]), match[2]


def offset_of_file(name: str) -> int:
    """The offset that a name begins with, whatever follows its first dot. Raises Invalid where it begins otherwise."""
    digits = name.partition(".")[0]
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", digits) or "." not in name:
        raise Invalid(f"{name}: expected a name that begins with an offset; move the file out of the log's folder")
    return int(digits)


def position_file(position: int) -> str:
    """The name of a segment of Kafka 0.7, whose first byte is at `position` of the log."""
    if not 0 <= position <= INT64_MAX:
        raise Invalid(f"position {position} names no file; positions are 0 to 2^63-1")
    return f"{position:020d}{SEGMENT_0_7}"


def parse_position_file(name: str) -> int | None:
    """The position, or None for a file that is no segment of Kafka 0.7. Fewer digits are read, too, as Kafka does."""
    match = _POSITION_FILE.fullmatch(name)
    return None if match is None or int(match[1]) > INT64_MAX else int(match[1])


def parse_metadata_snapshot(name: str) -> tuple[int, int] | None:
    """The end offset and the epoch of a snapshot of the cluster's metadata, or None for any other file (Kafka's Snapshots)."""
    match = _METADATA_SNAPSHOT.fullmatch(name)
    return None if match is None or int(match[1]) > INT64_MAX else (int(match[1]), int(match[2]))


def parse_partition_dir(name: str) -> TopicPartition | None:
    """The partition that a folder holds, or None for a folder that is none (`…-delete`, `…-stray`, `…-future` are not)."""
    match = _PARTITION_DIR.fullmatch(name)
    return None if match is None or int(match[2]) > INT32_MAX else TopicPartition(match[1], int(match[2]))


@dataclass(frozen=True, slots=True)
class LogDirName:
    """What a folder's name in a log directory says: whose log it holds, and `mark` is "", -delete, -future or -stray."""

    partition: TopicPartition
    mark: str


def parse_log_dir(name: str) -> LogDirName | None:
    """What Kafka's log manager takes a folder for (LogReader.parseTopicPartitionName); None where that stops it from starting.

    Names are read as loosely as it reads them: a marked folder's topic may be cut short, a number may have zeros before it.
    """
    mark = next((mark for mark in (DELETE_DIR, FUTURE_DIR, STRAY_DIR) if name.endswith(mark)), "")
    marked = _MARKED_LOG_DIR.fullmatch(name) if mark else None
    if mark and marked is None:
        return None
    match = _LOG_DIR.fullmatch(name.rpartition(".")[0] if mark else name)
    if match is None or int(match["partition"]) > INT32_MAX:
        return None
    return LogDirName(TopicPartition(match["topic"], int(match["partition"])), mark)


def marked_log_dir(partition: TopicPartition, unique_id: str, mark: str) -> str:
    """The name of a log's folder with a mark: `topic-partition.id-mark`. A long topic is cut so that the name has 255 characters.

    Only a future log's folder needs its whole topic, which it gets back one day.
    """
    suffix = f"-{partition.partition}.{unique_id}{mark}"
    kept = len(partition.topic) if mark == FUTURE_DIR else _NAME_MAX - len(suffix)
    return partition.topic[:kept] + suffix
