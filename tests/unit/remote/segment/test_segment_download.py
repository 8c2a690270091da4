"""A segment brought back from the archive: verified as it comes, in parts, and cut at batches where it has to be."""

from dataclasses import replace

import pytest
from archive_fakes import CountingIds, Door, FixedClock, MemoryStore
from made_manifests import PATH

from local_log.errors import Corrupt
from local_log.formats.batches import scan
from local_log.formats.indexes.transaction import read_txn_index
from remote.manifest.segment_entry import OFFSET_INDEX, TRANSACTION_INDEX, SegmentEntry
from remote.segment.check import LogSegmentData
from remote.segment.download import CutLog, file_names, read_part, whole_log
from remote.segment.repair import checked_copy
from remote.segment.stitch import Link
from remote.segment.upload import copy_segment
from remote.segment_bytes import StoredBytes


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def entry(store: MemoryStore, segment: LogSegmentData) -> SegmentEntry:
    return copy_segment(store, PATH, checked_copy(segment), FixedClock(), CountingIds())


def test_the_whole_log_comes_in_parts_and_is_what_was_archived(
    store: MemoryStore, entry: SegmentEntry, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remote.segment.download.PART_BYTES", 100_000)
    door = Door(store)
    parts = list(whole_log(StoredBytes(door), PATH, entry))
    assert b"".join(parts) == body
    assert max(map(len, parts)) == 100_000
    assert len(door.calls) == -(-len(body) // 100_000)


def test_a_log_of_other_bytes_is_corrupt_after_its_last_part(store: MemoryStore, entry: SegmentEntry, body: bytes) -> None:
    store.objects[PATH.segment(entry.log_name)] = body[:-1] + bytes([body[-1] ^ 1])
    parts = whole_log(StoredBytes(store), PATH, entry)
    assert next(parts)
    with pytest.raises(Corrupt, match="has CRC-32C"):
        list(parts)


def test_parts_are_read_alone_and_verified(store: MemoryStore, entry: SegmentEntry, segment: LogSegmentData) -> None:
    source = StoredBytes(store)
    assert read_part(source, PATH, entry, OFFSET_INDEX) == segment.offset_index.body
    assert read_part(source, PATH, entry, "no such part") == b""
    key = PATH.segment(entry.aux_name)
    store.objects[key] = b"\xff" + store.objects[key][1:]
    with pytest.raises(Corrupt, match="offset_index has CRC-32C"):
        read_part(source, PATH, entry, OFFSET_INDEX)


def test_files_are_named_as_a_broker_names_them(entry: SegmentEntry) -> None:
    assert sorted(file_names(entry).values()) == [
        "00000000000000000102.index",
        "00000000000000000102.timeindex",
        "00000000000000000102.txnindex",
        "00000000000000002683.snapshot",  # taken where the segment ends
    ]


@pytest.mark.parametrize(("start", "end"), [(102, 1000), (1000, 2683), (900, 1500), (102, 103), (2682, 2683), (2683, 2683)])
def test_of_a_cut_log_just_the_batches_of_its_range_are_kept(
    store: MemoryStore, entry: SegmentEntry, body: bytes, start: int, end: int
) -> None:
    batches, _ = scan(body)
    rows = batches[(batches.base_offset >= start) & (batches.last_offset < end)]
    if ((batches.base_offset < start) & (batches.last_offset >= start)).any():
        start = int(batches.base_offset[batches.base_offset >= start][0])
        rows = batches[(batches.base_offset >= start) & (batches.last_offset < end)]
    cut = CutLog(StoredBytes(store), PATH, Link(entry, start, end))
    kept = b"".join(bytes(part) for part in cut.parts())
    assert kept == b"".join(body[int(p) : int(e)] for p, e in zip(rows.positions, rows.end, strict=True))
    assert cut.size == len(kept)
    assert cut.end_offset == (int(rows.last_offset[-1]) + 1 if len(rows) else start)
    if not kept:
        assert cut.files() == {}
        return
    aborted = read_txn_index(read_part(StoredBytes(store), PATH, entry, TRANSACTION_INDEX))
    index = cut.files().get(f"{start:020d}.txnindex", b"")
    assert set(read_txn_index(index)) == {t for t in aborted if start <= t.last_offset < cut.end_offset}
    assert ("00000000000000002683.snapshot" in cut.files()) == (end == entry.end_offset)


def test_a_cut_in_a_batch_is_refused_at_its_beginning(store: MemoryStore, entry: SegmentEntry, body: bytes) -> None:
    batches, _ = scan(body)
    row = next(n for n in range(len(batches)) if batches.last_offset[n] > batches.base_offset[n])
    cut = CutLog(StoredBytes(store), PATH, Link(entry, int(batches.last_offset[row]), entry.end_offset))
    with pytest.raises(Corrupt, match="these are not the same log's") as error:
        list(cut.parts())
    assert error.value.position == int(batches.positions[row])


def test_what_is_left_out_of_a_cut_log_is_verified_too(store: MemoryStore, entry: SegmentEntry) -> None:
    cut = CutLog(StoredBytes(store), PATH, Link(replace(entry, log_crc32c=1), 102, 200))
    with pytest.raises(Corrupt, match="has CRC-32C"):
        list(cut.parts())
