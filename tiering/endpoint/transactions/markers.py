"""The markers that end a transaction in its partitions (Kafka's TransactionMarkerChannelManager, with one broker)."""

from collections.abc import Callable
from dataclasses import dataclass

from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import LogError
from local_log.formats.control import ControlType
from local_log.formats.filenames import TopicPartition
from local_log.formats.record_batch.few_records import write_marker
from remote.clock import Clock
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.offsets_log import NAME as OFFSETS
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.transaction_log import Marker
from tiering.local_tier.errors import UnknownTopicOrPartition
from tiering.local_tier.local_tier import LocalTier

_CODES = frozenset(ErrorCode)


@dataclass(frozen=True, slots=True)
class Markers:
    """Writes markers to logs. What groups have committed in the transaction counts when their partition has its marker."""

    tier: LocalTier
    groups: GroupCoordinator
    clock: Clock
    report: Callable[[str], object]
    syncs: bool = False
    """Whether a marker, and what is before it in its log, is on the disk when it counts."""

    def write(self, partition: TopicPartition, marker: Marker) -> ErrorCode:
        """Whether the partition has the marker. One that it has already changes nothing."""
        try:
            log = self.tier.log(partition)
            if partition.topic != OFFSETS:
                self._append(log, marker)
            else:
                self.groups.end_transaction(
                    (partition.partition, marker.producer_id),
                    lambda: self._append(log, marker),
                    is_committed=marker.is_committed,
                )
        except UnknownTopicOrPartition:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        except LogError as e:
            self.report(f"{partition}: a transaction's marker cannot be written: {e}")
            code = getattr(e, "code", ErrorCode.KAFKA_STORAGE_ERROR)
            return ErrorCode(code) if code in _CODES else ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NONE

    def _append(self, log: UnifiedLog, marker: Marker) -> None:
        control = ControlType.COMMIT if marker.is_committed else ControlType.ABORT
        batch = write_marker(
            0,
            self.clock.now_ms(),
            control,
            producer_id=marker.producer_id,
            producer_epoch=marker.producer_epoch,
            coordinator_epoch=marker.coordinator_epoch,
        )
        epoch = log.epochs.latest_epoch or 0
        log.append_as_leader(batch, epoch, Origin.COORDINATOR, transaction_version=marker.transaction_version)
        if self.syncs:
            log.sync_appended()
