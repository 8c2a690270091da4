"""One archived partition as a log to read: it answers as the log that was archived."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from archive_fakes import CountingIds, MemoryStore
from archived_worlds import ARCHIVED, World, opened, read
from golden_logs import broker_logs, expected_records, legacy_logs, legacy_partitions, live, partitions
from logs_to_archive import (
    all_records,
    copy_of,
    cut_finer,
    for_applications,
    local_logs,
    offload_all,
    offsets_of,
    path_of,
    set_checkpoint,
    table_of,
)
from made_manifests import assert_sound_archive

from local_log.errors import OffsetOutOfRange
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.formats.indexes.transaction import read_txn_index
from local_log.formats.list_offsets import TimestampOffset
from local_log.formats.record import NO_TIMESTAMP
from local_log.formats.visible_records import record_batches
from remote.manifest.segment_entry import ABORTED_LATER
from remote.store.folder.store import FolderStore


def at(found: TimestampOffset | None) -> list[int]:
    return [-1, -1, -1] if found is None else [found.offset, found.timestamp, found.leader_epoch]


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


@pytest.mark.parametrize("partition", legacy_partitions())
def test_an_archive_of_older_messages_answers_as_kafka_does(tmp_path: Path, partition: str) -> None:
    folder = legacy_logs(tmp_path / "logs", partition)
    store, answers = FolderStore(str(tmp_path / "archive")), live(partition)
    offload_all(folder, store)
    log = local_logs(folder)[partition]
    archived = opened(store, log)
    assert archived.end_offset == answers["latest"][0]
    assert sum(entry.record_count for entry in archived.manifest.entries) == len(expected_records(partition))
    local = offsets_of(record_batches(log.chunks(0, archived.end_offset), 0, archived.end_offset))
    for start in range(0, archived.end_offset, 37):
        expected = [offset for offset in local if start <= offset < start + 100]
        assert offsets_of(read(archived, start, min(start + 100, archived.end_offset))) == expected
    assert at(archived.latest_timestamp()) == answers["max_timestamp"]
    for asked, *answer in answers["offset_for_timestamp"]:
        assert at(archived.offset_for_time(asked, 0, archived.end_offset)) == answer, asked


@pytest.mark.parametrize("partition", ARCHIVED)
@pytest.mark.slow
def test_every_record_equals_the_local_logs_from_every_37th_offset(finer: World, partition: str) -> None:
    archived = finer.archived(partition)
    assert (archived.log_start_offset, len(archived.manifest.gaps)) == (finer.logs[partition].log_start_offset, 0)
    end = archived.end_offset
    for start in [*range(archived.log_start_offset, end, 37), end - 1, end]:
        expected = for_applications(finer.records[partition], start, end)
        assert table_of(read(archived, start, end), expected).equals(expected), start


@pytest.mark.parametrize("partition", ARCHIVED)
@pytest.mark.slow
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


# transactions


@pytest.mark.parametrize("partition", ARCHIVED)
def test_read_committed_from_the_archive_alone_gives_what_the_broker_gave(finer: World, partition: str) -> None:
    archived = finer.archived(partition)
    committed = [o for o in live(partition)["read_committed_offsets"] if o < archived.end_offset]
    assert offsets_of(read(archived, archived.log_start_offset, archived.end_offset, committed=True)) == committed


@pytest.mark.slow
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
