"""Reads of batches for fetches: what is at hand is what a read finds, as long as the files are those that were checked."""

import os
import shutil
from pathlib import Path
from random import Random  # noqa: TID251  # seeded

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from golden_logs import broker_logs
from logs_to_archive import local_logs, offload_all, path_of
from one_offload import TXN

from local_log.batch_file import BatchFile
from local_log.errors import Corrupt, NotFound
from local_log.file_range import FileRange
from remote.manifest.model import Limits
from remote.manifest.store import ManifestWriter, load_newest
from remote.read.log import ArchivedLog
from remote.store.folder.store import FolderStore
from tiering.endpoint.at_hand import NotAtHand
from tiering.endpoint.reads import Batches, Reads
from tiering.read.tiered_log import Isolation, TieredLog


@pytest.fixture(params=["local", "folder", "both"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> TieredLog:
    """Three segments of a golden log and its active one, in files of one tier or both; in both, the local log lacks the first."""
    folder, store = broker_logs(tmp_path / "logs", TXN), FolderStore(str(tmp_path / "archive"))
    local = local_logs(folder)[TXN]
    if request.param == "local":
        return TieredLog(local, None)
    offload_all(folder, store)
    newest = load_newest(store, path_of(local))
    assert newest is not None
    archived = ArchivedLog(store, newest.manifest)
    if request.param == "both":
        for file in (folder / TXN).glob(f"{local.segments[0].base_offset:020d}.*"):
            file.unlink()
    return TieredLog(local_logs(folder)[TXN] if request.param == "both" else None, archived)


def bytes_of(found: Batches) -> bytes:
    return b"".join(part.read() if isinstance(part, FileRange) else bytes(part) for part in found.parts)


def read(reads: Reads, log: TieredLog, offset: int, max_bytes: int) -> Batches:
    return reads.read(log, offset, max_bytes, Isolation.read_uncommitted, one_at_least=True)


def files_of(log: TieredLog) -> dict[int, Path]:
    """The files that offsets are read from, by the first offset of each."""
    found, offset = dict[int, Path](), log.log_start_offset
    while offset < log.end_offset():
        file = log.batch_file(offset, Isolation.read_uncommitted)
        assert file is not None
        root = "" if Path(file.name).is_absolute() or log.archived is None else getattr(log.archived.store, "root", "")
        found[offset] = Path(root, file.name)
        offset = file.end_offset if file.next_offset is None else file.next_offset
    return found


def test_what_was_read_is_at_hand_with_the_same_bytes(log: TieredLog) -> None:
    reads, random, end = Reads(), Random(1), log.end_offset()
    with pytest.raises(NotAtHand):
        reads.read_at_once(log, log.log_start_offset, 1, one_at_least=True)
    read(reads, log, log.log_start_offset, 1 << 30)
    for _ in range(100):
        offset, max_bytes = random.randrange(log.log_start_offset, end + 1), random.choice((0, 1, 700, 5_000, 1 << 30))
        at_once = reads.read_at_once(log, offset, max_bytes, one_at_least=True)
        cold = read(Reads(), log, offset, max_bytes)
        assert (bytes_of(at_once), at_once.size, at_once.next_offset) == (bytes_of(cold), cold.size, cold.next_offset)


def test_what_was_read_of_an_archive_whose_manifest_has_pages_is_at_hand_with_the_same_bytes(tmp_path: Path) -> None:
    folder, store = broker_logs(tmp_path, TXN), MemoryStore()
    offload_all(folder, store)
    path = path_of(local_logs(folder)[TXN])
    newest = load_newest(store, path)
    assert newest is not None
    limits = Limits(inline_max=1, page_entries=1, fan_out=8)
    writer = ManifestWriter(store, path, FixedClock(), CountingIds("f"), "writer", newest.manifest.writer_epoch, limits)
    archived = ArchivedLog(store, writer.commit(newest.manifest, lambda as_it_is: as_it_is))
    assert archived.manifest.pages
    reads, log, offset = Reads(), TieredLog(None, archived), archived.log_start_offset
    while offset < archived.end_offset:
        with pytest.raises(NotAtHand):
            reads.read_at_once(log, offset, 5_000, one_at_least=True)
        cold = read(reads, log, offset, 5_000)
        at_once = reads.read_at_once(log, offset, 5_000, one_at_least=True)
        assert (bytes_of(at_once), at_once.next_offset) == (bytes_of(cold), cold.next_offset)
        offset = next(e.end_offset for e in archived.entries if e.end_offset > offset)


def test_a_file_that_took_the_place_of_one_that_was_checked_is_not_taken_for_it(log: TieredLog) -> None:
    reads = Reads()
    read(reads, log, log.log_start_offset, 1 << 30)
    for offset, path in files_of(log).items():
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[70] ^= 1
        path.with_suffix(".new").write_bytes(damaged)
        shutil.copystat(path, path.with_suffix(".new"))
        os.replace(path.with_suffix(".new"), path)
        with pytest.raises(NotAtHand):
            reads.read_at_once(log, offset, 1, one_at_least=True)
        with pytest.raises(Corrupt, match="CRC"):
            read(reads, log, offset, 1)
        path.write_bytes(whole)
        assert bytes_of(read(reads, log, offset, 1 << 30)) == bytes_of(read(Reads(), log, offset, 1 << 30))


def test_a_file_that_was_deleted_is_missed(log: TieredLog) -> None:
    reads = Reads()
    read(reads, log, log.log_start_offset, 1 << 30)
    for offset, path in files_of(log).items():
        path.unlink()
        with pytest.raises((NotFound, Corrupt)) as of_read:
            read(reads, log, offset, 1)
        with pytest.raises((NotFound, Corrupt)) as at_once:
            reads.read_at_once(log, offset, 1, one_at_least=True)
        assert str(at_once.value) == str(of_read.value)


def test_a_file_is_opened_once_for_the_fetches_of_a_second(log: TieredLog, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, opened, find = Reads(), list[int](), TieredLog.batch_file
    read(reads, log, log.log_start_offset, 1 << 30)

    def found(self: TieredLog, offset: int, isolation: Isolation) -> BatchFile | None:
        opened.append(offset)
        return find(self, offset, isolation)

    monkeypatch.setattr(TieredLog, "batch_file", found)
    for start, path in files_of(log).items():
        opened.clear()
        for _ in range(3):
            assert reads.read_at_once(log, start + 1, 1, one_at_least=True).size
            assert reads.read_at_once(log, start, 1, one_at_least=True).size
        assert opened == [start + 1, start]
        path.unlink()
        assert bytes_of(reads.read_at_once(log, start, 1, one_at_least=True))
    reads.forget_recent()
    with pytest.raises((NotFound, Corrupt)):
        reads.read_at_once(log, log.log_start_offset, 1, one_at_least=True)
