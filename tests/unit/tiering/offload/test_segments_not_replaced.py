"""What a log cleaner has not done takes the place of nothing in the archive: damage, losses, records of other logs."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from archive_fakes import MemoryStore, verbs
from keyed_logs import KeyedLog
from logs_to_archive import path_of
from replaced import archived_records, closed, errors, newest, records, run
from small_logs import opened

from local_log.errors import Corrupt
from local_log.formats.filenames import CLEANER_OFFSET_CHECKPOINT
from remote.manifest.model import Limits, Manifest
from remote.manifest.store import load_newest
from tiering.offload.removed_records import RemovedRecords

Damage = Callable[[KeyedLog, int], object]


def cut(log: KeyedLog, base: int) -> None:
    """The last batch is gone, whole batches are left, and the indexes still speak of it."""
    file = log.segment(base)
    size = next(iter(log.reader().segments[0].chunks())).batches.positions.tolist()[-1]
    file.write_bytes(file.read_bytes()[: int(size)])


def flip(log: KeyedLog, base: int) -> None:
    file = log.segment(base)
    body = bytearray(file.read_bytes())
    body[-1] ^= 1
    file.write_bytes(body)


def empty(log: KeyedLog, base: int) -> None:
    log.segment(base).write_bytes(b"")


def half(log: KeyedLog, base: int) -> None:
    file = log.segment(base)
    file.write_bytes(file.read_bytes()[:-7])


@pytest.mark.parametrize("damage", [cut, flip, empty, half])
def test_a_damaged_file_takes_the_place_of_nothing(log: KeyedLog, damage: Damage) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    before = newest(store, log)
    log.clean()
    damage(log, 0)
    log.fill(1, begin=6)
    done = run(store, log.reader(), "b")
    assert [type(e) for e in errors(done)] == [Corrupt]
    after = newest(store, log)
    reach = closed(log)[0][1]
    assert [e for e in after.entries if e.base_offset < reach] == [e for e in before.entries if e.base_offset < reach]
    assert all(d.item.base_offset >= reach for d in after.deleting)
    assert after.end_offset > before.end_offset, "what is new is archived all the same"


def lose(log: KeyedLog, base: int) -> None:
    """All files of a segment are gone."""
    log.log.close()
    for file in log.folder.glob(f"{base:020d}.*"):
        file.unlink()
    log.log = opened(log.folder, segment_bytes=log.segment_bytes)


def lost_after_cleaning(log: KeyedLog, store: MemoryStore) -> tuple[Manifest, int]:
    """A log whose second segment was lost after all of it was archived as it was cleaned; where that segment began."""
    run(store, log.reader(), "a")
    log.clean()
    assert errors(run(store, log.reader(), "b")) == []
    (first, base), _, *_ = closed(log)
    lose(log, base)
    assert closed(log)[0][0] == first
    assert closed(log)[0][1] > base
    return newest(store, log), base


def test_a_segment_whose_files_were_lost_is_not_taken_for_cleaned(log: KeyedLog) -> None:
    store = MemoryStore()
    before, base = lost_after_cleaning(log, store)
    was = archived_records(store, before)
    (error,) = errors(run(store, log.reader(), "c"))
    assert isinstance(error, Corrupt)
    (offset,) = [o for o, key, _ in was if base <= o < closed(log)[0][1]][:1]
    assert f"the archived record of offset {offset} is not in the log" in str(error)
    assert "restore them from a replica" in str(error)
    assert newest(store, log) == before


def test_a_cleaned_segment_that_reaches_past_the_archive_hides_no_loss(log: KeyedLog) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    log.clean()
    run(store, log.reader(), "b")
    before = newest(store, log)
    lose(log, closed(log)[-1][0])
    log.put((b"key-1", b"later"))
    log.log.roll()
    log.cleaned_to = 0
    log.clean()
    assert len(closed(log)) == 1
    for prefix, replaces in (("c", False), ("d", True)):
        (error,) = errors(run(store, log.reader(), prefix, replaces=replaces))
        assert "is not in the log, nor is a later record of its key" in str(error)
        assert newest(store, log).entries == before.entries


@pytest.fixture
def reaching(tmp_path: Path) -> Iterator[tuple[KeyedLog, MemoryStore]]:
    """A cleaned log, a segment of which reaches past the archive's end; the archive has a gap before that."""
    log, store = KeyedLog(tmp_path / "reaching"), MemoryStore()
    log.fill(5)
    body = log.segment(22).read_bytes()
    log.segment(22).write_bytes(body[:-1])
    assert [type(e) for e in errors(run(store, log.reader(), "a"))] == [Corrupt]
    log.segment(22).write_bytes(body)
    log.fill(2, begin=5)
    log.clean()
    assert (44, 66) in closed(log)
    assert (newest(store, log).end_offset, [(g.start, g.end) for g in newest(store, log).holes]) == (55, [(22, 33)])
    yield log, store
    log.log.close()


def test_a_cleaned_segment_that_reaches_past_the_archive_is_copied_where_it_lacks_no_key(
    reaching: tuple[KeyedLog, MemoryStore],
) -> None:
    log, store = reaching
    done = run(store, log.reader(), "b", replaces=False)
    assert [(d.entry.base_offset, d.entry.end_offset) for d in done if d.entry][:2] == [(22, 44), (44, 66)]
    assert errors(done) == []
    assert newest(store, log).holes == ()


