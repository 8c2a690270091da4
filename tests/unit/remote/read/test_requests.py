"""What questions to an archive cost in requests, from nothing known and with the manifest at hand.

Kafka's own clients pay a round trip for each; a bucket is a hundred times further away and sends a bill.
"""

from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore, verbs
from archived_worlds import ARCHIVED, World
from golden_logs import broker_logs
from logs_to_archive import cut_finer, local_logs, offload_all, offsets_of, path_of
from pools import LazyPool

from local_log.os_disk import OsWritableDisk
from remote.manifest.model import Limits
from remote.manifest.store import ManifestWriter, load_newest
from remote.read.cache_files import CacheFiles
from remote.read.context import ReadContext
from remote.read.index_cache import SUFFIX, IndexCache
from remote.read.log import ArchivedLog
from remote.read.read_ahead import ReadAhead


@pytest.fixture(scope="module")
def store(finer: World) -> MemoryStore:
    """The partitions cut finer, in a store that writes down who asks."""
    found = MemoryStore()
    offload_all(finer.folder, found)
    return found


def cold(store: MemoryStore, world: World, partition: str, reading: ReadContext | None = None) -> ArchivedLog:
    """A log that nothing is known of but where it lies; what it takes to open it is in the transcript."""
    store.calls.clear()
    newest = load_newest(store, path_of(world.logs[partition]))
    assert newest is not None
    return ArchivedLog(store, newest.manifest, reading=reading or ReadContext())


@pytest.mark.parametrize("partition", ARCHIVED)
def test_opening_a_partition_costs_two_requests(finer: World, store: MemoryStore, partition: str) -> None:
    cold(store, finer, partition)
    assert verbs(store.calls) == ["list", "get"]


