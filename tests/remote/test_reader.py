"""One archived partition as a log to read: it answers as the log that was archived."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from archive_fakes import CountingIds, Door, MemoryStore, verbs
from golden_logs import broker_logs, live, partitions
from logs_to_archive import (
    all_records,
    copy_of,
    cut_finer,
    finer_logs,
    for_applications,
    local_logs,
    offload_all,
    offsets_of,
    path_of,
    set_checkpoint,
    table_of,
)
from made_manifests import assert_sound_archive

from local_log.errors import Corrupt, LogError, OffsetOutOfRange
from local_log.formats.batch_v2 import HEADER_BYTES
from local_log.formats.chunks import FIRST_CHUNK_BYTES
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.formats.record import NO_TIMESTAMP
from local_log.formats.records import record_batches
from local_log.formats.search import TimestampOffset
from local_log.formats.txn_index import read_txn_index
from local_log.log import LocalLog
from remote.errors import RemoteError
from remote.fetch_plan import MissingRange, Span
from remote.manifest.model import ABORTED_LATER, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, SegmentEntry
from remote.manifest.store import load_newest
from remote.object_store import ObjectStore
from remote.reader import INDEXES_MAX, ArchivedLog
from remote.stores.folder import FolderStore

ARCHIVED = tuple(name for name in partitions() if name not in ("g-empty-0", "g-tiny-0"))
"""The partitions that have an inactive segment when they are cut finer."""


@dataclass(frozen=True)
class World:
    """A log directory and the archive that all of it was offloaded to."""

    folder: Path
    store: FolderStore
    logs: dict[str, LocalLog]
    records: dict[str, pa.Table]

    def archived(self, partition: str, store: ObjectStore | None = None) -> ArchivedLog:
        return opened(store or self.store, self.logs[partition])


def opened(store: ObjectStore, log: LocalLog) -> ArchivedLog:
    newest = load_newest(store, path_of(log))
    assert newest is not None
    return ArchivedLog(store, newest.manifest)


@pytest.fixture(scope="module")
def finer(tmp_path_factory: pytest.TempPathFactory) -> World:
    """All golden partitions, cut into a dozen segments each."""
    folder = finer_logs(tmp_path_factory.mktemp("finer"))
    store = FolderStore(str(tmp_path_factory.mktemp("archive")))
    offload_all(folder, store)
    logs = local_logs(folder)
    return World(folder, store, logs, {name: all_records(logs[name]) for name in ARCHIVED})


@pytest.fixture(scope="module")
def finest(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The transactions, cut so that many of them span several segments."""
    folder = broker_logs(tmp_path_factory.mktemp("finest"), "g-txn-0")
    cut_finer(folder / "g-txn-0", 60)
    store = FolderStore(str(tmp_path_factory.mktemp("archive")))
    offload_all(folder, store)
    logs = local_logs(folder)
    return World(folder, store, logs, {"g-txn-0": all_records(logs["g-txn-0"])})


@pytest.fixture(scope="module")
def memory(finer: World) -> dict[str, bytes]:
    """The archive of the partitions cut finer, to be damaged: see `damaged`."""
    store = MemoryStore()
    offload_all(finer.folder, store)
    return store.objects


def damaged(memory: dict[str, bytes], key: str, change: Callable[[bytes], bytes] | None) -> MemoryStore:
    store = MemoryStore()
    store.objects.update(memory)
    if change is None:
        del store.objects[key]
    else:
        store.objects[key] = change(store.objects[key])
    return store


def read(log: ArchivedLog, start: int, end: int, *, committed: bool = False) -> Iterator[pa.RecordBatch]:
    return record_batches(log.chunks(start, end), start, end, log.aborted(start, end) if committed else ())


# records


@pytest.mark.parametrize("partition", [p for p in partitions() if p.startswith(("g-big", "g-codec-none", "g-trim", "g-txn"))])
def test_the_log_as_its_broker_cut_it_reads_as_the_local_one(tmp_path: Path, partition: str) -> None:
    folder = broker_logs(tmp_path / "broker", partition)
    store = FolderStore(str(tmp_path / "archive"))
    offload_all(folder, store)
    log = local_logs(folder)[partition]
    archived = opened(store, log)
    assert archived.end_offset == log.segments[-1].base_offset
    expected = for_applications(all_records(log), archived.log_start_offset, archived.end_offset)
    assert table_of(read(archived, archived.log_start_offset, archived.end_offset), expected).equals(expected)


