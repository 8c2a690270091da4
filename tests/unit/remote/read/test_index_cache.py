"""Indexes of archived segments, kept in memory and in files: asked of the archive once, and never believed when damaged."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import CountingIds, Door, FixedClock, MemoryStore
from archived_worlds import World

from local_log.errors import Corrupt
from local_log.os_disk import OsWritableDisk
from remote.keys import PartitionPath
from remote.manifest.segment_entry import OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, SegmentEntry
from remote.read.cache_files import CacheFiles
from remote.read.index_cache import SUFFIX, IndexCache, SegmentIndexes
from remote.segment_bytes import StoredBytes

Answers = tuple[list[list[int]], object]


class Archived:
    """Segments of the archive, and how often it was asked."""

    def __init__(self, world: World, partition: str = "g-txn-0") -> None:
        self.door = Door(world.store)
        log = world.archived(partition, self.door)
        self.path: PartitionPath = log.manifest.path
        self.entries: tuple[SegmentEntry, ...] = log.manifest.entries
        self.source = StoredBytes(self.door)

    def get(self, cache: IndexCache, number: int) -> SegmentIndexes:
        return cache.get(self.source, self.path, self.entries[number])

    @property
    def asked(self) -> int:
        return len(self.door.calls)


@pytest.fixture
def archived(finest: World) -> Archived:
    found = Archived(finest)
    found.door.calls.clear()
    return found


def files(folder: Path, bytes_max: int = 1 << 20) -> CacheFiles:
    return CacheFiles(OsWritableDisk(), str(folder / "cache"), SUFFIX, bytes_max, FixedClock(), CountingIds())


def file_of(folder: Path, entry: SegmentEntry) -> Path:
    return folder / "cache" / f"{entry.segment_id}{SUFFIX}"


def answers(indexes: SegmentIndexes) -> Answers:
    offsets, times = indexes.offsets(), indexes.times()
    columns = (offsets.offsets, offsets.positions, times.timestamps, times.offsets)
    return [column.tolist() for column in columns], indexes.aborted()


@pytest.mark.slow
def test_all_indexes_of_a_segment_come_by_one_request(archived: Archived) -> None:
    for number, entry in enumerate(archived.entries):
        archived.door.calls.clear()
        indexes = archived.get(IndexCache(), number)
        assert len(answers(indexes)[0][0]) == (entry.aux_ranges[OFFSET_INDEX].end if OFFSET_INDEX in entry.aux_ranges else 0) // 8
        assert [call[:2] for call in archived.door.calls] == [("get_range", archived.path.segment(entry.aux_name))]


def test_the_second_question_asks_the_archive_for_nothing(archived: Archived, tmp_path: Path) -> None:
    for cache in (IndexCache(), IndexCache(0, files(tmp_path))):
        first = [answers(archived.get(cache, n)) for n in range(5)]
        asked = archived.asked
        assert [answers(archived.get(cache, n)) for n in range(5)] == first
        assert archived.asked == asked


def test_what_two_topics_call_by_one_id_is_kept_apart(archived: Archived, tmp_path: Path) -> None:
    one, other = archived.entries[0], replace(archived.entries[1], segment_id=archived.entries[0].segment_id)
    for cache in (IndexCache(), IndexCache(files=files(tmp_path))):
        for entry, number in ((one, 0), (other, 1), (one, 0)):
            assert answers(cache.get(archived.source, archived.path, entry)) == answers(archived.get(IndexCache(), number))


@pytest.mark.slow
def test_a_segment_without_aborted_transactions_has_none_and_is_kept(finer: World, tmp_path: Path) -> None:
    archived = Archived(finer, "g-mixed-0")
    cache = IndexCache(0, files(tmp_path))
    assert archived.entries[1].txn_index_empty
    assert archived.get(cache, 1).aborted() == ()
    asked = archived.asked
    assert archived.get(cache, 1).aborted() == ()
    assert archived.asked == asked


def test_an_offset_outside_the_index_has_the_nearest_position(finer: World) -> None:
    archived = Archived(finer, "g-codec-none-0")
    index = archived.get(IndexCache(), 1).offsets()
    assert len(index.offsets) > 1
    assert index.lookup(int(index.offsets[-1]) + 1_000_000) == int(index.positions[-1])
    assert index.lookup(archived.entries[1].base_offset - 1) == 0


def test_the_indexes_of_a_segment_lie_in_one_file_of_its_id_that_a_restart_finds(archived: Archived, tmp_path: Path) -> None:
    before = [answers(archived.get(IndexCache(files=files(tmp_path)), n)) for n in range(4)]
    assert {f.name for f in (tmp_path / "cache").iterdir()} == {f"{e.segment_id}{SUFFIX}" for e in archived.entries[:4]}
    archived.door.calls.clear()
    after = IndexCache(files=files(tmp_path))
    assert [answers(archived.get(after, n)) for n in range(4)] == before
    assert archived.asked == 0


@pytest.mark.parametrize(("encoding", "kept"), [("zstd", True), ("aes-256-gcm", False), ("one of tomorrow", False)])
def test_the_indexes_of_an_encrypted_segment_lie_in_no_file(
    archived: Archived, tmp_path: Path, encoding: str, kept: bool
) -> None:
    class Decoded(StoredBytes):
        def aux(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> bytes:
            return super().aux(path, replace(entry, encoding="identity"), start, end)

    cache = IndexCache(files=files(tmp_path))
    found = cache.get(Decoded(archived.door), archived.path, replace(archived.entries[3], encoding=encoding))
    assert answers(found) == answers(archived.get(IndexCache(), 3))
    assert (tmp_path / "cache").exists() is kept


@pytest.mark.parametrize(
    "change", [lambda b: b[:-1], lambda b: b[:3], lambda b: b"", lambda b: bytes([*b[:-9], b[-9] ^ 1, *b[-8:]])]
)
def test_a_file_that_is_cut_or_damaged_is_fetched_again(
    archived: Archived, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    expected = answers(archived.get(IndexCache(files=files(tmp_path)), 3))
    file = file_of(tmp_path, archived.entries[3])
    whole = file.read_bytes()
    file.write_bytes(change(whole))
    archived.door.calls.clear()
    assert answers(archived.get(IndexCache(files=files(tmp_path)), 3)) == expected
    assert archived.asked == 1
    assert file.read_bytes() == whole


def test_a_file_that_is_whole_but_not_what_the_manifest_names_is_fetched_again(archived: Archived, tmp_path: Path) -> None:
    kept = files(tmp_path)
    kept.put(archived.entries[3].segment_id, b"the indexes of another archive")
    assert answers(archived.get(IndexCache(files=kept), 3)) == answers(archived.get(IndexCache(), 3))


def test_a_file_that_somebody_deletes_is_fetched_again(archived: Archived, tmp_path: Path) -> None:
    cache = IndexCache(0, files(tmp_path))
    expected = answers(archived.get(cache, 3))
    file_of(tmp_path, archived.entries[3]).unlink()
    assert answers(archived.get(cache, 3)) == expected
    assert file_of(tmp_path, archived.entries[3]).exists()


@pytest.mark.parametrize("part", [OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX])
def test_what_the_archive_gives_damaged_is_corrupt_once_and_never_kept(finer: World, tmp_path: Path, part: str) -> None:
    archived = Archived(finer)
    sound = MemoryStore()
    sound.objects.update({key: finer.store.get(key) for key in (archived.path.segment(archived.entries[1].aux_name),)})
    damaged = MemoryStore()
    where = archived.entries[1].aux_ranges[part]
    for key, body in sound.objects.items():
        damaged.objects[key] = body[: where.start] + bytes([body[where.start] ^ 1]) + body[where.start + 1 :]
    cache = IndexCache(files=files(tmp_path))
    for _ in range(2):
        indexes = cache.get(StoredBytes(damaged), archived.path, archived.entries[1])
        with pytest.raises(Corrupt, match=part):
            answers(indexes)
        assert not file_of(tmp_path, archived.entries[1]).exists()
    assert answers(cache.get(StoredBytes(sound), archived.path, archived.entries[1]))
    assert file_of(tmp_path, archived.entries[1]).exists()
    assert answers(cache.get(StoredBytes(damaged), archived.path, archived.entries[1]))  # nobody asks it any more


def test_a_damaged_part_keeps_nobody_from_the_others(finer: World) -> None:
    archived = Archived(finer)
    entry, store = archived.entries[1], MemoryStore()
    key = archived.path.segment(entry.aux_name)
    body = finer.store.get(key)
    end = entry.aux_ranges[TRANSACTION_INDEX].end
    store.objects[key] = body[: end - 1] + bytes([body[end - 1] ^ 1]) + body[end:]
    indexes = IndexCache().get(StoredBytes(store), archived.path, entry)
    assert len(indexes.offsets().offsets)
    assert len(indexes.times().offsets)
    with pytest.raises(Corrupt):
        indexes.aborted()


def test_memory_keeps_to_its_bound_and_the_longest_unasked_goes_first(archived: Archived) -> None:
    one = IndexCache()
    archived.get(one, 0)
    cache = IndexCache(10 * one._bytes)
    for number in range(len(archived.entries)):
        archived.get(cache, number)
        archived.get(cache, 0)
        assert cache._bytes <= cache.memory_bytes_max
    asked = archived.asked
    archived.get(cache, 0)
    archived.get(cache, len(archived.entries) - 1)
    assert archived.asked == asked
    archived.get(cache, 1)
    assert archived.asked == asked + 1


def test_the_files_keep_to_their_bound(archived: Archived, tmp_path: Path) -> None:
    cache = IndexCache(0, files(tmp_path, 2_000))
    for number in range(len(archived.entries)):
        archived.get(cache, number)
        assert sum(f.stat().st_size for f in (tmp_path / "cache").iterdir()) <= 2_000


def test_a_removed_segment_is_asked_of_the_archive_again_and_its_file_is_gone(archived: Archived, tmp_path: Path) -> None:
    cache = IndexCache(files=files(tmp_path))
    in_hand = archived.get(cache, 2)
    for number in (3, 4):
        archived.get(cache, number)
    for number in (2, 3):
        cache.remove(archived.entries[number].segment_id)
        cache.remove(archived.entries[number].segment_id)
    cache.remove("0" * 32)
    assert [f.name for f in (tmp_path / "cache").iterdir()] == [file_of(tmp_path, archived.entries[4]).name]
    asked = archived.asked
    archived.get(cache, 4)
    assert archived.asked == asked
    assert answers(in_hand) == answers(archived.get(cache, 2))  # who holds it may go on
    assert archived.asked == asked + 1


class Slow:
    """Gives the indexes of one segment only when it is told to; counts who asks."""

    def __init__(self, archived: Archived, slow: SegmentEntry) -> None:
        self.archived = archived
        self.slow = slow
        self.asked: list[str] = []
        self.go = threading.Event()
        self.is_asked = threading.Event()

    def log(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> bytes:
        raise AssertionError("nobody wants the log")

    def require_encryption(self, path: PartitionPath, entry: SegmentEntry) -> None:
        self.archived.source.require_encryption(path, entry)

    def aux(self, path: PartitionPath, entry: SegmentEntry, start: int, end: int) -> bytes:
        self.asked.append(entry.segment_id)
        if entry is self.slow:
            self.is_asked.set()
            assert self.go.wait(30)
        return self.archived.source.aux(path, entry, start, end)


def test_one_of_many_fetches_a_segment_s_indexes_and_who_asks_for_kept_ones_does_not_wait(archived: Archived) -> None:
    source, cache = Slow(archived, archived.entries[1]), IndexCache()
    cache.get(source, archived.path, archived.entries[0])
    with ThreadPoolExecutor(6) as pool:
        waiting = [pool.submit(cache.get, source, archived.path, archived.entries[1]) for _ in range(6)]
        assert source.is_asked.wait(30)
        cache.get(source, archived.path, archived.entries[0])
        assert not any(w.done() for w in waiting)
        source.go.set()
        found = {id(w.result()) for w in waiting}
    assert len(found) == 1
    assert source.asked == [archived.entries[0].segment_id, archived.entries[1].segment_id]


def test_threads_that_ask_and_remove_at_once_get_whole_indexes(archived: Archived, tmp_path: Path) -> None:
    expected = [answers(archived.get(IndexCache(), n)) for n in range(8)]
    cache = IndexCache(8_000, files(tmp_path, 4_000))

    def work(seed: int) -> None:
        for step in range(60):
            number = (seed + step * step) % 8
            assert answers(archived.get(cache, number)) == expected[number]
            if step % 3 == 0:
                cache.remove(archived.entries[(number + 1) % 8].segment_id)

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(work, seed) for seed in range(6)]:
            done.result()
