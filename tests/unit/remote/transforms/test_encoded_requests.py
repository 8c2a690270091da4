"""What questions to an encoded archive cost: as many requests as where nothing is encoded, and each chunk fetched once."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from archive_fakes import CountingIds, Door, FixedClock
from encodings_to_try import ENCODED, KEYS, transforms
from golden_logs import broker_logs
from logs_to_archive import local_logs, path_of

from remote.archive import create_archive
from remote.manifest.model import Manifest
from remote.manifest.store import load_newest
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.read.read_ahead import ReadAhead
from remote.store.folder.store import FolderStore
from remote.transforms.decoded_bytes import DecodedBytes
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan

PARTITION = "g-codec-none-0"


def archived(folder: Path, encoding: str) -> tuple[Door, Manifest]:
    """A golden partition's archive and its manifest."""
    log = local_logs(broker_logs(folder / "logs", PARTITION))[PARTITION]
    store, clock, ids = FolderStore(str(folder / "archive")), FixedClock(), CountingIds()
    create_archive(store, clock, ids)
    done = [*offload(plan(log, store), OffloadRun(store, clock, ids, "source", lambda _: None, transforms(encoding)))]
    assert [d.error for d in done] == [None] * len(done)
    newest = load_newest(store, path_of(log))
    assert newest is not None
    assert {e.encoding for e in newest.manifest.entries} == {encoding}
    return Door(store), newest.manifest


def reading(ahead: ReadAhead) -> ReadContext:
    return ReadContext(partial(DecodedBytes, keys=KEYS), ahead=ahead)


def ranges(door: Door) -> list[tuple[object, ...]]:
    return sorted(call[1:] for call in door.calls if call[0] == "get_range")


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("threads", [0, 3])
def test_reading_from_start_to_end_fetches_every_byte_once(tmp_path: Path, encoding: str, threads: int) -> None:
    door, manifest = archived(tmp_path, encoding)
    with ThreadPoolExecutor(threads or 1) as pool:
        ahead = ReadAhead(pool if threads else None, window_bytes=200_000)
        log = ArchivedLog(door, manifest, 50_000, reading(ahead))
        found = b"".join(
            bytes(memoryview(c.buffer)[p:e])
            for c in log.chunks(0, log.end_offset)
            for p, e in zip(c.batches.positions.tolist(), c.batches.end.tolist(), strict=True)
        )
    assert len(found) == manifest.log_bytes
    fetched = [r for r in ranges(door) if str(r[0]).endswith(".log")]
    assert all(a[0] != b[0] or a[2] == b[1] for a, b in pairwise(fetched))
    assert sum(int(str(r[2])) - int(str(r[1])) for r in fetched) == sum(e.stored_log.size for e in manifest.entries)
    identity, plain = archived(tmp_path / "plain", "identity")
    list(ArchivedLog(identity, plain, 50_000, reading(ReadAhead(window_bytes=200_000))).chunks(0, log.end_offset))
    assert len(fetched) <= len(ranges(identity))


@pytest.mark.parametrize("encoding", ENCODED)
def test_one_old_record_and_one_time_cost_two_requests_each(tmp_path: Path, encoding: str) -> None:
    door, manifest = archived(tmp_path, encoding)
    large = max(manifest.entries, key=lambda e: e.log_size)
    for offset in range(large.base_offset + 1, large.end_offset, 211):
        log = ArchivedLog(door, manifest, reading=reading(ReadAhead()))
        door.calls.clear()
        (chunk,) = log.chunks(offset, offset + 1)
        assert chunk.batches.base_offset[0] <= offset <= chunk.batches.last_offset[-1]
        assert len(door.calls) == len(ranges(door)) == 2
    log = ArchivedLog(door, manifest, reading=reading(ReadAhead()))
    door.calls.clear()
    assert log.offset_for_time(large.max_timestamp_ms, large.base_offset, large.end_offset) is not None
    assert len(door.calls) == len(ranges(door)) == 2
