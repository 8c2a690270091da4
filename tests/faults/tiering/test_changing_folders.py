"""A broker that renames, deletes and compacts a segment while it is copied: noticed, skipped, never committed, and no error."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore, RunsBetween, verbs
from golden_logs import broker_logs
from logs_to_archive import copy_of, drop_segments_below, local_logs, path_of
from made_manifests import assert_sound_archive
from one_offload import TXN, due_ranges, named, run

from local_log.errors import Corrupt
from local_log.file_range import FileState, OpenedFile
from local_log.formats.primitives import Buffer
from local_log.formats.record_batch.batch_v2 import scan
from local_log.log_reader import LogReader, open_log
from local_log.os_disk import OsDisk
from remote.manifest.store import load_newest
from tiering.offload.copy import Done
from tiering.offload.plan import Action
from tiering.offload.run import OffloadLogs


@dataclass(frozen=True)
class BusyDisk(OsDisk):
    """A disk on which somebody does something just before the read of that number, of those of one segment's log file."""

    file: str
    number: int
    act: Callable[[], object]
    reads: list[int] = field(default_factory=list)

    def before_read(self, file: str, start: int) -> None:
        if file.endswith(self.file):
            self.reads.append(start)
            if len(self.reads) == self.number:
                self.act()

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        self.before_read(file, start)
        return super().read(file, start, end)

    def read_large(self, file: str, start: int, end: int) -> Buffer:
        return self.read(file, start, end)

    def open(self, file: str) -> "BusyFile":  # type: ignore[override]
        return BusyFile(super().open(file), partial(self.before_read, file))


@dataclass(frozen=True)
class BusyFile:
    """A file that stays open meanwhile."""

    opened: OpenedFile
    before_read: Callable[[int], None]

    def fileno(self) -> int:
        return self.opened.fileno()

    def mapped(self, start: int, end: int) -> memoryview | None:
        return self.opened.mapped(start, end)

    def read(self, start: int, end: int) -> bytes:
        self.before_read(start)
        return self.opened.read(start, end)

    read_large = read

    def state(self) -> FileState:
        return self.opened.state()


def deleted(folder: Path) -> None:
    """Retention: first the names, a minute later the files."""
    for file in [*folder.glob(f"{0:020d}.*"), *folder.glob(f"{102:020d}.*")]:
        file.rename(f"{file}.deleted")


def gone(folder: Path) -> None:
    for file in folder.glob(f"{102:020d}.*"):
        file.unlink()


def compacted(folder: Path) -> None:
    """The cleaner: another file takes the name. Its bytes are the same here, as those of a segment with nothing to remove."""
    log = folder / f"{102:020d}.log"
    cleaned = shutil.copy2(log, f"{log}.cleaned")
    swap = Path(cleaned).rename(f"{log}.swap")
    log.rename(f"{log}.deleted")
    swap.rename(log)


