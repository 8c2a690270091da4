"""Creates and parses every name in a Kafka log directory (LogFileUtils, LocalLog)."""

import re
from dataclasses import dataclass
from functools import lru_cache

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
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
META_PROPERTIES = "meta.properties"
CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
TOPICS = "tiering-topics.json"
PRODUCER_IDS = "tiering-producer-ids.json"
GROUP_CONFIGS = "tiering-group-configs.json"
"""Our own files in a log directory that we own: what a broker has in its log of metadata. A broker ignores them."""
LOCK = ".lock"

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
REMOTE_INDEX_CACHE_DIR = "remote-log-index-cache"
"""A folder of a log directory without a partition's log. `__cluster_metadata-0` is not one either: controllers manage it."""

PARSED_MAX = 4_096
"""Names whose parts are remembered: folders are listed again and again."""
_SIGNED_OFFSET = re.compile(r"[+-]?[0-9]{1,20}")
_OFFSET_FILE = re.compile(r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
_METADATA_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_POSITION_FILE = re.compile(r"([0-9]{1,20})\.kafka")
TOPIC_NAME_CHARACTERS_MAX = 249
_TOPIC_NAME = re.compile(rf"[a-zA-Z0-9._-]{{1,{TOPIC_NAME_CHARACTERS_MAX}}}")
_PARTITION_DIR = re.compile(rf"({_TOPIC_NAME.pattern})-(0|[1-9][0-9]{{0,9}})")
_LOG_DIR = re.compile(r"(?P<topic>.+)-(?P<partition>\+?[0-9]+)", re.DOTALL)
_MARKED_LOG_DIR = re.compile(r"(?P<log>\S+-\S+)\.\S+(?P<mark>-delete|-future|-stray)")
_NAME_MAX = 255


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A partition of a topic; its text form `topic-partition` is the name of its folder."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def is_topic_name(name: str) -> bool:
    """Whether a topic may have this name."""
    return _TOPIC_NAME.fullmatch(name) is not None and name not in (".", "..")


def offset_file(base_offset: int, suffix: str) -> str:
    """The name of a file for `base_offset`; a snapshot's offset is the first one that it does not cover."""
    if not 0 <= base_offset <= INT64_MAX:
        raise Invalid(f"offset {base_offset} names no file; offsets are 0 to 2^63-1")
    return f"{base_offset:020d}{suffix}"


@lru_cache(maxsize=PARSED_MAX)
def parse_offset_file(name: str) -> tuple[int, str] | None:
    """Base offset and suffix; None for a file that is not a segment's. Temporary and deleted files are not."""
    match = _OFFSET_FILE.fullmatch(name)
    if match is None or int(match[1]) > INT64_MAX:
        return None
    return int(match[1]), match[2]


@lru_cache(maxsize=PARSED_MAX)
def offset_of_file(name: str) -> int:
    """The offset at the start of a name, before its first dot. Raises Invalid for any other name."""
    digits, dot, _ = name.partition(".")
    if not dot or not _SIGNED_OFFSET.fullmatch(digits):
        raise Invalid(f"{name}: expected a name that begins with an offset; move the file out of the log's folder")
    return int(digits)


def position_file(position: int) -> str:
    """The name of a segment of Kafka 0.7 whose first byte is at `position` in the log."""
    if not 0 <= position <= INT64_MAX:
        raise Invalid(f"position {position} names no file; positions are 0 to 2^63-1")
    return f"{position:020d}{SEGMENT_0_7}"


def parse_position_file(name: str) -> int | None:
    """The position; None for a file that is not a segment of Kafka 0.7. As in Kafka, it may have fewer digits."""
    match = _POSITION_FILE.fullmatch(name)
    return None if match is None or int(match[1]) > INT64_MAX else int(match[1])


def parse_metadata_snapshot(name: str) -> tuple[int, int] | None:
    """The end offset and the epoch of a metadata snapshot; None for any other file (Kafka's Snapshots)."""
    match = _METADATA_SNAPSHOT.fullmatch(name)
    return None if match is None or int(match[1]) > INT64_MAX else (int(match[1]), int(match[2]))


def parse_partition_dir(name: str) -> TopicPartition | None:
    """The partition of a folder; None for any other folder (also for `…-delete`, `…-stray`, `…-future`)."""
    match = _PARTITION_DIR.fullmatch(name)
    return None if match is None or int(match[2]) > INT32_MAX else TopicPartition(match[1], int(match[2]))


@dataclass(frozen=True, slots=True)
class LogDirName:
    """The parsed name of a folder in a log directory: its partition; `mark` is "", -delete, -future or -stray."""

    partition: TopicPartition
    mark: str


def parse_log_dir(name: str) -> LogDirName | None:
    """Parses a folder's name as Kafka's log manager does (LocalLog.parseTopicPartitionName); None if Kafka fails to start on it.

    As in Kafka, the topic of a folder with a mark may be truncated, and a number may have leading zeros.
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
    """The name of a log's folder with a mark: `topic-partition.id-mark`. The topic is truncated if it exceeds 255 characters.

    The name of a future log's folder is not truncated, since the topic is needed when the log replaces the current one.
    """
    suffix = f"-{partition.partition}.{unique_id}{mark}"
    kept = len(partition.topic) if mark == FUTURE_DIR else _NAME_MAX - len(suffix)
    return partition.topic[:kept] + suffix
