"""Plan, then copy and commit, segment by segment: what of real logs is archived, at first, again and at once."""

from pathlib import Path

import pytest
from archive_fakes import WRITES, CountingIds, Door, MemoryStore, RunsBetween, verbs
from golden_logs import broker_logs, live, partitions
from logs_to_archive import all_records, copy_of, drop_segments_below, local_logs, offload_all, path_of, set_checkpoint
from made_manifests import assert_sound_archive
from one_offload import TXN, due_ranges, named, run

from local_log.formats.checkpoints import EpochEntry
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.log_reader import LogReader
from remote.manifest.store import load_newest
from tiering.offload.due import plan
from tiering.offload.plan import Action

# what is archived


def assert_only_seen(store: MemoryStore, log: LogReader) -> None:
    """Nothing of the log is archived, and where it starts and ends is known."""
    manifest = assert_sound_archive(store, path_of(log))
    assert (manifest.only_seen, manifest.segment_count, manifest.version) == (True, 0, 1)
    assert manifest.log_start_offset == manifest.end_offset == log.log_start_offset
    assert manifest.local_log_start_offsets == {"source": log.log_start_offset}
    assert manifest.local_log_end_offsets == {"source": log.log_end_offset}


@pytest.mark.parametrize("cut", ["as the broker cut it", "finer"])
@pytest.mark.slow
def test_all_that_is_inactive_and_stable_is_archived_and_nothing_else(tmp_path: Path, finer: Path, cut: str) -> None:
    folder = finer if cut == "finer" else broker_logs(tmp_path)
    store = MemoryStore()
    results = offload_all(folder, store)
    assert [done.error for done in results if done.error] == []
    for name, log in local_logs(folder).items():
        ranges = due_ranges(log)
        if not ranges:
            assert_only_seen(store, log)
            continue
        manifest = assert_sound_archive(store, path_of(log))
        assert named(manifest) == ranges
        assert manifest.gaps == ()
        assert manifest.end_offset <= min(live(name)["last_stable_offset"], log.segments[-1].base_offset)
        assert manifest.log_start_offset == live(name)["earliest"][0]
        assert manifest.local_log_start_offsets == {"source": log.segments[0].base_offset}
        bodies = (segment.read(".log") for segment in log.segments if (segment.base_offset, segment.next_base_offset) in ranges)
        assert [store.objects[path_of(log).segment(e.log_name)] for e in manifest.entries] == list(bodies)


def test_an_open_transaction_holds_its_segment_and_all_behind_it_back(finer: Path) -> None:
    log = local_logs(finer)[TXN]
    assert log.last_stable_offset == live(TXN)["last_stable_offset"] == 3_671
    decisions = plan(log, MemoryStore()).decisions
    assert [d.action for d in decisions if (d.segment.end_offset or 2**62) > 3_671] == ["keep"]
    # With the high watermark below a marker the transaction counts as open, from its first offset on.
    aborted = max(log.aborted(0, log.log_end_offset), key=lambda t: t.last_offset - t.first_offset)
    held = LogReader(log.disk, log.folder, log.partition, log.segments, 0, aborted.last_offset)
    assert held.last_stable_offset <= aborted.first_offset
    ends = [d.segment.end_offset for d in plan(held, MemoryStore()).decisions if d.action is Action.copy]
    assert all(end is not None and end <= aborted.first_offset for end in ends)


def test_nothing_above_the_high_watermark_is_archived(tmp_path: Path, finer: Path) -> None:
    folder = copy_of(finer, tmp_path / "logs")
    for name in partitions():
        set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, name, 900)
    store = MemoryStore()
    offload_all(folder, store)
    for log in local_logs(folder).values():
        newest = load_newest(store, path_of(log))
        assert newest is not None
        assert newest.manifest.only_seen or newest.manifest.end_offset <= 900


def test_a_log_that_no_checkpoint_knows_is_not_known_to_be_replicated(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path, TXN)
    (folder / HIGH_WATERMARK_CHECKPOINT).unlink()
    store = MemoryStore()
    offload_all(folder, store)
    assert_only_seen(store, local_logs(folder)[TXN])


