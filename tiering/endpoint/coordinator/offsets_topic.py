"""The topic `__consumer_offsets` in a log directory of its own: compacted, with the records of a group in one partition.

A real broker that is started on the directory goes on with these groups, and the other way round.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Invalid, placed
from local_log.formats.batches import decode, scan
from local_log.formats.control import ControlType, read_control_type
from local_log.formats.filenames import TopicPartition
from local_log.formats.record_batch.batch_v2 import Batches
from local_log.formats.record_batch.columns import per_record
from local_log.formats.record_batch.writer import RECORDS, NewBatch, write_batch
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.offsets_log import NAME, EndOfTransaction, Loaded, partition_for
from tiering.endpoint.coordinator.records import Record
from tiering.local_tier.local_tier import LocalTier

_LOAD_BYTES: Final = 5 << 20
"""`offsets.load.buffer.size`."""


@dataclass(frozen=True, slots=True)
class OffsetsTopic:
    """The topic in a local tier that has started."""

    tier: LocalTier
    partitions: int

    @classmethod
    def of(cls, tier: LocalTier, config: GroupCoordinatorConfig) -> "OffsetsTopic":
        """The topic as it is there, or made anew. Raises Invalid if some of its partitions are missing, Unreadable."""
        topic = tier.topics().get(NAME)
        if topic is None:
            settings = {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(config.offsets_topic_segment_bytes),
            }
            topic = tier.create_topic(NAME, config.offsets_topic_partitions, settings)
        if topic.partitions != tuple(range(len(topic.partitions))):
            raise Invalid(f"{', '.join(tier.directories)} has only some partitions of {NAME}: bring back the others")
        return cls(tier, len(topic.partitions))

    def append(self, group: str, records: Sequence[Record], now_ms: int) -> int:
        """Appends records of a group, all or none; returns the offset of the first. Raises LogError."""
        log = self._log(partition_for(group, self.partitions))
        rows: list[dict[str, object]] = [
            {"offset": delta, "timestamp": now_ms, "key": record.key, "value": record.value, "headers": []}
            for delta, record in enumerate(records)
        ]
        batch = write_batch(NewBatch(0), pa.RecordBatch.from_pylist(rows, schema=RECORDS))
        info = log.append_as_leader(batch, log.epochs.latest_epoch or 0, Origin.COORDINATOR)
        return info.first_offset

    def load(self) -> Iterator[Loaded | EndOfTransaction]:
        """All that is there, in the order of each partition. Raises LogError."""
        for number in range(self.partitions):
            yield from _loaded(self._log(number))

    def _log(self, number: int) -> UnifiedLog:
        return self.tier.log(TopicPartition(NAME, number))


def _loaded(log: UnifiedLog) -> Iterator[Loaded | EndOfTransaction]:
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, _LOAD_BYTES).records
        with placed(log.folder.path):
            batches, _ = scan(data)
            if not len(batches):  # the cleaner has left nothing before the log's end
                return
            for of, records in decode(data, batches):
                yield from _records(of, records, offset)
        offset = batches.next_offset


def _records(batches: Batches, records: pa.RecordBatch, start: int) -> Iterator[Loaded | EndOfTransaction]:
    """The records from the offset `start` on."""
    columns: tuple[Any, ...] = (
        per_record(batches, batches.is_control).tolist(),
        per_record(batches, batches.is_transactional).tolist(),
        per_record(batches, batches.header["producer_id"]).tolist(),
        *(records.column(name).to_pylist() for name in ("offset", "key", "value")),
    )
    for is_control, is_transactional, producer_id, offset, key, value in zip(*columns, strict=True):
        if offset < start or key is None:
            continue
        if not is_control:
            yield Loaded(Record(key, value), offset, producer_id if is_transactional else None)
        elif is_transactional:
            yield EndOfTransaction(producer_id, read_control_type(key) == ControlType.COMMIT)
