"""Bytes of archived segments, kept in files: aligned chunks, fetched once."""

from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import CountingIds, Door, FixedClock
from archived_worlds import World, read
from logs_to_archive import offsets_of

from local_log.errors import Corrupt
from local_log.os_disk import OsWritableDisk
from remote.manifest.segment_entry import SegmentEntry
from remote.read.cache_files import CacheFiles
from remote.read.chunk_cache import SUFFIX, CachedBytes, ChunkCache
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.read.read_ahead import ReadAhead
from remote.segment_bytes import StoredBytes

CHUNK = 1_000


def cache(folder: Path, bytes_max: int = 10 << 20, chunk_bytes: int = CHUNK) -> ChunkCache:
    files = CacheFiles(OsWritableDisk(), str(folder / "chunks"), SUFFIX, bytes_max, FixedClock(), CountingIds())
    return ChunkCache(files, chunk_bytes)


class Archived:
    """A segment of the archive, read through a chunk cache; `fetched` are the ranges that were asked of the archive."""

    def __init__(self, world: World, chunks: ChunkCache) -> None:
        self.door = Door(world.store)
        log = world.archived("g-codec-none-0", self.door)
        self.path = log.manifest.path
        self.entry: SegmentEntry = log.manifest.entries[1]
        self.body = world.store.get(self.path.segment(self.entry.log_name))
        self.bytes = CachedBytes(StoredBytes(self.door), chunks)
        self.door.calls.clear()

    def read(self, start: int, end: int) -> list[tuple[int, int]]:
        """Checks the bytes and gives the ranges that were fetched for them."""
        self.door.calls.clear()
        assert self.bytes.log(self.path, self.entry, start, end) == self.body[start:end]
        return [call[2:] for call in self.door.calls]


@pytest.mark.slow
def test_any_range_is_what_the_archive_has_and_costs_nothing_the_second_time(finer: World, tmp_path: Path) -> None:
    archived = Archived(finer, cache(tmp_path))
    size = archived.entry.log_size
    for start in range(0, size, 2_711):
        for end in (start, start + 1, start + CHUNK, start + 5_003, size):
            archived.read(start, min(end, size))
            assert archived.read(start, min(end, size)) == []
    assert Archived(finer, cache(tmp_path)).read(0, size) == []  # after a restart


def test_what_is_missing_is_fetched_by_whole_chunks_adjacent_ones_at_once(finer: World, tmp_path: Path) -> None:
    archived = Archived(finer, cache(tmp_path))
    assert archived.read(2_500, 2_501) == [(2_000, 3_000)]
    assert archived.read(5_999, 6_001) == [(5_000, 7_000)]
    assert archived.read(500, 9_000) == [(0, 2_000), (3_000, 5_000), (7_000, 9_000)]
    size = archived.entry.log_size
    assert archived.read(size - 1, size) == [(size // CHUNK * CHUNK, size)]


def test_the_folder_keeps_to_its_bound_and_answers_stay_right(finer: World, tmp_path: Path) -> None:
    archived = Archived(finer, cache(tmp_path, 12_000))
    for start in range(0, archived.entry.log_size - 3_000, 1_777):
        archived.read(start, start + 3_000)
        assert sum(f.stat().st_size for f in (tmp_path / "chunks").iterdir()) <= 12_000


@pytest.mark.parametrize("kept_bytes", [0, 3, 500, CHUNK])
def test_a_chunk_that_is_cut_or_damaged_is_fetched_again(finer: World, tmp_path: Path, kept_bytes: int) -> None:
    archived = Archived(finer, cache(tmp_path))
    archived.read(0, 5_000)
    name = f"{archived.entry.segment_id}-{archived.entry.log_crc32c:08x}-2{SUFFIX}"
    file = tmp_path / "chunks" / name
    file.write_bytes(file.read_bytes()[:kept_bytes])
    assert archived.read(0, 5_000) == [(2_000, 3_000)]
    assert archived.read(0, 5_000) == []


def test_a_chunk_of_another_length_than_is_wanted_now_is_fetched_again(finer: World, tmp_path: Path) -> None:
    Archived(finer, cache(tmp_path, chunk_bytes=700)).read(0, 5_000)
    assert Archived(finer, cache(tmp_path)).read(0, 5_000) == [(0, 5_000)]


def test_what_two_archives_call_by_one_id_is_kept_apart(finer: World, tmp_path: Path) -> None:
    archived = Archived(finer, cache(tmp_path))
    archived.read(0, 3_000)
    archived.entry = replace(archived.entry, log_crc32c=archived.entry.log_crc32c ^ 1)
    assert archived.read(0, 3_000) == [(0, 3_000)]


@pytest.mark.parametrize(("encoding", "kept"), [("zstd", True), ("aes-256-gcm", False), ("one of tomorrow", False)])
def test_a_segment_that_its_owner_encrypted_is_not_kept(finer: World, tmp_path: Path, encoding: str, kept: bool) -> None:
    archived = Archived(finer, cache(tmp_path))
    encoded = replace(archived.entry, encoding=encoding)

    class Decoded(StoredBytes):
        def log(self, path: object, entry: SegmentEntry, start: int, end: int) -> bytes:
            return archived.body[start:end]

    source = CachedBytes(Decoded(archived.door), cache(tmp_path))
    assert source.log(archived.path, encoded, 10, 4_000) == archived.body[10:4_000]
    assert (tmp_path / "chunks").exists() is kept


def test_a_log_reads_the_same_through_a_chunk_cache_and_the_second_time_asks_only_for_indexes(
    finer: World, tmp_path: Path
) -> None:
    door = Door(finer.store)
    plain = finer.archived("g-txn-0")
    reading = ReadContext(chunks=cache(tmp_path, chunk_bytes=16_384), ahead=ReadAhead(align=16_384, window_bytes=65_536))
    expected = offsets_of(read(plain, 0, plain.end_offset, committed=True))
    for turn in range(2):
        door.calls.clear()
        log = ArchivedLog(door, plain.manifest, 16_384, reading)
        assert offsets_of(log.records(0, plain.end_offset, committed=True)) == expected
        assert any(call[1].endswith(".log") for call in door.calls) == (turn == 0)


def test_what_came_damaged_over_the_wire_is_fetched_again_by_who_asks_next(finer: World, tmp_path: Path) -> None:
    plain = finer.archived("g-txn-0")
    entry = plain.manifest.entries[2]

    class Flaky(Door):
        damaged = 1

        def get_range(self, key: str, start: int, end: int) -> bytes:
            body = bytes(super().get_range(key, start, end))
            if self.damaged and key.endswith(entry.log_name):
                self.damaged -= 1
                return body[:200] + bytes([body[200] ^ 1]) + body[201:]
            return body

    log = ArchivedLog(Flaky(finer.store), plain.manifest, reading=ReadContext(chunks=cache(tmp_path)))
    with pytest.raises(Corrupt):
        list(log.records(entry.base_offset, entry.end_offset))
    got = offsets_of(log.records(entry.base_offset, entry.end_offset))
    assert got == offsets_of(read(plain, entry.base_offset, entry.end_offset))