def compacted_shorter(folder: Path) -> None:
    log = folder / f"{102:020d}.log"
    body = log.read_bytes()
    batches, _ = scan(body)
    log.rename(f"{log}.deleted")
    log.write_bytes(body[: int(batches.end[len(batches) // 2])])


def merged(folder: Path) -> None:
    """The cleaner puts two segments into one."""
    one, two = folder / f"{102:020d}.log", folder / f"{2_683:020d}.log"
    body = one.read_bytes() + two.read_bytes()
    one.rename(f"{one}.deleted")
    for file in folder.glob(f"{2_683:020d}.*"):
        file.rename(f"{file}.deleted")
    one.write_bytes(body)


def truncated(folder: Path) -> None:
    """A follower whose leader had another history."""
    log = folder / f"{102:020d}.log"
    os.truncate(log, log.stat().st_size // 2)
    for file in [*folder.glob(f"{2_683:020d}.*"), *folder.glob(f"{2_744:020d}.*")]:
        file.rename(f"{file}.deleted")


CHANGES = [deleted, gone, compacted, compacted_shorter, merged, truncated]


def busy(folder: Path, number: int, act: Callable[[Path], None]) -> LogReader:
    sound = local_logs(folder)[TXN]
    disk = BusyDisk(f"{102:020d}.log", number, lambda: act(folder / TXN))
    return open_log(disk, sound.folder, sound.partition, sound.checkpointed_start, sound.checkpointed_high_watermark)


def actions(results: list[Done]) -> dict[int, str]:
    return {d.decision.segment.base_offset: d.decision.action for d in results if d.decision and not d.error}


@pytest.mark.parametrize(
    ("number", "change"),
    [
        *((number, change) for number in (2, 3) for change in CHANGES),
        *((1, change) for change in (deleted, gone, merged, truncated)),
    ],
)
def test_a_segment_that_changes_while_it_is_read_is_skipped_and_not_committed(
    tmp_path: Path, txn: Path, number: int, change: Callable[[Path], None]
) -> None:
    """Read 1 looks for transactions that the segment before left open; 2 is the check, 3 the upload.

    (One that is compacted before its own copy begins is copied as it is then.)
    """
    folder = copy_of(txn, tmp_path / "logs")
    log = busy(folder, number, change)
    assert log.last_stable_offset >= 2_744
    store = MemoryStore()
    results = run(store, log)
    assert [d.error for d in results if d.error] == []
    disk = log.disk
    assert isinstance(disk, BusyDisk)
    assert len(disk.reads) >= number
    (skipped,) = [d for d in results if d.decision and d.decision.segment.base_offset == 102]
    assert skipped.decision is not None
    assert skipped.decision.action is Action.skipped
    assert skipped.entry is None
    assert "offload again" in skipped.decision.reason or "in the meantime" in skipped.decision.reason
    manifest = assert_sound_archive(store, path_of(log))
    assert all(e.base_offset != 102 for e in manifest.entries)
    assert [g.reason.startswith("skipped: ") for g in manifest.gaps] == [True] * len(manifest.gaps)


@pytest.mark.parametrize("change", [deleted, compacted, merged])
def test_the_next_offload_takes_what_is_there_then(tmp_path: Path, txn: Path, change: Callable[[Path], None]) -> None:
    folder = copy_of(txn, tmp_path / "logs")
    store = MemoryStore()
    run(store, busy(folder, 3, change))
    log = local_logs(folder)[TXN]
    results = run(store, log, prefix="b")
    assert [d.error for d in results if d.error] == []
    manifest = assert_sound_archive(store, path_of(log))
    if change is deleted:
        assert named(manifest) == [(0, 102), (2_683, 2_744)]
        assert manifest.local_log_start_offsets == {"source": 2_683}
        assert [(g.start, g.end) for g in manifest.gaps] == [(102, 2_683)]
    else:
        assert [(s.base_offset, s.next_base_offset) for s in log.segments[:-1]][-1] in named(manifest)
        assert manifest.gaps == ()
        assert "102" in str(manifest.entries[1].log_name)


@pytest.mark.parametrize("change", CHANGES)
def test_a_segment_that_changes_at_any_call_of_the_store_is_skipped_or_whole(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    """Until the last look at the folder nothing is committed; after it, what was verified is."""
    calls = len(quiet(tmp_path / "quiet"))
    seen = set()
    for number in range(1, calls + 1):
        folder = broker_logs(tmp_path / str(number), TXN)
        log = local_logs(folder)[TXN]
        store = MemoryStore()
        door = RunsBetween(store, {number: lambda folder=folder: change(folder / TXN)})
        results = list(OffloadLogs(door, FixedClock(), CountingIds(), "source", lambda _: None).offload(log))
        assert [d.error for d in results if d.error] == [], number
        if load_newest(store, path_of(log)) is not None:
            assert set(named(assert_sound_archive(store, path_of(log)))) <= set(due_ranges(log))
        seen.add(actions(results).get(102, Action.skipped))
        shutil.rmtree(folder)
    assert seen == {Action.skipped, Action.copy}


def quiet(folder: Path) -> list[str]:
    store = MemoryStore()
    run(store, local_logs(broker_logs(folder, TXN))[TXN])
    return verbs(store.calls)


def test_a_log_whose_beginning_is_deleted_between_listing_and_copy_is_archived_from_where_it_starts_now(
    tmp_path: Path, txn: Path
) -> None:
    folder = copy_of(txn, tmp_path / "logs")
    log = local_logs(folder)[TXN]
    drop_segments_below(folder, TXN, 2_683)
    store = MemoryStore()
    results = run(store, log)
    assert [d.error for d in results if d.error] == []
    assert actions(results) == {0: "skipped", 102: "skipped", 2_683: "copy", 2_744: "keep"}
    manifest = assert_sound_archive(store, path_of(log))
    assert named(manifest) == [(2_683, 2_744)]


@pytest.mark.parametrize("suffix", [".cleaned", ".swap"])
def test_what_a_cleaner_makes_of_other_segments_stops_nothing(tmp_path: Path, txn: Path, suffix: str) -> None:
    folder = copy_of(txn, tmp_path / "logs")
    log = local_logs(folder)[TXN]
    for base in (0, 102, 2_683):
        (folder / TXN / f"{base:020d}.log{suffix}").write_bytes(b"half written")
    store = MemoryStore()
    assert [d.error for d in run(store, log) if d.error] == []
    assert named(assert_sound_archive(store, path_of(log))) == due_ranges(log)


def test_a_copy_that_has_not_looked_at_the_folder_again_would_be_found_out(
    tmp_path: Path, txn: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: nobody looks at the folder after the copy. The checks above see it."""
    monkeypatch.setattr("tiering.offload.copy._refuse_changed", lambda *_: None)
    folder = copy_of(txn, tmp_path / "logs")
    results = run(MemoryStore(), busy(folder, 3, compacted))
    with pytest.raises(AssertionError):
        assert actions(results)[102] == Action.skipped


def test_a_log_file_that_somebody_has_deleted_by_hand_is_damage_the_next_time(tmp_path: Path, txn: Path) -> None:
    folder = copy_of(txn, tmp_path / "logs")
    (folder / TXN / f"{102:020d}.log").unlink()
    results = run(MemoryStore(), local_logs(folder)[TXN])
    (error,) = [d.error for d in results if d.error]
    assert isinstance(error, Corrupt)
    assert "has lost its log file (offset 102)" in str(error)