@pytest.mark.parametrize("partition", ARCHIVED)
def test_every_record_equals_the_local_logs_from_every_37th_offset(finer: World, partition: str) -> None:
    archived = finer.archived(partition)
    assert (archived.log_start_offset, len(archived.manifest.gaps)) == (finer.logs[partition].log_start_offset, 0)
    end = archived.end_offset
    for start in [*range(archived.log_start_offset, end, 37), end - 1, end]:
        expected = for_applications(finer.records[partition], start, end)
        assert table_of(read(archived, start, end), expected).equals(expected), start


@pytest.mark.parametrize("partition", ARCHIVED)
def test_any_range_gives_just_its_records(finer: World, partition: str) -> None:
    archived = finer.archived(partition)
    first, last = archived.log_start_offset, archived.end_offset
    edges = [o for e in archived.manifest.entries for o in (e.base_offset - 1, e.base_offset, e.base_offset + 1)]
    for start in [o for o in edges if first <= o < last]:
        for end in (start, start + 2, start + 300):
            expected = for_applications(finer.records[partition], start, min(end, last))
            assert table_of(read(archived, start, end), expected).equals(expected), (start, end)


def test_batches_come_as_they_were_before_archiving(finer: World) -> None:
    for partition in ARCHIVED:
        archived, log = finer.archived(partition), finer.logs[partition]
        chunks = [*archived.chunks(archived.log_start_offset, archived.end_offset)]
        got = b"".join(bytes(memoryview(c.buffer)[p:e]) for c in chunks for p, e in spans_of(c))
        have = b"".join(segment.read(".log") or b"" for segment in log.segments[:-1])
        assert have.endswith(got)
        if log.log_start_offset == log.segments[0].base_offset:
            assert got == have[: len(got)]


def spans_of(chunk: Any) -> Iterable[tuple[int, int]]:
    return zip(chunk.batches.positions.tolist(), chunk.batches.end.tolist(), strict=True)


def test_chunks_name_the_object_and_the_byte_where_they_lie(finer: World) -> None:
    archived = finer.archived("g-codec-none-0")
    for chunk in archived.chunks(300, 2_000):
        body = finer.store.get(chunk.file)
        assert chunk.file.endswith(".log")
        assert body[chunk.position : chunk.position + len(chunk.buffer)] == bytes(chunk.buffer)


def test_overlapping_copies_of_two_replicas_give_each_record_once(tmp_path: Path) -> None:
    one = broker_logs(tmp_path / "one", "g-mixed-0", "g-txn-0")
    two = copy_of(one, tmp_path / "two")
    store, ids = MemoryStore(), CountingIds()
    for name in ("g-mixed-0", "g-txn-0"):
        cut_finer(one / name, 9)
        cut_finer(two / name, 14)
        set_checkpoint(one / HIGH_WATERMARK_CHECKPOINT, name, 1_200)
    offload_all(one, store, ids=ids, source="one")
    offload_all(two, store, ids=ids, source="two")
    for log in local_logs(two).values():
        manifest = assert_sound_archive(store, path_of(log))
        assert any(a.end_offset > b.base_offset for a, b in zip(manifest.entries, manifest.entries[1:], strict=False))
        assert set(manifest.local_log_start_offsets) == {"one", "two"}
        archived = opened(store, log)
        for start in range(0, archived.end_offset, 371):
            expected = for_applications(all_records(log), start, archived.end_offset)
            assert table_of(read(archived, start, archived.end_offset), expected).equals(expected)


@pytest.mark.parametrize("outside", ["below", "above"])
def test_an_offset_outside_the_archive_is_out_of_range(finer: World, outside: str) -> None:
    archived = finer.archived("g-trimmed-0")
    offset = archived.log_start_offset - 1 if outside == "below" else archived.end_offset + 1
    for ask in (archived.chunks, archived.aborted):
        with pytest.raises(OffsetOutOfRange):
            list(ask(offset, offset + 10))


