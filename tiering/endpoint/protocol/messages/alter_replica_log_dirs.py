"""AlterReplicaLogDirs (34): logs move to other directories of their broker."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, int16, int32, string


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirTopic:
    """Partitions of a topic."""

    name: str = string()
    partitions: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDir:
    """A directory, and what is to be in it."""

    path: str = string()
    topics: tuple[AlterReplicaLogDirTopic, ...] = array(AlterReplicaLogDirTopic)


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirsRequest:
    """Asks for logs to be in directories."""

    dirs: tuple[AlterReplicaLogDir, ...] = array(AlterReplicaLogDir)


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirPartitionResult:
    """Whether a log is in its directory, or moves there."""

    partition_index: int = int32()
    error_code: int = int16()


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirTopicResult:
    """The outcome in a topic."""

    topic_name: str = string()
    partitions: tuple[AlterReplicaLogDirPartitionResult, ...] = array(AlterReplicaLogDirPartitionResult)


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirsResponse:
    """The outcome, by topic."""

    throttle_time_ms: int = int32()
    results: tuple[AlterReplicaLogDirTopicResult, ...] = array(AlterReplicaLogDirTopicResult)
