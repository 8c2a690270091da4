"""A topic of a coordinator in a log directory of its own: compacted, each record in one of its partitions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from local_log.engine.producers.state import Origin, Verification
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Invalid, placed
from local_log.formats.batches import decode, scan
from local_log.formats.control import ControlType, read_control_type
from local_log.formats.filenames import TopicPartition
from local_log.formats.record_batch.batch_v2 import Batches
from local_log.formats.record_batch.columns import per_record
from local_log.formats.record_batch.few_records import write_few
from local_log.formats.record_batch.writer import NewBatch
from tiering.endpoint.coordinator.offsets_log import EndOfTransaction, Loaded
from tiering.endpoint.coordinator.records import Record
from tiering.local_tier.local_tier import LocalTier

_LOAD_BYTES: Final = 5 << 20
"""`offsets.load.buffer.size`, `transaction.state.log.load.buffer.size`."""
_NEW: Final = NewBatch(0)

ChecksRoom = Callable[[UnifiedLog, int], None]
"""Raises Unreadable if so many bytes may not be appended to a log."""


def always(log: UnifiedLog, size: int) -> None:
    """Whatever room there is."""


@dataclass(frozen=True, slots=True)
class CompactedTopic:
    """The topic in a local tier that has started."""

    tier: LocalTier
    name: str
    partitions: int
    check_room: ChecksRoom = always

    @classmethod
    def of(
        cls, tier: LocalTier, name: str, partitions: int, settings: Mapping[str, str], check_room: ChecksRoom = always
    ) -> "CompactedTopic":
        """The topic as it is there, or made anew. Raises Invalid if some of its partitions are missing, Unreadable.

        One that was found by its folders, as after a restore, has no policy of its own, and gets these settings: with that of
        other topics positions might be deleted.
        """
        topic, own = tier.topics().get(name), {"cleanup.policy": "compact", **settings}
        if topic is None:
            topic = tier.create_topic(name, partitions, own)
        if topic.partitions != tuple(range(len(topic.partitions))):
            raise Invalid(
                f"{', '.join(tier.directories)} has only some partitions of {name}: bring back the others, or delete the topic "
                f"(tiering topics delete {name}): it is made anew then, without what is in it"
            )
        if "cleanup.policy" not in topic.config or not tier.config(name).compact:
            tier.alter_configs(name, {**own, **topic.config, "cleanup.policy": "compact"})
        return cls(tier, name, len(topic.partitions), check_room)

    def append(
        self,
        number: int,
        records: Sequence[Record],
        now_ms: int,
        producer: tuple[int, int] | None = None,
        verification: Verification | None = None,
    ) -> int:
        """Appends records to a partition, all or none; returns the offset of the first. Raises LogError.

        `producer` are the id and epoch of the one whose transaction they belong to.
        """
        new = _NEW
        if producer is not None:
            # Each batch has sequence number 0, as Kafka's coordinators write: nobody compares them.
            new = NewBatch(0, producer_id=producer[0], producer_epoch=producer[1], base_sequence=0, is_transactional=True)
        log, batch, epoch = self._prepared(number, new, records, now_ms)
        return log.append_as_leader(batch, epoch, Origin.COORDINATOR, verification=verification).first_offset

    def append_at_once(self, number: int, records: Sequence[Record], now_ms: int) -> int | None:
        """Appends records that belong to no transaction. None, without any change, if something had to be waited for."""
        log, batch, epoch = self._prepared(number, _NEW, records, now_ms)
        info = log.append_at_once(batch, epoch)
        return None if info is None else info.first_offset

    def _prepared(self, number: int, new: NewBatch, records: Sequence[Record], now_ms: int) -> tuple[UnifiedLog, bytes, int]:
        """What to append where, and the leader epoch. Raises LogError, also if there is no room for it."""
        log, batch = self.log(number), write_few(new, now_ms, ((record.key, record.value) for record in records))
        self.check_room(log, len(batch))
        return log, batch, log.epochs.latest_epoch or 0

    def load(self) -> Iterator[Loaded | EndOfTransaction]:
        """All that is there, in the order of each partition. Raises LogError."""
        for number in range(self.partitions):
            yield from _loaded(self.log(number), number)

    def log(self, number: int) -> UnifiedLog:
        """A partition's log. Raises LogError."""
        return self.tier.log(TopicPartition(self.name, number))


def _loaded(log: UnifiedLog, number: int) -> Iterator[Loaded | EndOfTransaction]:
    """Of the records that belong to no transaction the last one of each key, as the cleaner leaves them: a segment that is still
    written has a key many times."""
    last: dict[bytes, int] = {}
    for _, of, records in _decoded(log):
        keys, offsets = records.column("key").to_pylist(), records.column("offset").to_pylist()
        in_transaction = per_record(of, of.is_transactional)
        if in_transaction.any():
            rows = zip(keys, offsets, in_transaction.tolist(), strict=True)
            last |= {key: offset for key, offset, is_transactional in rows if not is_transactional}
        else:
            last |= zip(keys, offsets, strict=True)
    for start, of, records in _decoded(log):
        yield from _records(of, records, start, number, last)


def _decoded(log: UnifiedLog) -> Iterator[tuple[int, Batches, pa.RecordBatch]]:
    """All batches, with the offset from which they were asked for."""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, _LOAD_BYTES).records
        with placed(log.folder.path):
            batches, _ = scan(data)
            if not len(batches):  # the cleaner has left nothing before the log's end
                return
            for of, records in decode(data, batches):
                yield offset, of, records
        offset = batches.next_offset


def _records(
    batches: Batches, records: pa.RecordBatch, start: int, number: int, last: Mapping[bytes, int]
) -> Iterator[Loaded | EndOfTransaction]:
    """The records from the offset `start` on, but for those that a later one of their key replaces."""
    columns: tuple[Any, ...] = (
        per_record(batches, batches.is_transactional).tolist(),
        *(records.column(name).to_pylist() for name in ("offset", "key")),
    )
    rows = enumerate(zip(*columns, strict=True))
    wanted = [
        row
        for row, (is_transactional, offset, key) in rows
        if offset >= start and key is not None and (is_transactional or last[key] == offset)
    ]
    is_control, producer_ids = (per_record(batches, of) for of in (batches.is_control, batches.header["producer_id"]))
    values = records.column("value").take(pa.array(wanted, pa.int64())).to_pylist()
    for row, value in zip(wanted, values, strict=True):
        is_transactional, offset, key = (of[row] for of in columns)
        transaction = (number, int(producer_ids[row]))
        if not is_control[row]:
            yield Loaded(Record(key, value), offset, transaction if is_transactional else None)
        elif is_transactional:
            yield EndOfTransaction(transaction, read_control_type(key) == ControlType.COMMIT)