# how much is read


def fetched(door: Door) -> tuple[int, int]:
    ranges = [call[2:] for call in door.calls if call[0] == "get_range"]
    return len(ranges), sum(end - start for start, end in ranges)


def test_one_old_record_of_a_large_segment_takes_few_bytes_and_requests(tmp_path: Path) -> None:
    names = ("g-codec-none-0", "g-codec-lz4-0", "g-codec-snappy-0", "g-trimmed-0", "g-txn-0")
    folder = broker_logs(tmp_path / "broker", *names)
    store = FolderStore(str(tmp_path / "archive"))
    offload_all(folder, store)
    for log in local_logs(folder).values():
        door = Door(store)
        archived = opened(store, log)
        large = max(archived.manifest.entries, key=lambda e: e.log_size)
        assert large.log_size > 1_000_000
        first = max(large.base_offset, archived.log_start_offset)
        for offset in range(first, large.end_offset, 151):
            door.calls.clear()
            log_of_one = ArchivedLog(door, archived.manifest)
            got = offsets_of(read(log_of_one, offset, offset + 1))
            assert got in ([offset], [])
            requests, size = fetched(door)
            assert set(verbs(door.calls)) == {"get_range"}
            assert requests <= 3
            assert size < 400_000
            # Without the end being known the first chunk is all that is taken.
            door.calls.clear()
            next(ArchivedLog(door, archived.manifest).chunks(offset, large.end_offset))
            requests, size = fetched(door)
            assert requests <= 3
            assert size < 400_000


def test_a_whole_segment_is_read_once_and_without_its_index(finer: World) -> None:
    door = Door(finer.store)
    archived = finer.archived("g-codec-none-0", door)
    door.calls.clear()
    list(archived.chunks(0, archived.end_offset))
    assert all(call[1].endswith(".log") for call in door.calls)
    size = sum(e.log_size for e in archived.manifest.entries)
    assert size <= fetched(door)[1] <= size + len(archived.manifest.entries) * FIRST_CHUNK_BYTES


def test_reading_up_to_within_the_first_of_overlapping_segments_leaves_the_others_alone(tmp_path: Path) -> None:
    one = broker_logs(tmp_path / "one", "g-mixed-0")
    two = copy_of(one, tmp_path / "two")
    cut_finer(one / "g-mixed-0", 5)
    cut_finer(two / "g-mixed-0", 12)
    set_checkpoint(one / HIGH_WATERMARK_CHECKPOINT, "g-mixed-0", 1_000)
    store, ids = MemoryStore(), CountingIds()
    offload_all(one, store, ids=ids)
    offload_all(two, store, ids=ids)
    archived = opened(store, local_logs(one)["g-mixed-0"])
    over = next(
        a for a, b in zip(archived.manifest.entries, archived.manifest.entries[1:], strict=False) if a.end_offset > b.base_offset
    )
    store.calls.clear()
    list(archived.chunks(over.base_offset, over.end_offset - 1))
    assert {call[1].rpartition("/")[2] for call in store.calls} <= {over.log_name, over.aux_name}


def test_an_index_is_read_once(finer: World) -> None:
    door = Door(finer.store)
    archived = finer.archived("g-txn-0", door)
    entry = archived.manifest.entries[1]
    door.calls.clear()
    for offset in range(entry.base_offset + 1, entry.end_offset, 50):
        list(archived.chunks(offset, offset + 1))
    assert sum(call[1].endswith(entry.aux_name) for call in door.calls) == 1


def test_no_more_indexes_are_kept_than_the_limit(finest: World) -> None:
    archived = finest.archived("g-txn-0")
    for entry in archived.manifest.entries * 2:
        list(archived.span_chunks(Span(entry, entry.base_offset + 1, entry.end_offset)))
    assert len(archived._indexes) <= INDEXES_MAX
    crowded = ArchivedLog(finest.store, archived.manifest, _indexes={str(n): None for n in range(INDEXES_MAX)})  # type: ignore[misc]
    entry = archived.manifest.entries[0]
    list(crowded.span_chunks(Span(entry, entry.base_offset + 1, entry.end_offset)))
    assert len(crowded._indexes) == INDEXES_MAX
    assert entry.segment_id in crowded._indexes


