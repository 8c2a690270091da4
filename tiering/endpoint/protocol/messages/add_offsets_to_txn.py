"""AddOffsetsToTxn (25): the group whose offsets a transaction commits."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxnRequest:
    """Adds a group's partition of `__consumer_offsets` to a transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxnResponse:
    """Whether it is added."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