def test_while_the_cleaner_is_at_work_a_segment_that_reaches_past_the_archive_waits(
    reaching: tuple[KeyedLog, MemoryStore],
) -> None:
    log, store = reaching
    log.checkpoint(CLEANER_OFFSET_CHECKPOINT, 45)
    done = run(store, log.reader(), "b", replaces=False)
    assert [d.decision.segment.base_offset for d in done if d.action == "skipped" and d.decision] == [44]
    assert errors(done) == []
    log.checkpoint(CLEANER_OFFSET_CHECKPOINT, log.cleaned_to)
    assert errors(run(store, log.reader(), "c", replaces=False)) == []
    assert newest(store, log).holes == ()


def test_what_was_lost_and_has_been_written_anew_since_is_replaced(log: KeyedLog) -> None:
    store = MemoryStore()
    before, base = lost_after_cleaning(log, store)
    lost = [(key or b"", b"anew") for o, key, _ in archived_records(store, before) if base <= o < closed(log)[0][1]]
    log.put(*lost)
    assert errors(run(store, log.reader(), "c")) == []
    assert base not in [e.base_offset for e in newest(store, log).entries]


@pytest.mark.parametrize("has_index", [True, False])
def test_an_aborted_record_takes_the_place_of_none(log: KeyedLog, has_index: bool) -> None:
    """Its transaction index may be lost: the marker says it as well."""
    store = MemoryStore()
    before, base = lost_after_cleaning(log, store)
    lost = [(key or b"", b"anew") for o, key, _ in archived_records(store, before) if base <= o < closed(log)[0][1]]
    log.put(*lost, producer_id=7, producer_epoch=0, base_sequence=0, attributes=0x10)
    log.end_transaction(7, commit=False)
    (index,) = log.folder.glob("*.txnindex")
    if not has_index:
        index.unlink()
    assert [type(e) for e in errors(run(store, log.reader(), "c"))] == [Corrupt]
    assert newest(store, log).entries[:2] == before.entries[:2]


def test_a_key_whose_tombstone_is_gone_as_well_may_go(log: KeyedLog) -> None:
    store = MemoryStore()
    log.put((b"only 0", None))
    log.log.roll()
    log.put((b"key-0", b"later"))
    log.log.roll()
    run(store, log.reader(), "a")
    for _ in range(2):
        log.clean()
        log.clock.now += 2 * 86_400_000
        log.put((b"key-1", b"later"))
        log.log.roll()
    assert not [key for _, key, _ in records(log.reader(), 0, closed(log)[-1][1]) if key == b"only 0"]
    assert errors(run(store, log.reader(), "b")) == []
    done = run(store, log.reader(), "c")
    assert errors(done) == []
    assert "replaced" in {d.action for d in done}


def test_keys_that_are_too_many_to_be_proved_leave_the_archive_as_it_is(log: KeyedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    before = newest(store, log)
    log.clean()
    monkeypatch.setattr(RemovedRecords.__init__, "__defaults__", (2,))
    done = run(store, log.reader(), "b")
    assert errors(done) == []
    assert any(d.action == "skipped" and "too many to prove" in d.reason for d in done)
    assert newest(store, log) == before


def test_a_segment_that_lacks_what_the_cleaner_has_not_come_to_is_skipped(log: KeyedLog) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    before = newest(store, log)
    log.clean()
    log.checkpoint(CLEANER_OFFSET_CHECKPOINT, 1)
    done = run(store, log.reader(), "b")
    assert errors(done) == []
    assert any(d.action == "skipped" and "its cleaner has only come to 1 " in d.reason for d in done)
    assert newest(store, log) == before


def test_a_log_that_no_cleaner_has_come_to_is_not_compared(log: KeyedLog) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    before = newest(store, log)
    log.clean()
    (log.root / CLEANER_OFFSET_CHECKPOINT).unlink()
    assert errors(run(store, log.reader(), "b")) == []
    (log.root / CLEANER_OFFSET_CHECKPOINT).write_bytes(b"damaged")
    assert errors(run(store, log.reader(), "c")) == []
    assert newest(store, log) == before


def test_records_that_the_archive_never_had_are_of_another_log(log: KeyedLog, tmp_path: Path) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    log.clean()
    run(store, log.reader(), "b")
    before = newest(store, log)
    other = KeyedLog(tmp_path / "other")
    other.put((b"key-0", b"of another log"))
    other.fill(5, keys=1)
    other.put(*[(b"key-0", b"")] * 10)
    other.log.roll()
    other.clean()
    (error,) = errors(run(store, other.reader(), "c"))
    assert "the archive has no record of offset" in str(error)
    assert newest(store, log) == before
    other.log.close()


def test_a_replica_that_was_cleaned_less_changes_nothing(log: KeyedLog, tmp_path: Path) -> None:
    store, replica = MemoryStore(), KeyedLog(tmp_path / "replica")
    replica.fill(6)
    run(store, log.reader(), "a")
    log.clean()
    run(store, log.reader(), "b")
    after = newest(store, log)
    replica.checkpoint(CLEANER_OFFSET_CHECKPOINT, 1)
    store.calls.clear()
    assert errors(run(store, replica.reader(), "c")) == []
    assert "upload" not in verbs(store.calls)
    assert newest(store, log).entries == after.entries
    replica.log.close()


def test_a_topic_without_an_id_is_not_compared(log: KeyedLog) -> None:
    store = MemoryStore()
    (log.folder / "partition.metadata").unlink()
    run(store, log.reader(), "a")
    log.clean()
    run(store, log.reader(), "b")
    manifest = load_newest(store, path_of(log.reader()))
    assert manifest is not None
    assert manifest.manifest.deleting == ()


def test_no_more_is_superseded_than_may_wait_to_be_deleted(log: KeyedLog) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    before = newest(store, log)
    log.clean()
    done = run(store, log.reader(), "b", limits=Limits(deleting_max=1))
    assert errors(done) == []
    assert any("Run tiering expire" in d.reason for d in done)
    assert newest(store, log) == before
