"""DeleteRecords (21): logs begin at a later offset."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import array, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class DeleteRecordsPartition:
    """A partition, and the offset below which its records are deleted."""

    partition_index: int = int32()
    offset: int = int64()


@dataclass(frozen=True, slots=True)
class DeleteRecordsTopic:
    """Partitions of a topic."""

    name: str = string()
    partitions: tuple[DeleteRecordsPartition, ...] = array(DeleteRecordsPartition)


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest:
    """Asks to delete the first records of partitions."""

    topics: tuple[DeleteRecordsTopic, ...] = array(DeleteRecordsTopic)
    timeout_ms: int = int32()


@dataclass(frozen=True, slots=True)
class DeleteRecordsPartitionResult:
    """Where the partition begins now, or why nothing is deleted."""

    partition_index: int = int32()
    low_watermark: int = int64()
    error_code: int = int16()


@dataclass(frozen=True, slots=True)
class DeleteRecordsTopicResult:
    """The outcome for partitions of a topic."""

    name: str = string()
    partitions: tuple[DeleteRecordsPartitionResult, ...] = array(DeleteRecordsPartitionResult)


@dataclass(frozen=True, slots=True)
class DeleteRecordsResponse:
    """The outcome, by topic."""

    throttle_time_ms: int = int32()
    topics: tuple[DeleteRecordsTopicResult, ...] = array(DeleteRecordsTopicResult)