@pytest.mark.parametrize("partition", ARCHIVED)
@pytest.mark.slow
def test_a_cold_search_by_time_costs_four_requests_and_two_with_the_manifest_at_hand(
    finer: World, store: MemoryStore, partition: str
) -> None:
    times = sorted(set(finer.records[partition].column("timestamp").to_pylist()))
    for asked in [t + d for t in times[:: max(1, len(times) // 40)] for d in (-1, 0, 1)]:
        log = cold(store, finer, partition)
        found = log.offset_for_time(asked, log.log_start_offset, log.end_offset)
        assert len(store.calls) <= 4
        store.calls.clear()
        warm = ArchivedLog(store, log.manifest)
        assert warm.offset_for_time(asked, log.log_start_offset, log.end_offset) == found
        assert len(store.calls) <= 2
        store.calls.clear()
        warm.offset_for_time(asked, log.log_start_offset, log.end_offset)
        assert verbs(store.calls) in (["get_range"], [])  # the indexes are kept


@pytest.mark.parametrize("partition", ARCHIVED)
def test_a_cold_fetch_of_one_old_record_costs_four_requests(finer: World, store: MemoryStore, partition: str) -> None:
    first = cold(store, finer, partition)
    for offset in range(first.log_start_offset, first.end_offset, 97):
        log = cold(store, finer, partition)
        got = offsets_of(log.records(offset, offset + 1, committed=True))
        assert got in ([offset], [])
        assert len(store.calls) <= 4


def test_the_latest_timestamp_costs_two_requests_with_the_manifest_at_hand(finer: World, store: MemoryStore) -> None:
    for partition in ARCHIVED:
        log = cold(store, finer, partition)
        store.calls.clear()
        assert log.latest_timestamp() is not None
        assert verbs(store.calls) == ["get_range"] * 2


def test_a_process_that_starts_anew_finds_the_indexes_in_their_files(finer: World, store: MemoryStore, tmp_path: Path) -> None:
    def reading() -> ReadContext:
        files = CacheFiles(OsWritableDisk(), str(tmp_path / "cache"), SUFFIX, 1 << 20, FixedClock(), CountingIds())
        return ReadContext(indexes=IndexCache(files=files))

    asked = cold(store, finer, "g-txn-0").manifest.entries[2].max_timestamp_ms
    for expected in (2, 1):
        log = cold(store, finer, "g-txn-0", reading())
        store.calls.clear()
        assert log.offset_for_time(asked, 0, log.end_offset) is not None
        assert len(store.calls) == expected


@pytest.mark.parametrize("pooled", [False, True])
def test_sequential_reading_costs_a_request_for_each_window_and_none_else(tmp_path: Path, pooled: bool) -> None:
    folder = broker_logs(tmp_path / "broker", "g-codec-none-0")
    cut_finer(folder / "g-codec-none-0", 5)
    store = MemoryStore()
    offload_all(folder, store)
    (log,) = local_logs(folder).values()
    newest = load_newest(store, path_of(log))
    assert newest is not None
    window = 40_000
    ahead = ReadAhead(LazyPool() if pooled else None, window_bytes=window)
    archived = ArchivedLog(store, newest.manifest, window, ReadContext(ahead=ahead))
    store.calls.clear()
    read = offsets_of(archived.records(0, archived.end_offset))
    assert read == offsets_of(ArchivedLog(MemoryStoreOf(store), newest.manifest).records(0, archived.end_offset))
    sizes = [entry.log_size for entry in newest.manifest.entries]
    assert max(sizes) > 3 * window
    assert len(store.calls) == sum(-(-size // window) for size in sizes)
    assert set(verbs(store.calls)) == {"get_range"}
    ranges = [(key, start, end) for _, key, start, end in store.calls]
    assert len(set(ranges)) == len(ranges)
    assert sum(end - start for _, start, end in ranges) == sum(sizes)


class MemoryStoreOf(MemoryStore):
    """The same objects with a transcript of its own."""

    def __init__(self, other: MemoryStore) -> None:
        super().__init__()
        self.objects = other.objects


def test_reading_committed_costs_one_more_for_each_segment_with_aborted_transactions(finest: World) -> None:
    store = MemoryStore()
    offload_all(finest.folder, store)
    log = cold(store, finest, "g-txn-0")
    store.calls.clear()
    list(log.records(0, log.end_offset, committed=True))
    touched = sum(not entry.txn_index_empty for entry in log.manifest.entries)
    assert 0 < touched < len(log.manifest.entries)
    assert len(store.calls) == len(log.manifest.entries) + touched


# of a manifest that has grown pages


@pytest.fixture(scope="module")
def paged(finest: World) -> MemoryStore:
    """Dozens of segments, of which the manifest itself names the last few."""
    store = MemoryStore()
    offload_all(finest.folder, store)
    path = path_of(finest.logs["g-txn-0"])
    newest = load_newest(store, path)
    assert newest is not None
    limits = Limits(inline_max=8, page_entries=8)
    writer = ManifestWriter(store, path, FixedClock(), CountingIds("f"), "writer", newest.manifest.writer_epoch, limits)
    manifest = writer.commit(newest.manifest, lambda as_it_is: as_it_is)
    assert len(manifest.pages) >= 4
    assert len(manifest.entries) <= 8
    return store


@pytest.mark.slow
def test_with_pages_a_cold_fetch_and_a_cold_search_by_time_cost_five_requests(finest: World, paged: MemoryStore) -> None:
    records = finest.records["g-txn-0"]
    most = 0
    for offset in range(0, cold(paged, finest, "g-txn-0").end_offset, 61):
        log = cold(paged, finest, "g-txn-0")
        assert offsets_of(log.records(offset, offset + 1)) in ([offset], [])
        assert len(paged.calls) <= 5
        most = max(most, len(paged.calls))
    assert most == 5
    for asked in records.column("timestamp").to_pylist()[::97]:
        log = cold(paged, finest, "g-txn-0")
        found = log.offset_for_time(asked, 0, log.end_offset)
        assert found is not None
        assert len(paged.calls) <= 5
        paged.calls.clear()
        log = ArchivedLog(paged, log.manifest, reading=ReadContext())
        list(log.entries)
        paged.calls.clear()
        assert log.offset_for_time(asked, 0, log.end_offset) == found
        assert len(paged.calls) <= 2  # the manifest is at hand, pages and all


def test_with_pages_reading_from_start_to_end_reads_each_page_once(finest: World, paged: MemoryStore) -> None:
    log = cold(paged, finest, "g-txn-0")
    paged.calls.clear()
    assert len(offsets_of(log.records(0, log.end_offset))) > 2_000
    assert verbs(paged.calls).count("get") == len(log.manifest.pages)
    assert len(paged.calls) == len(log.manifest.pages) + log.manifest.segment_count
