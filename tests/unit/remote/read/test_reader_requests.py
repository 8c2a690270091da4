"""How much of an archive is read for an answer: few requests, few bytes, nothing twice."""

from pathlib import Path

from archive_fakes import CountingIds, Door, MemoryStore, verbs
from archived_worlds import World, opened, read
from golden_logs import broker_logs
from logs_to_archive import copy_of, cut_finer, local_logs, offload_all, offsets_of, set_checkpoint

from local_log.formats.chunks import FIRST_CHUNK_BYTES
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from remote.read.log import ArchivedLog
from remote.store.folder.store import FolderStore


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
