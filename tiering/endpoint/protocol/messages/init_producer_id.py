"""InitProducerId (22): the id and epoch of a producer."""

from dataclasses import dataclass

from tiering.endpoint.protocol.fields import boolean, int16, int32, int64, string


@dataclass(frozen=True, slots=True)
class InitProducerIdRequest:
    """Asks for an id. A producer that has one names it, to go on with the next epoch (KIP-360); -1: it has none."""

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)
    enable2_pc: bool = boolean("6+")
    keep_prepared_txn: bool = boolean("6+")


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse:
    """The id and the epoch."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
    ongoing_txn_producer_id: int = int64("6+", default=-1)
    ongoing_txn_producer_epoch: int = int16("6+", default=-1)
