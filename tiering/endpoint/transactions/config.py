"""The settings of a transaction coordinator, named as Kafka's broker settings."""

from dataclasses import dataclass

from tiering.endpoint.settings import (
    ENDPOINT_TRANSACTIONS_MAX_BYTES,
    TRANSACTION_ABORT_INTERVAL,
    TRANSACTION_REMOVE_INTERVAL,
    TRANSACTION_STATE_PARTITIONS,
    TRANSACTION_STATE_SEGMENT,
    TRANSACTIONAL_ID_EXPIRATION,
    WRITE_CACHING,
    Settings,
)

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """All times are in ms, all sizes in bytes."""

    max_timeout_ms: int = 900_000
    """`transaction.max.timeout.ms`: the longest time that a producer may ask for its transactions."""

    id_expiration_ms: int = 7 * _DAY_MS
    """`transactional.id.expiration.ms`: a transactional id that nobody uses is forgotten after this time."""

    abort_interval_ms: int = 10_000
    """`transaction.abort.timed.out.transaction.cleanup.interval.ms`."""

    remove_interval_ms: int = 3_600_000
    """`transaction.remove.expired.transaction.cleanup.interval.ms`."""

    state_partitions: int = 50
    """`transaction.state.log.num.partitions`, of a topic that is made anew."""

    state_segment_bytes: int = 100 << 20
    """`transaction.state.log.segment.bytes`."""

    bytes_max: int = 64 << 20
    """`endpoint.transactions.max.bytes`: memory of all transactional ids and their partitions."""

    syncs: bool = False
    """`write.caching=false`: each change and each marker is on the disk before the next, and before it is answered."""

    @classmethod
    def of(cls, settings: Settings, max_timeout_ms: int) -> "TransactionConfig":
        """As the endpoint is set, and its log directories are."""
        return cls(
            max_timeout_ms=max_timeout_ms,
            id_expiration_ms=settings[TRANSACTIONAL_ID_EXPIRATION],
            abort_interval_ms=settings[TRANSACTION_ABORT_INTERVAL],
            remove_interval_ms=settings[TRANSACTION_REMOVE_INTERVAL],
            state_partitions=settings[TRANSACTION_STATE_PARTITIONS],
            state_segment_bytes=settings[TRANSACTION_STATE_SEGMENT],
            bytes_max=settings[ENDPOINT_TRANSACTIONS_MAX_BYTES],
            syncs=not settings[WRITE_CACHING],
        )
