"""Segments that are damaged or gone, and a store that fails wherever it can: what an offload makes of them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from archive_fakes import (
    WRITES,
    CountingIds,
    Crash,
    CrashesAt,
    Door,
    FailsBefore,
    FixedClock,
    LosesAnswer,
    MemoryStore,
    Nth,
    verbs,
)
from golden_logs import broker_logs
from logs_to_archive import copy_of, cut_finer, drop_segments_below, local_logs, offload_all, path_of, set_checkpoint
from made_manifests import assert_sound_archive
from one_offload import TXN, due_ranges, named, run

from local_log.errors import Conflict, Corrupt, Fenced, Unavailable, Unknown
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LEADER_EPOCH_CHECKPOINT
from local_log.formats.producer_snapshot import ProducerEntry, read_producer_snapshot
from local_log.log_reader import LogReader
from remote.manifest.segment_entry import PRODUCER_SNAPSHOT
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import claimed
from remote.read.log import ArchivedLog
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan


def flip(file: Path, position: int) -> None:
    body = bytearray(file.read_bytes())
    body[position] ^= 1
    file.write_bytes(body)


# damaged segments


def damage_log(folder: Path) -> Path:
    flip(folder / "00000000000000000102.log", 500_000)
    return folder / "00000000000000000102.log"


def tear_log(folder: Path) -> Path:
    file = folder / "00000000000000000102.log"
    os.truncate(file, file.stat().st_size - 1)
    return file


@pytest.mark.parametrize("damage", [damage_log, tear_log])
def test_a_damaged_segment_is_refused_and_leaves_a_named_gap_until_a_sound_copy_fills_it(
    tmp_path: Path, txn: Path, damage: Callable[[Path], Path]
) -> None:
    folder = copy_of(txn, tmp_path / "logs")
    log = local_logs(folder)[TXN]
    file = damage(folder / TXN)
    store = MemoryStore()
    results = run(store, log)
    assert [(done.entry is not None, done.error is not None) for done in results] == [
        (True, False),
        (False, True),
        (True, False),
        (False, False),
    ]
    error = results[1].error
    assert isinstance(error, Corrupt)
    assert str(file) in str(error)
    manifest = assert_sound_archive(store, path_of(log))
    assert named(manifest) == [(0, 102), (2_683, 2_744)]
    (gap,) = manifest.gaps
    assert (gap.start, gap.end, gap.noticed_at_ms) == (102, 2_683, FixedClock().now_ms())
    assert gap.reason == f"refused: {error}"

    store.calls.clear()
    (again,) = [done.error for done in run(store, log, prefix="b") if done.error]
    assert str(again) == str(error)
    assert WRITES.isdisjoint(verbs(store.calls))

    sound = local_logs(txn)[TXN]
    assert [done.error for done in run(store, sound, prefix="c") if done.error] == []
    filled = assert_sound_archive(store, path_of(log))
    assert (named(filled), filled.gaps) == ([(0, 102), (102, 2_683), (2_683, 2_744)], ())


# files beside the log: nothing of them is a reason to refuse the segment


@pytest.mark.parametrize(
    "name", ["00000000000000000102.index", "00000000000000000102.timeindex", "00000000000000002683.snapshot"]
)
@pytest.mark.parametrize("damage", ["missing", "cut", "flipped"])
def test_what_is_missing_or_broken_beside_a_log_is_made_anew_and_the_segment_reads_the_same(
    tmp_path: Path, txn: Path, name: str, damage: str
) -> None:
    folder = copy_of(txn, tmp_path / "logs")
    file = folder / TXN / name
    if damage == "missing":
        file.unlink()
    elif damage == "cut":
        os.truncate(file, file.stat().st_size - 3)
    else:
        flip(file, 20)
    store, sound = MemoryStore(), MemoryStore()
    log = local_logs(folder)[TXN]
    results = run(store, log)
    assert [done.error for done in results if done.error] == []
    told = [note for done in results for note in done.notes]
    assert len(told) == 1
    assert str(file) in told[0]
    assert "rebuilt" in told[0]
    run(sound, local_logs(txn)[TXN])
    ours, theirs = (ArchivedLog(s, assert_sound_archive(s, path_of(log))) for s in (store, sound))
    assert snapshot_at(ours, 102) == snapshot_at(theirs, 102)
    for offset in range(0, ours.end_offset, 97):
        assert first_offset(ours, offset) == first_offset(theirs, offset)
    times = range(1_700_000_000_000, 1_700_000_100_000, 7_000)
    assert [ours.offset_for_time(t, 0, 2_744) for t in times] == [theirs.offset_for_time(t, 0, 2_744) for t in times]


def first_offset(log: ArchivedLog, offset: int) -> int:
    return next(o for chunk in log.chunks(offset, log.end_offset) for o in chunk.batches.last_offset.tolist() if o >= offset)


def snapshot_at(log: ArchivedLog, base_offset: int) -> set[ProducerEntry]:
    """The producers of the snapshot archived with a segment, in no order."""
    (entry,) = [e for e in log.manifest.entries if e.base_offset == base_offset]
    where = entry.aux_ranges[PRODUCER_SNAPSHOT]
    return set(read_producer_snapshot(log.store.get_range(log.manifest.path.segment(entry.aux_name), where.start, where.end)))


def test_a_snapshot_that_the_log_cannot_give_is_left_out_and_said_so(tmp_path: Path, txn: Path) -> None:
    folder = copy_of(txn, tmp_path / "logs")
    drop_segments_below(folder, TXN, 102)
    for file in (folder / TXN).glob("*.snapshot"):
        file.unlink()
    log = local_logs(folder)[TXN]
    store = MemoryStore()
    results = run(store, log)
    assert [done.error for done in results if done.error] == []
    assert [len(done.notes) for done in results if done.entry] == [1, 1]
    assert all("does not reach back far enough" in note for done in results for note in done.notes)
    for entry in assert_sound_archive(store, path_of(log)).entries:
        assert PRODUCER_SNAPSHOT not in entry.aux_ranges


def test_segments_that_left_the_local_log_before_they_were_archived_are_a_named_gap(tmp_path: Path, txn: Path) -> None:
    folder = copy_of(txn, tmp_path / "logs")
    store = MemoryStore()
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, TXN, 110)
    log = local_logs(folder)[TXN]
    run(store, log)
    assert named(assert_sound_archive(store, path_of(log))) == [(0, 102)]
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, TXN, 3_706)
    drop_segments_below(folder, TXN, 2_683)
    later = local_logs(folder)[TXN]
    run(store, later, prefix="b")
    manifest = assert_sound_archive(store, path_of(log))
    assert named(manifest) == [(0, 102), (2_683, 2_744)]
    assert [(gap.start, gap.end) for gap in manifest.gaps] == [(102, 2_683)]
    assert "had left the local log before" in manifest.gaps[0].reason
    assert (manifest.log_start_offset, manifest.local_log_start_offsets) == (0, {"source": 2_683})


def test_a_log_of_another_history_is_not_archived_over_ours(tmp_path: Path, finer: Path) -> None:
    folder = copy_of(finer, tmp_path / "logs")
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-epochs-0", 1_000)
    store = MemoryStore()
    run(store, local_logs(folder)["g-epochs-0"])
    before = assert_sound_archive(store, path_of(local_logs(folder)["g-epochs-0"]))
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-epochs-0", 2_100)
    (folder / "g-epochs-0" / LEADER_EPOCH_CHECKPOINT).write_text("0\n3\n0 0\n2 650\n4 1400\n")
    results = run(store, local_logs(folder)["g-epochs-0"], prefix="b")
    (error,) = [done.error for done in results if done.error]
    assert isinstance(error, Conflict)
    assert assert_sound_archive(store, path_of(local_logs(folder)["g-epochs-0"])) == before


# a store that fails


@pytest.mark.parametrize("error", [Unavailable("down"), Unknown("no answer")], ids=str)
@pytest.mark.parametrize("verb", ["upload", "head", "list", "put_if_absent"])
def test_an_error_of_the_store_stops_the_log_and_is_reported(txn: Path, verb: str, error: Exception) -> None:
    log = local_logs(txn)[TXN]
    store = MemoryStore()
    due = plan(log, store)
    # From the second segment's upload on, the store is down for this verb.
    uploads = Nth("upload", 3)
    down = False

    def fails(called: str, key: str) -> bool:
        nonlocal down
        down = uploads(called, key) or down
        return down and called == verb

    door = FailsBefore(store, error, fails)
    results = list(offload(due, OffloadRun(door, FixedClock(), CountingIds(), "source", lambda _: None)))
    assert [(done.entry is not None, done.error is not None) for done in results] == [(True, False), (False, True)]
    # Listed is only what a commit has put: who cannot see whether it is in the chain does not know.
    assert type(results[-1].error) is (Unknown if verb == "list" else type(error))
    assert verbs(door.calls).count("upload") <= 4
    assert "delete" not in verbs(door.calls)
    assert named(assert_sound_archive(store, path_of(log))) == due_ranges(log)[: 2 if verb == "list" else 1]
    assert [done.error for done in run(store, log, prefix="b") if done.error] == []
    assert named(assert_sound_archive(store, path_of(log))) == due_ranges(log)


def test_a_fenced_writer_stops_before_the_next_segment(txn: Path) -> None:
    log = local_logs(txn)[TXN]
    store = MemoryStore()
    run(store, LogReader(log.disk, log.folder, log.partition, log.segments, 0, 150))
    due = plan(log, store)
    ManifestWriter(store, due.path, FixedClock(), CountingIds("c"), "other", 0).commit(due.manifest, claimed)
    results = list(offload(due, OffloadRun(store, FixedClock(), CountingIds("b"), "source", lambda _: None)))
    assert isinstance(results[-1].error, Fenced)
    assert sum(done.error is not None for done in results) == 1
    assert [done.error for done in run(store, log, prefix="d") if done.error] == []


def test_an_offload_whose_every_put_loses_its_answer_is_complete(txn: Path) -> None:
    log = local_logs(txn)[TXN]
    store = MemoryStore()
    assert [done.error for done in run(LosesAnswer(store, Nth("put_if_absent")), log) if done.error] == []
    manifest = assert_sound_archive(store, path_of(log))
    assert (named(manifest), manifest.version) == (due_ranges(log), 3)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_offload_that_dies_at_any_call_is_finished_by_the_next(tmp_path: Path, after: bool) -> None:
    folder = broker_logs(tmp_path, TXN, "g-compacted-txn-0")
    cut_finer(folder / "g-compacted-txn-0", 5)
    door = Door(MemoryStore())
    offload_all(folder, door)
    for number in range(1, len(door.calls) + 1):
        store = MemoryStore()
        with pytest.raises(Crash):
            offload_all(folder, CrashesAt(store, number, after=after), ids=CountingIds("a"))
        results = offload_all(folder, store, ids=CountingIds("b"))
        assert [done.error for done in results if done.error] == []
        for log in local_logs(folder).values():
            manifest = assert_sound_archive(store, path_of(log))
            assert named(manifest) == due_ranges(log), number
            assert manifest.gaps == ()
            assert manifest.version == len(manifest.entries)
