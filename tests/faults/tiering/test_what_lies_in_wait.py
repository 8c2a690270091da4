"""Directories as a lagging replica, a cleaner in the middle of its work, a torn disk and a failing one leave them."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore, verbs
from golden_logs import broker_logs, live
from logs_to_archive import copy_of, local_logs, offload_all, path_of, set_checkpoint

from local_log.errors import Conflict, Corrupt, Unreadable
from local_log.formats.indexes.transaction import AbortedTxn, write_txn_index
from local_log.formats.primitives import Buffer
from local_log.log_reader import LogReader, open_log
from local_log.os_disk import OsDisk
from local_log.segment_reader import Segment
from remote.manifest.store import load_newest
from remote.read.log import ArchivedLog
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan
from tiering.offload.plan import Action
from tiering.read.tiered_log import Isolation, TieredLog

NONE, TXN = "g-codec-none-0", "g-txn-0"


@pytest.fixture
def logs(finer: Path, tmp_path: Path) -> Path:
    return copy_of(finer, tmp_path / "logs")


def archived(store: MemoryStore, folder: Path, partition: str) -> ArchivedLog:
    newest = load_newest(store, path_of(local_logs(folder)[partition]))
    assert newest is not None
    return ArchivedLog(store, newest.manifest)


def offsets(log: TieredLog, start: int = 0, isolation: Isolation = Isolation.read_uncommitted) -> list[int]:
    return [o for batch in log.read(start, isolation=isolation) for o in batch.column("offset").to_pylist()]


@pytest.mark.parametrize("behind", [0, 100, 800])
def test_what_a_lagging_replica_does_not_know_to_be_final_comes_from_the_archive(finer: Path, logs: Path, behind: int):
    store = MemoryStore()
    offload_all(finer, store)
    sound = archived(store, finer, NONE)
    set_checkpoint(logs / "replication-offset-checkpoint", NONE, behind)
    log = TieredLog(local_logs(logs)[NONE], sound)
    assert offsets(log) == list(range(sound.end_offset))
    assert offsets(log, sound.end_offset - 7) == list(range(sound.end_offset - 7, sound.end_offset))
    assert log.offset_for_time(1_700_000_500_000) == TieredLog(local_logs(finer)[NONE], sound).offset_for_time(1_700_000_500_000)


@pytest.mark.parametrize("left", [".index", ".timeindex", ".swap", ".cleaned"])
def test_a_segment_is_not_archived_while_traces_of_another_lie_behind_it(logs: Path, left: str):
    folder = logs / NONE
    first, second, *_ = sorted(int(f.stem) for f in folder.glob("*.log"))
    for file in folder.glob(f"{second:020d}.*"):
        if file.suffix in (".swap", ".cleaned") or file.suffix != left:
            file.unlink()
    if left in (".swap", ".cleaned"):
        (folder / f"{second:020d}.log{left}").touch()
    store = MemoryStore()
    refused = [d for d in offload_all(logs, store) if isinstance(d.error, Corrupt)]
    assert next(d.decision.segment.base_offset for d in refused if d.decision) == first
    assert str(folder) in str(refused[0].error)


def test_an_inactive_segment_that_is_torn_is_not_passed_over(logs: Path):
    file = sorted((logs / NONE).glob("*.log"))[1]
    os.truncate(file, file.stat().st_size // 2)
    log = TieredLog(local_logs(logs)[NONE], None)
    with pytest.raises(Corrupt, match="no whole batch") as caught:
        offsets(log)
    assert caught.value.file == str(file)


def crossing_abort(log: LogReader) -> tuple[Segment, AbortedTxn]:
    """An inactive segment with the marker of an aborted transaction that began in an earlier one."""
    return next(
        (segment, aborted)
        for segment in log.segments
        for aborted in segment.aborted()
        if aborted.first_offset < segment.base_offset and segment.next_base_offset is not None
    )


@pytest.mark.parametrize("left", ["the other aborts", "nothing"])
def test_a_transaction_index_that_lacks_an_abort_begun_in_an_earlier_segment_is_made_anew(tmp_path: Path, left: str):
    """The snapshot where the segment starts says whose transactions are open there; the log itself says how they ended."""
    logs = broker_logs(tmp_path, TXN)
    sound, broken = MemoryStore(), MemoryStore()
    offload_all(logs, sound)
    log = local_logs(logs)[TXN]
    segment, aborted = crossing_abort(log)
    file = Path(segment.path(".txnindex"))
    if left == "nothing":
        file.unlink()
    else:
        file.write_bytes(write_txn_index(t for t in segment.aborted() if t != aborted))
    done = offload_all(logs, broken)
    assert [d.error for d in done if d.error] == []
    (mended,) = [d for d in done if d.notes]
    assert mended.decision is not None
    assert mended.decision.segment.base_offset == segment.base_offset
    assert f"lacks the abort at offset {aborted.last_offset}" in mended.notes[0]
    assert {key: body for key, body in broken.objects.items() if "/segments/" in key} == {
        key: body for key, body in sound.objects.items() if "/segments/" in key
    }


def test_a_log_of_another_history_is_refused_before_anything_is_copied(finer: Path, logs: Path):
    store = MemoryStore()
    offload_all(finer, store)
    # The same topic goes on, as a replica has it that was never told of the archive's epochs.
    partition = "g-epochs-0"
    newest = archived(store, finer, partition).manifest
    fewer = [line for line in (logs / partition / "leader-epoch-checkpoint").read_text().splitlines() if line != "2 700"]
    fewer[1] = str(len(fewer) - 2)
    (logs / partition / "leader-epoch-checkpoint").write_text("\n".join([*fewer, ""]))
    log = local_logs(logs)[partition]
    end = log.log_end_offset
    for suffix in (".log", ".index", ".timeindex"):
        (logs / partition / f"{end:020d}{suffix}").touch()
    before = dict(store.objects)
    found = [d for d in offload_all(logs, store) if isinstance(d.error, Conflict)]
    assert len(found) == 1
    assert archived(store, finer, partition).manifest == newest
    assert {k for k in store.objects if k not in before and k.startswith("g-epochs/")} == set()


@dataclass(frozen=True)
class FailingDisk(OsDisk):
    """A disk on which one file cannot be read."""

    file: str

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        if file.endswith(self.file):
            raise Unreadable(f"{file}: {OSError(errno.EIO, 'Input/output error')}")
        return super().read(file, start, end)

    def read_large(self, file: str, start: int, end: int) -> Buffer:
        return self.read(file, start, end)


def test_a_file_that_cannot_be_read_names_itself_and_stops_only_its_segment(finer: Path):
    base = sorted(int(f.stem) for f in (finer / NONE).glob("*.log"))[1]
    sound = local_logs(finer)[NONE]
    disk = FailingDisk(f"{base:020d}.log")
    log = open_log(disk, sound.folder, sound.partition, 0, sound.high_watermark)
    store = MemoryStore()
    done = list(offload(plan(log, store), OffloadRun(store, FixedClock(), CountingIds(), "s", lambda _: None)))
    assert [type(d.error) for d in done if d.error] == [Unreadable]
    assert sum(d.entry is not None for d in done) > 3
    assert "delete" not in verbs(store.calls)


def test_a_directory_where_a_file_should_be_is_unreadable_by_name(tmp_path: Path):
    (tmp_path / "folder.log").mkdir()
    with pytest.raises(Unreadable, match=r"folder\.log"):
        OsDisk().read(str(tmp_path / "folder.log"))


def test_everything_that_is_due_in_the_finer_logs_is_sound(finer: Path):
    assert [d.error for d in offload_all(finer, MemoryStore()) if d.error] == []
    assert {d.action for log in local_logs(finer).values() for d in plan(log, MemoryStore()).decisions} >= {Action.copy}
    assert live(NONE)["latest"][0] == 2500