# transactions


@pytest.mark.parametrize("partition", ARCHIVED)
def test_read_committed_from_the_archive_alone_gives_what_the_broker_gave(finer: World, partition: str) -> None:
    archived = finer.archived(partition)
    committed = [o for o in live(partition)["read_committed_offsets"] if o < archived.end_offset]
    assert offsets_of(read(archived, archived.log_start_offset, archived.end_offset, committed=True)) == committed


def test_transactions_that_span_segments_are_aborted_wherever_a_read_starts_and_ends(finest: World) -> None:
    archived = finest.archived("g-txn-0")
    assert sum(ABORTED_LATER in e.aux_ranges for e in archived.manifest.entries) >= 5
    committed = live("g-txn-0")["read_committed_offsets"]
    for start in range(0, archived.end_offset, 83):
        for end in (start + 7, start + 400):
            expected = [o for o in committed if start <= o < min(end, archived.end_offset)]
            assert offsets_of(read(archived, start, end, committed=True)) == expected, (start, end)


def test_the_aborted_list_covers_the_range_and_no_more(finest: World) -> None:
    log, archived = finest.logs["g-txn-0"], finest.archived("g-txn-0")
    files = sorted((finest.folder / "g-txn-0").glob("*.txnindex"))
    everything = sorted({t for file in files for t in read_txn_index(file.read_bytes())})
    for start in range(0, archived.end_offset, 97):
        for end in range(start + 1, archived.end_offset, 331):
            expected = [t for t in everything if t.first_offset < end and t.last_offset >= start]
            assert list(archived.aborted(start, end)) == expected
            assert sorted(log.aborted(start, end)) == expected


# times


def by_linear_scan(records: pa.Table, timestamp_ms: int, start: int, end: int) -> TimestampOffset | None:
    offsets, times = records.column("offset").to_numpy(), records.column("timestamp").to_numpy()
    hits = np.flatnonzero((times >= timestamp_ms) & (offsets >= start) & (offsets < end))
    if not len(hits):
        return None
    row = int(hits[0])
    return TimestampOffset(int(offsets[row]), int(times[row]), records.column("leader_epoch")[row].as_py())


