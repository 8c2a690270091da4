"""Plan, then copy and commit, segment by segment: of real logs, with a store that fails wherever it can."""

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
    RunsBetween,
    verbs,
)
from golden_logs import broker_logs, live, partitions
from logs_to_archive import (
    all_records,
    copy_of,
    cut_finer,
    drop_segments_below,
    finer_logs,
    local_logs,
    offload_all,
    path_of,
    set_checkpoint,
)
from made_manifests import assert_sound_archive

from local_log.errors import Corrupt, NotFound
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LEADER_EPOCH_CHECKPOINT
from local_log.log import LocalLog
from remote.errors import Conflict, Fenced, Unavailable, Unknown
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import claimed
from remote.object_store import ObjectStore
from tiering.offload import Done, offload, plan
from tiering.policy import Action

TXN = "g-txn-0"


@pytest.fixture(scope="module")
def finer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All golden partitions, cut into a dozen segments each."""
    return finer_logs(tmp_path_factory.mktemp("finer"))


@pytest.fixture(scope="module")
def txn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The transactions as their broker cut them: three inactive segments."""
    return broker_logs(tmp_path_factory.mktemp("txn"), TXN)


def due_ranges(log: LocalLog) -> list[tuple[int, int]]:
    """The inactive segments below the last stable offset that the broker itself told."""
    stable = live(str(log.partition))["last_stable_offset"]
    ranges = ((s.base_offset, s.next_base_offset) for s in log.segments)
    return [(base, end) for base, end in ranges if end is not None and log.log_start_offset < end <= stable]


def named(manifest: object) -> list[tuple[int, int]]:
    return [(e.base_offset, e.end_offset) for e in manifest.entries]  # type: ignore[attr-defined]


def run(store: ObjectStore, log: LocalLog, *, prefix: str = "", progress: Callable[[int], None] = lambda _: None) -> list[Done]:
    """Plans and offloads one log."""
    return list(offload(plan(log, store), store, FixedClock(), CountingIds(prefix), "source", progress))


def flip(file: Path, position: int) -> None:
    body = bytearray(file.read_bytes())
    body[position] ^= 1
    file.write_bytes(body)


# what is archived


@pytest.mark.parametrize("cut", ["as the broker cut it", "finer"])
def test_all_that_is_inactive_and_stable_is_archived_and_nothing_else(tmp_path: Path, finer: Path, cut: str) -> None:
    folder = finer if cut == "finer" else broker_logs(tmp_path)
    store = MemoryStore()
    results = offload_all(folder, store)
    assert [done.error for done in results if done.error] == []
    for name, log in local_logs(folder).items():
        ranges = due_ranges(log)
        if not ranges:
            assert load_newest(store, path_of(log)) is None
            continue
        manifest = assert_sound_archive(store, path_of(log))
        assert named(manifest) == ranges
        assert manifest.gaps == ()
        assert manifest.end_offset <= min(live(name)["last_stable_offset"], log.segments[-1].base_offset)
        assert manifest.log_start_offset == live(name)["earliest"][0]
        assert manifest.local_log_start_offsets == {"source": log.log_start_offset}
        bodies = (segment.read(".log") for segment in log.segments if (segment.base_offset, segment.next_base_offset) in ranges)
        assert [store.objects[path_of(log).segment(e.log_name)] for e in manifest.entries] == list(bodies)


def test_an_open_transaction_holds_its_segment_and_all_behind_it_back(finer: Path) -> None:
    log = local_logs(finer)[TXN]
    assert log.last_stable_offset == live(TXN)["last_stable_offset"] == 3_671
    decisions = plan(log, MemoryStore()).decisions
    assert [d.action for d in decisions if (d.segment.end_offset or 2**62) > 3_671] == ["keep"]
    # With the high watermark below a marker the transaction counts as open, from its first offset on.
    aborted = max(log.aborted(0, log.log_end_offset), key=lambda t: t.last_offset - t.first_offset)
    held = LocalLog(log.disk, log.folder, log.partition, log.segments, 0, aborted.last_offset)
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
        assert newest is None or newest.manifest.end_offset <= 900


def test_a_log_that_no_checkpoint_knows_is_not_known_to_be_replicated(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path, TXN)
    (folder / HIGH_WATERMARK_CHECKPOINT).unlink()
    store = MemoryStore()
    offload_all(folder, store)
    assert load_newest(store, path_of(local_logs(folder)[TXN])) is None


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


def test_progress_is_told_every_byte_that_is_read(txn: Path) -> None:
    log = local_logs(txn)[TXN]
    told: list[int] = []
    run(MemoryStore(), log, progress=told.append)
    assert sum(told) == 2 * sum(segment.size() for segment in log.segments[:-1])


# damaged segments


def damage_log(folder: Path) -> Path:
    flip(folder / "00000000000000000102.log", 500_000)
    return folder / "00000000000000000102.log"


def damage_index(folder: Path) -> Path:
    file = folder / "00000000000000000102.index"
    file.write_bytes(file.read_bytes()[:-3])
    return file


def remove_index(folder: Path) -> Path:
    file = folder / "00000000000000000102.timeindex"
    file.unlink()
    return file


def damage_snapshot(folder: Path) -> Path:
    flip(folder / "00000000000000002683.snapshot", 20)
    return folder / "00000000000000002683.snapshot"


def remove_log(folder: Path) -> Path:
    """The broker deletes it under our feet: the log was listed before."""
    (folder / "00000000000000000102.log").unlink()
    return folder / "00000000000000000102.log"


@pytest.mark.parametrize("damage", [damage_log, damage_index, remove_index, damage_snapshot, remove_log])
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
    assert isinstance(error, NotFound if damage is remove_log else Corrupt)
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
    results = list(offload(due, door, FixedClock(), CountingIds(), "source", lambda _: None))
    assert [(done.entry is not None, done.error is not None) for done in results] == [(True, False), (False, True)]
    assert type(results[-1].error) is type(error)
    assert verbs(door.calls).count("upload") <= 4
    assert "delete" not in verbs(door.calls)
    assert named(assert_sound_archive(store, path_of(log))) == [(0, 102)]
    assert [done.error for done in run(store, log, prefix="b") if done.error] == []
    assert named(assert_sound_archive(store, path_of(log))) == due_ranges(log)


def test_a_fenced_writer_stops_before_the_next_segment(txn: Path) -> None:
    log = local_logs(txn)[TXN]
    store = MemoryStore()
    run(store, LocalLog(log.disk, log.folder, log.partition, log.segments, 0, 150))
    due = plan(log, store)
    ManifestWriter(store, due.path, FixedClock(), CountingIds("c"), "other", 0).commit(due.manifest, claimed)
    results = list(offload(due, store, FixedClock(), CountingIds("b"), "source", lambda _: None))
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
