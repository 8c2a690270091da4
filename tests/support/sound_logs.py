"""What has to hold of an open log whatever has happened to it, judged by its batches alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType

from lived_logs import Written
from simulated_disk import SimulatedDisk

from local_log.engine.memory_records import MemoryBatch, memory_batches
from local_log.engine.segment import Segment
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.control import ControlType, read_end_txn_marker
from local_log.formats.filenames import DELETED, OFFSET_INDEX, SNAPSHOT, TIME_INDEX
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.producer_snapshot import read_producer_snapshot


@dataclass(frozen=True)
class Known:
    """What batches say of their producer."""

    epoch: int
    last_sequence: int = -1
    last_offset: int = -1
    last_timestamp: int = -1
    coordinator_epoch: int = -1
    txn_first_offset: int | None = None


def replayed(batches: Iterable[Written]) -> tuple[Mapping[int, Known], Sequence[AbortedTxn]]:
    """The producers after these batches, and the transactions that were aborted."""
    return _replayed(tuple((b.header, b.data if b.header.is_control else b"") for b in batches if b.header.producer_id >= 0))


@lru_cache(maxsize=1_000)
def _replayed(batches: tuple[tuple[MemoryBatch, bytes], ...]) -> tuple[Mapping[int, Known], Sequence[AbortedTxn]]:
    """The same of headers, with the bytes of markers: after most calls of a disk a log has the batches that it had before."""
    producers: dict[int, Known] = {}
    aborted: list[AbortedTxn] = []
    for b, data in batches:
        known = producers.get(b.producer_id, Known(b.producer_epoch))
        if known.epoch != b.producer_epoch:
            known = replace(known, epoch=b.producer_epoch, last_sequence=-1, last_offset=-1)
        known = replace(known, last_timestamp=b.max_timestamp)
        if not b.is_control:
            first = known.txn_first_offset
            opened = b.base_offset if first is None and b.is_transactional else first
            known = replace(known, last_sequence=b.last_sequence, last_offset=b.last_offset, txn_first_offset=opened)
        else:
            end = read_end_txn_marker(data[BATCH_HEADER_BYTES:])
            if end.control_type is ControlType.ABORT and known.txn_first_offset is not None:
                others = [
                    k.txn_first_offset for p, k in producers.items() if p != b.producer_id and k.txn_first_offset is not None
                ]
                stable = min(others, default=b.base_offset + 1)
                aborted.append(AbortedTxn(known.txn_first_offset, b.base_offset, b.producer_id, stable))
            known = replace(known, coordinator_epoch=end.coordinator_epoch, txn_first_offset=None)
        producers[b.producer_id] = known
    return MappingProxyType(producers), tuple(aborted)


def batches_of(log: UnifiedLog) -> list[Written]:
    """Every batch in the log's files, each proved."""
    found: list[Written] = []
    for segment in log.local.segments:
        data = log.folder.disk.read(segment.log_file, 0, segment.size)
        assert len(data) == segment.size
        batches = memory_batches(data)
        assert sum(b.size for b in batches) == len(data), f"{segment.log_file} does not end with a batch"
        for b in batches:
            assert b.is_valid(data), f"{segment.log_file}: the batch at offset {b.base_offset} is damaged"
            found.append(Written(data[b.position : b.position + b.size], b._replace(position=0)))
    return found


def check_sound(log: UnifiedLog, start_max: int = 0, earlier: Iterable[Written] = ()) -> list[Written]:
    """Asserts what has to hold; the batches.

    `start_max` is the highest offset that the log has ever started at; of `earlier` batches, those below its first segment have
    been in it.
    """
    batches = batches_of(log)
    for before, after in pairwise(batches):
        assert before.end <= after.header.base_offset, f"offset {after.header.base_offset} comes after {before.end}"
    if batches:
        assert log.log_end_offset == batches[-1].end
    assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset
    assert log.recovery_point <= log.log_end_offset
    _check_segments(log, batches)
    taken = [b for b in earlier if b.end <= log.local.segments.first.base_offset]
    _check_producers(log, [*taken, *batches], max(start_max, log.log_start_offset))
    _check_epochs(log, batches)
    return batches


def _check_segments(log: UnifiedLog, batches: list[Written]) -> None:
    bases = [*log.local.segments.base_offsets, 1 << 63]
    for segment, end in zip(log.local.segments, bases[1:], strict=True):
        inside = [b for b in batches if segment.base_offset <= b.header.base_offset < end]
        assert sum(b.header.size for b in inside) == segment.size
        _check_indexes(log, segment, inside, is_active=end == bases[-1])