@pytest.mark.parametrize("partition", ARCHIVED)
def test_the_offset_for_a_time_is_that_of_a_linear_scan(finer: World, partition: str) -> None:
    archived, records = finer.archived(partition), finer.records[partition]
    first, last = archived.log_start_offset, archived.end_offset
    times = sorted(set(records.column("timestamp").to_pylist()))
    asked = {t + d for t in times[:: max(1, len(times) // 60)] for d in (-1, 0, 1)} | {0, -1, times[-1], times[-1] + 1, 2**62}
    for timestamp_ms in asked:
        expected = by_linear_scan(records, timestamp_ms, first, last)
        assert archived.offset_for_time(timestamp_ms, first, last) == expected, timestamp_ms


def test_the_offset_for_a_time_within_a_range_is_that_of_a_linear_scan(finer: World) -> None:
    for partition in ("g-txn-0", "g-epochs-0", "g-mixed-0"):
        archived, records = finer.archived(partition), finer.records[partition]
        for timestamp_ms in records.column("timestamp").to_pylist()[::149]:
            for start in range(0, archived.end_offset, 401):
                for end in (start + 1, start + 350, archived.end_offset):
                    expected = by_linear_scan(records, timestamp_ms, start, min(end, archived.end_offset))
                    assert archived.offset_for_time(timestamp_ms, start, end) == expected


@pytest.mark.parametrize("partition", ARCHIVED)
def test_the_latest_timestamp_is_that_of_a_linear_scan(finer: World, partition: str) -> None:
    archived, records = finer.archived(partition), finer.records[partition]
    below = records.filter(pa.array(records.column("offset").to_numpy() < archived.end_offset))
    below = below.filter(pa.array(below.column("offset").to_numpy() >= archived.log_start_offset))
    row = int(np.argmax(below.column("timestamp").to_numpy()))
    expected = TimestampOffset(*(below.column(name)[row].as_py() for name in ("offset", "timestamp", "leader_epoch")))
    assert archived.latest_timestamp() == expected


def test_an_offset_is_answered_with_its_leader_epoch(finer: World) -> None:
    archived = finer.archived("g-epochs-0")
    for offset, epoch in ((0, 0), (699, 0), (700, 2), (1_399, 2), (1_400, 4), (archived.end_offset - 1, 4)):
        assert archived.at(offset) == TimestampOffset(offset, NO_TIMESTAMP, epoch)


# gaps


def test_a_gap_is_refused_or_left_out(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path / "broker", "g-mixed-0")
    cut_finer(folder / "g-mixed-0", 6)
    log = local_logs(folder)["g-mixed-0"]
    hurt = log.segments[2]
    Path(hurt.path(".timeindex")).unlink()
    store = MemoryStore()
    offload_all(folder, store)
    archived = opened(store, log)
    start, end = hurt.base_offset, hurt.next_base_offset
    assert end is not None
    for ask in ((start - 5, end + 5), (start + 1, end + 5), (start - 5, start + 1), (start + 1, start + 2)):
        with pytest.raises(MissingRange, match="refused"):
            list(archived.chunks(*ask))
    before = record_batches(archived.chunks(start - 5, end + 5), start - 5, end + 5)
    assert next(before).column("offset").to_pylist() == [*range(start - 5, start)]  # as far as there are any
    with pytest.raises(MissingRange):
        next(before)
    allowed = archived.chunks(start - 5, end + 5, fail_on_data_loss=False)
    assert offsets_of(record_batches(allowed, start - 5, end + 5)) == [*range(start - 5, start), *range(end, end + 5)]


def test_a_record_that_could_lie_in_a_gap_is_not_answered_by_a_later_one(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path / "broker", "g-txn-0")
    cut_finer(folder / "g-txn-0", 6)
    log = local_logs(folder)["g-txn-0"]
    hurt, after = log.segments[2:4]
    wanted = int(next(hurt.chunks()).batches.max_timestamp[0])
    Path(hurt.path(".timeindex")).unlink()
    store = MemoryStore()
    offload_all(folder, store)
    archived = opened(store, log)
    with pytest.raises(MissingRange, match="refused"):
        archived.offset_for_time(wanted, 0, archived.end_offset)
    later = archived.offset_for_time(wanted, 0, archived.end_offset, fail_on_data_loss=False)
    assert later is not None
    assert later.offset >= after.base_offset
    assert archived.offset_for_time(0, 0, archived.end_offset) is not None


# damage


def entry_of(finer: World, partition: str, number: int) -> tuple[SegmentEntry, str, str]:
    entry = finer.archived(partition).manifest.entries[number]
    path = path_of(finer.logs[partition])
    return entry, path.segment(entry.log_name), path.segment(entry.aux_name)


def test_a_truncated_segment_is_an_error_with_a_remedy_and_never_a_shorter_answer(finer: World, memory: dict[str, bytes]) -> None:
    entry, log_key, _ = entry_of(finer, "g-txn-0", 3)
    for size in [0, 1, HEADER_BYTES, *range(100, entry.log_size, 9_001), entry.log_size - 1]:
        store = damaged(memory, log_key, lambda body, size=size: body[:size])
        archived = finer.archived("g-txn-0", store)
        with pytest.raises((LogError, RemoteError)):
            list(read(archived, entry.base_offset, entry.end_offset))


def test_an_object_that_the_manifest_names_and_that_is_gone_is_damage(finer: World, memory: dict[str, bytes]) -> None:
    entry, log_key, aux_key = entry_of(finer, "g-txn-0", 3)
    archived = finer.archived("g-txn-0", damaged(memory, log_key, None))
    without_aux = finer.archived("g-txn-0", damaged(memory, aux_key, None))
    asks: list[tuple[str, Callable[[], object]]] = [
        (log_key, lambda: list(read(archived, entry.base_offset, entry.end_offset))),
        (aux_key, lambda: list(without_aux.chunks(entry.base_offset + 1, entry.end_offset))),
        (aux_key, lambda: without_aux.aborted(entry.base_offset, entry.end_offset)),
    ]
    for key, ask in asks:
        with pytest.raises(Corrupt, match="the manifest names it") as raised:
            ask()
        assert raised.value.file == key


def test_a_flipped_bit_in_a_segment_is_corrupt_and_names_the_object(finer: World, memory: dict[str, bytes]) -> None:
    entry, log_key, _ = entry_of(finer, "g-codec-none-0", 1)
    for position in [8, 16, 17, 21, 57, *range(HEADER_BYTES, entry.log_size, 6_007), entry.log_size - 1]:

        def flip(body: bytes, position: int = position) -> bytes:
            return body[:position] + bytes([body[position] ^ 4]) + body[position + 1 :]

        archived = finer.archived("g-codec-none-0", damaged(memory, log_key, flip))
        with pytest.raises(Corrupt) as raised:
            list(read(archived, entry.base_offset, entry.end_offset))
        assert raised.value.file == log_key
        assert raised.value.position <= position


@pytest.mark.parametrize("part", [OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX])
def test_a_damaged_index_is_corrupt_and_names_the_object_and_the_byte(finer: World, memory: dict[str, bytes], part: str) -> None:
    entry, _, aux_key = entry_of(finer, "g-txn-0", 1)
    where = entry.aux_ranges[part]

    def spoil(body: bytes) -> bytes:
        return body[: where.start] + b"\x7f" * (where.end - where.start) + body[where.end :]

    archived = finer.archived("g-txn-0", damaged(memory, aux_key, spoil))
    start, end = entry.base_offset + 1, entry.end_offset - 1
    ask: dict[str, Callable[[], object]] = {
        OFFSET_INDEX: lambda: list(archived.chunks(start, end)),
        TIME_INDEX: lambda: archived.offset_for_time(entry.max_timestamp_ms, start, end),
        TRANSACTION_INDEX: lambda: archived.aborted(start, end),
    }
    with pytest.raises(Corrupt) as raised:
        ask[part]()
    assert raised.value.file == aux_key
    assert where.start <= raised.value.position < where.end


@pytest.mark.parametrize("part", [OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX])
def test_no_single_bit_of_an_index_changes_an_answer(finer: World, memory: dict[str, bytes], part: str) -> None:
    entry, _, aux_key = entry_of(finer, "g-txn-0", 1)
    where = entry.aux_ranges[part]
    start, end = entry.base_offset + 1, entry.end_offset - 1
    for bit in range(0, 8 * (where.end - where.start), 37):

        def flip(body: bytes, bit: int = bit) -> bytes:
            at = where.start + bit // 8
            return body[:at] + bytes([body[at] ^ 1 << bit % 8]) + body[at + 1 :]

        archived = finer.archived("g-txn-0", damaged(memory, aux_key, flip))
        ask: dict[str, Callable[[], object]] = {
            OFFSET_INDEX: lambda archived=archived: list(archived.chunks(start, end)),
            TIME_INDEX: lambda archived=archived: archived.offset_for_time(entry.max_timestamp_ms, start, end),
            TRANSACTION_INDEX: lambda archived=archived: archived.aborted(start, end),
        }
        with pytest.raises(Corrupt, match=part):
            ask[part]()


# versions


def test_a_reader_answers_from_its_version_whatever_is_committed_meanwhile(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path / "broker", "g-txn-0")
    cut_finer(folder / "g-txn-0", 12)
    earlier = copy_of(folder, tmp_path / "earlier")
    set_checkpoint(earlier / HIGH_WATERMARK_CHECKPOINT, "g-txn-0", 1_300)
    store, ids = MemoryStore(), CountingIds()
    offload_all(earlier, store, ids=ids)
    log = local_logs(folder)["g-txn-0"]
    before = opened(store, log)
    end = before.end_offset
    assert 0 < end <= 1_300
    answers = (offsets_of(read(before, 0, 10_000)), before.aborted(0, 10_000), before.latest_timestamp(), before.end_offset)
    offload_all(folder, store, ids=ids)
    after = opened(store, log)
    assert after.end_offset > end
    assert (
        offsets_of(read(before, 0, 10_000)),
        before.aborted(0, 10_000),
        before.latest_timestamp(),
        before.end_offset,
    ) == answers
    assert offsets_of(read(after, 0, end)) == answers[0]
    with pytest.raises(OffsetOutOfRange):
        list(before.chunks(end + 1, end + 2))
