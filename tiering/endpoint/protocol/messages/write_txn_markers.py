"""WriteTxnMarkers (27): ends transactions in partitions, as a coordinator has decided, or an administrator."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import INT32, array, boolean, int8, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class WritableTxnMarkerTopic:
    """A topic's partitions."""

    name: str = string()
    partition_indexes: tuple[int, ...] = array(INT32)


@dataclass(frozen=True, slots=True)
class WritableTxnMarker:
    """A producer's marker, and where it is to be written. `transaction_result`: whether it commits."""

    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: tuple[WritableTxnMarkerTopic, ...] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()
    transaction_version: int = int8("2+")


@dataclass(frozen=True, slots=True)
class WriteTxnMarkersRequest:
    """Writes markers."""

    markers: tuple[WritableTxnMarker, ...] = array(WritableTxnMarker)


@dataclass(frozen=True, slots=True)
class WritableTxnMarkerPartitionResult:
    """Whether a partition has the marker."""

    partition_index: int = int32()
    error_code: int = int16()


@dataclass(frozen=True, slots=True)
class WritableTxnMarkerTopicResult:
    """The same of a topic's partitions."""

    name: str = string()
    partitions: tuple[WritableTxnMarkerPartitionResult, ...] = array(WritableTxnMarkerPartitionResult)


@dataclass(frozen=True, slots=True)
class WritableTxnMarkerResult:
    """The same of a producer."""

    producer_id: int = int64()
    topics: tuple[WritableTxnMarkerTopicResult, ...] = array(WritableTxnMarkerTopicResult)


@dataclass(frozen=True, slots=True)
class WriteTxnMarkersResponse:
    """The outcome, by producer, topic and partition."""

    markers: tuple[WritableTxnMarkerResult, ...] = array(WritableTxnMarkerResult)
