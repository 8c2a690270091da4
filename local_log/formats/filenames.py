"""Every name in a Kafka log directory: made and parsed here and nowhere else (LogFileUtils, LocalLog)."""

import re
from dataclasses import dataclass

from local_log.errors import Invalid
from local_log.formats.primitives import INT32_MAX

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
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

_OFFSET_FILE = re.compile(r"([0-9]{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)")
_PARTITION_DIR = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_OFFSET_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """A partition of a topic; as text `topic-partition`, the name of its folder."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def offset_file(base_offset: int, suffix: str) -> str:
    """The name of a file that starts at `base_offset`; snapshots are named after the offset that they precede."""
    if not 0 <= base_offset <= _OFFSET_MAX:
        raise Invalid(f"offset {base_offset} names no file; offsets are 0 to 2^63-1")
    return f"{base_offset:020d}{suffix}"


def parse_offset_file(name: str) -> tuple[int, str] | None:
    """Base offset and suffix, or None for a file that is not a segment's (temporary and deleted ones are not)."""
    match = _OFFSET_FILE.fullmatch(name)
    if match is None or int(match[1]) > _OFFSET_MAX:
        return None
    return int(match[1]), match[2]


def offset_of_file(name: str) -> int:
    """The offset that a name begins with, whatever follows its first dot. Raises Invalid where it begins otherwise."""
    digits = name.partition(".")[0]
    if not re.fullmatch(r"[+-]?[0-9]{1,20}", digits) or "." not in name:
        raise Invalid(f"{name}: expected a name that begins with an offset; move the file out of the log's folder")
    return int(digits)


def parse_partition_dir(name: str) -> TopicPartition | None:
    """The partition that a folder holds, or None for a folder that is none (`…-delete`, `…-stray`, `…-future` are not)."""
    match = _PARTITION_DIR.fullmatch(name)
    return None if match is None or int(match[2]) > INT32_MAX else TopicPartition(match[1], int(match[2]))