def _check_indexes(log: UnifiedLog, segment: Segment, batches: list[Written], *, is_active: bool) -> None:
    starts: dict[int, int] = {}
    position = 0
    for b in batches:
        starts[b.header.last_offset] = position
        position += b.header.size
    offsets = [segment.offset_index.fields(at) for at in range(len(segment.offset_index))]
    assert all(before < after for before, after in pairwise(offsets)), f"{segment.log_file}: {offsets}"
    for relative, at in offsets:
        assert starts.get(segment.base_offset + relative) == at, f"{segment.log_file}: entry {relative} {at} of the offset index"
    times = [segment.time_index.entry(at) for at in range(len(segment.time_index))]
    assert all(a < b and o <= p for (a, o), (b, p) in pairwise(times)), f"{segment.log_file}: {times}"
    for timestamp, offset in times:
        upto = [b.header.max_timestamp for b in batches if b.header.last_offset <= offset]
        assert max(upto, default=None) == timestamp, f"{segment.log_file}: entry {timestamp} {offset} of the time index"
    if batches and (times or segment.latest is not None):  # else cut below its first entry: -1, as in Kafka
        assert segment.max_timestamp[0] == max(b.header.max_timestamp for b in batches), segment.log_file
    if not is_active:
        disk = log.folder.disk
        assert disk.size(segment.path(OFFSET_INDEX)) == 8 * len(offsets), f"{segment.log_file}: its offset index has a tail"
        assert disk.size(segment.path(TIME_INDEX)) == 12 * len(times), f"{segment.log_file}: its time index has a tail"


def _check_producers(log: UnifiedLog, batches: list[Written], start_max: int) -> None:
    # What was known of batches below the log's start may have been forgotten at any later start of the log.
    beginnings = [i for i in range(len(batches)) if i == 0 or batches[i - 1].end <= start_max]
    replays = [replayed(batches[i:]) for i in beginnings] or [replayed([])]
    if beginnings and batches[-1].end <= start_max:
        replays.append(replayed([]))
    found = {
        p.producer_id: Known(
            p.epoch,
            p.last_sequence,
            p.batches[-1].last_offset if p.batches else -1,
            p.last_timestamp,
            p.coordinator_epoch,
            p.txn_first_offset,
        )
        for p in log.producers.producers.values()
    }
    for producer in found.keys() | replays[0][0].keys():
        allowed = [producers.get(producer) for producers, _ in replays]
        assert found.get(producer) in allowed, f"producer {producer}"
    assert log.producers.map_end_offset == log.log_end_offset
    open_ones = {k.txn_first_offset: p for p, k in found.items() if k.txn_first_offset is not None}
    assert log.producers.ongoing == open_ones
    indexed = {txn for segment in log.local.segments for txn in segment.txn_index.all()}
    if len(replays) == 1:
        assert indexed == set(replays[0][1])
    first = log.local.segments.first.base_offset
    aborted = [{(t.producer_id, t.first_offset, t.last_offset) for t in txns if t.last_offset >= first} for _, txns in replays]
    assert set.intersection(*aborted) <= {(t.producer_id, t.first_offset, t.last_offset) for t in indexed} <= set.union(*aborted)


def _check_epochs(log: UnifiedLog, batches: list[Written]) -> None:
    entries = log.epochs.entries
    for before, after in pairwise(entries):
        assert before.epoch < after.epoch, entries
        assert before.start_offset < after.start_offset, entries
    assert all(e.start_offset <= max(log.log_start_offset, log.log_end_offset - 1) for e in entries), entries
    for b in batches:
        if entries and b.header.base_offset >= entries[0].start_offset:
            assert log.epochs.epoch_for(b.header.base_offset) == b.header.leader_epoch, f"{entries} at {b.header.base_offset}"
    if batches and batches[-1].end > log.log_start_offset:
        assert entries, "no epoch is known of a log with batches"


def remaining_files(disk: SimulatedDisk, folder: str) -> dict[str, object]:
    """Every file that stays; a snapshot's producers in any order."""
    kept = {name: data for name, data in disk.contents(folder).items() if not name.endswith(DELETED)}
    return {name: frozenset(read_producer_snapshot(data)) if name.endswith(SNAPSHOT) else data for name, data in kept.items()}


def summary(log: UnifiedLog) -> object:
    """All that a log is to those who use it; which epochs there were before it starts is nobody's business."""
    start = log.log_start_offset
    return (
        start,
        log.log_end_offset,
        log.local.segments.base_offsets,
        [b.data for b in batches_of(log)],
        (log.epochs.epoch_for(start), [e for e in log.epochs.entries if e.start_offset > start]),
        {p.producer_id: p.entry() for p in log.producers.producers.values()},
        dict(log.producers.ongoing),
    )