@pytest.mark.slow
def test_entries_say_what_their_records_say(finer: Path) -> None:
    store = MemoryStore()
    offload_all(finer, store)
    for log in local_logs(finer).values():
        newest = load_newest(store, path_of(log))
        if newest is None:
            continue
        records = all_records(log)
        offsets, times = records.column("offset").to_numpy(), records.column("timestamp").to_numpy()
        for e in newest.manifest.entries:
            inside = (offsets >= e.base_offset) & (offsets < e.end_offset)
            assert e.record_count == inside.sum()
            assert e.base_offset <= e.last_offset < e.end_offset
            assert e.max_timestamp_ms >= times[inside].max(initial=-1)


def test_the_lineage_grows_with_the_archive(finer: Path) -> None:
    log = local_logs(finer)["g-epochs-0"]
    store = MemoryStore()
    run(store, log)
    manifest = assert_sound_archive(store, path_of(log))
    assert manifest.leader_epochs == (EpochEntry(0, 0), EpochEntry(2, 700), EpochEntry(4, 1_400))
    inside = [epoch for e in manifest.entries for epoch in e.leader_epochs]
    assert sorted({e.epoch for e in inside}) == [0, 2, 4]
    assert {(e.epoch, e.start_offset) for e in inside} >= {(0, 0), (2, 700), (4, 1_400)}


# again and at once


def test_a_second_offload_uploads_nothing(finer: Path) -> None:
    store = MemoryStore()
    offload_all(finer, store)
    before = dict(store.objects)
    store.calls.clear()
    results = offload_all(finer, store, ids=CountingIds("b"))
    assert {done.decision.action for done in results if done.decision} == {Action.archived, Action.keep}
    assert WRITES.isdisjoint(verbs(store.calls))
    assert store.objects == before


@pytest.mark.slow
def test_what_has_become_stable_since_is_all_that_a_later_offload_copies(tmp_path: Path, finer: Path) -> None:
    folder = copy_of(finer, tmp_path / "logs")
    store, ids = MemoryStore(), CountingIds()
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, TXN, 1_300)
    offload_all(folder, store, ids=ids)
    log = local_logs(folder)[TXN]
    before = assert_sound_archive(store, path_of(log))
    assert 0 < before.end_offset <= 1_300
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, TXN, 3_706)
    store.calls.clear()
    offload_all(folder, store, ids=ids)
    after = assert_sound_archive(store, path_of(log))
    assert after.entries[: len(before.entries)] == before.entries
    assert named(after) == due_ranges(log)
    assert verbs(store.calls).count("upload") == 2 * (len(after.entries) - len(before.entries))


def test_a_local_log_start_that_has_moved_is_told_to_the_manifest_once(tmp_path: Path, txn: Path) -> None:
    folder = copy_of(txn, tmp_path / "logs")
    store = MemoryStore()
    run(store, local_logs(folder)[TXN])
    drop_segments_below(folder, TXN, 2_683)
    log = local_logs(folder)[TXN]
    for _ in range(2):
        assert [done.error for done in run(store, log, prefix="b") if done.error] == []
        manifest = assert_sound_archive(store, path_of(log))
        assert (manifest.version, manifest.local_log_start_offsets) == (4, {"source": 2_683})
    assert named(manifest) == [(0, 102), (102, 2_683), (2_683, 2_744)]


def test_two_offloads_at_once_name_each_segment_once(txn: Path) -> None:
    log = local_logs(txn)[TXN]
    door = Door(MemoryStore())
    run(door, log)
    for number in range(1, len(door.calls) + 1):
        store = MemoryStore()
        other = RunsBetween(store, {number: lambda store=store: run(store, log, prefix="b")})
        results = run(other, log, prefix="a")
        assert [done.error for done in results if done.error] == []
        manifest = assert_sound_archive(store, path_of(log))
        assert named(manifest) == due_ranges(log), number
        assert manifest.gaps == ()


def test_a_plan_writes_nothing(finer: Path) -> None:
    store = MemoryStore()
    for log in local_logs(finer).values():
        plan(log, store)
    assert WRITES.isdisjoint(verbs(store.calls))
    assert store.objects == {}


def test_progress_is_told_every_byte_that_is_sent_once(txn: Path) -> None:
    log = local_logs(txn)[TXN]
    told: list[int] = []
    run(MemoryStore(), log, progress=told.append)
    assert sum(told) == sum(segment.size() for segment in log.segments[:-1])
