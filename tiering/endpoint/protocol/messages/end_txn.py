"""EndTxn (26): commits or aborts a transaction. From version 5 on each end has a new epoch (KIP-890)."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import boolean, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class EndTxnRequest:
    """Ends a producer's transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


@dataclass(frozen=True, slots=True)
class EndTxnResponse:
    """Whether it will have ended, and as whom the producer goes on."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1)
    producer_epoch: int = int16("5+", default=-1)
