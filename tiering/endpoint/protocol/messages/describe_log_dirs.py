"""DescribeLogDirs (35): log directories and the sizes of the logs in them."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, boolean, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class DescribableLogDirTopic:
    """A topic, and which of its partitions to look for."""

    topic: str = string()
    partitions: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class DescribeLogDirsRequest:
    """Asks for partitions; for all if `topics` is null."""

    topics: tuple[DescribableLogDirTopic, ...] | None = array(DescribableLogDirTopic, nullable="0+")


@dataclass(frozen=True, slots=True)
class DescribeLogDirsPartition:
    """A log: its bytes, and by how many offsets it is ahead of the high watermark."""

    partition_index: int = int32()
    partition_size: int = int64()
    offset_lag: int = int64()
    is_future_key: bool = boolean()


@dataclass(frozen=True, slots=True)
class DescribeLogDirsTopic:
    """A topic's logs in a directory."""

    name: str = string()
    partitions: tuple[DescribeLogDirsPartition, ...] = array(DescribeLogDirsPartition)


@dataclass(frozen=True, slots=True)
class DescribeLogDirsResult:
    """A log directory; -1 stands for bytes of its volume that are not known."""

    error_code: int = int16()
    log_dir: str = string()
    topics: tuple[DescribeLogDirsTopic, ...] = array(DescribeLogDirsTopic)
    total_bytes: int = int64("4+", default=-1)
    usable_bytes: int = int64("4+", default=-1)
    is_cordoned: bool = boolean("5+")


@dataclass(frozen=True, slots=True)
class DescribeLogDirsResponse:
    """The log directories."""

    throttle_time_ms: int = int32()
    error_code: int = int16("3+")
    results: tuple[DescribeLogDirsResult, ...] = array(DescribeLogDirsResult)
