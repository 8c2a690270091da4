"""A compacted topic that is archived, cleaned and archived again: what was cleaned takes the place of what was archived of it."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore, verbs
from encodings_to_try import ENCODED, KEYS, transforms
from keyed_logs import KeyedLog
from logs_to_archive import path_of
from made_manifests import assert_sound_archive, assert_sound_chain
from small_logs import opened

from local_log.errors import Corrupt, NoKey
from local_log.formats.filenames import CLEANER_OFFSET_CHECKPOINT
from local_log.log_reader import LogReader
from remote.manifest.entries import Entries
from remote.manifest.gaps import COMPACTED
from remote.manifest.model import Limits, Manifest
from remote.manifest.store import load_newest, load_version
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.encoder import Transforms
from tiering.offload.copy import Done, OffloadRun, offload, plan
from tiering.offload.plan import Action
from tiering.offload.removed_records import RemovedRecords

SMALL = Limits(inline_max=2, page_entries=2, fan_out=2)
Record = tuple[int, bytes | None, bytes | None]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[KeyedLog]:
    log = KeyedLog(tmp_path / "logs")
    log.fill(6)
    yield log
    log.log.close()


def run(store: ObjectStore, log: LogReader, prefix: str, *, replaces: bool = True, limits: Limits = Limits()) -> list[Done]:  # noqa: B008
    due = plan(log, store, replaces=replaces)
    return list(offload(due, OffloadRun(store, FixedClock(), CountingIds(prefix), "source", lambda _: None, limits=limits)))


def errors(done: list[Done]) -> list[Exception]:
    return [d.error for d in done if d.error]


def newest(store: MemoryStore, log: KeyedLog) -> Manifest:
    return assert_sound_chain(store, path_of(log.reader()))


def records(log: LogReader | ArchivedLog, start: int, end: int) -> list[Record]:
    found: list[Record] = []
    for chunk in log.chunks(start, end):
        for _, batch in chunk.records():
            found += [(row["offset"], row["key"], row["value"]) for row in batch.to_pylist()]
    return [row for row in found if start <= row[0] < end]


def archived_records(store: MemoryStore, manifest: Manifest) -> list[Record]:
    return records(ArchivedLog(store, manifest), manifest.log_start_offset, manifest.end_offset)


def ranges(manifest: Manifest) -> list[tuple[int, int]]:
    return [(e.base_offset, e.end_offset) for e in manifest.entries]


def closed(log: KeyedLog) -> list[tuple[int, int]]:
    return [(s.base_offset, s.next_base_offset) for s in log.reader().segments if s.next_base_offset is not None]


def assert_as_local(store: MemoryStore, log: KeyedLog) -> Manifest:
    """The archive has the records of the local log, and no others."""
    manifest = newest(store, log)
    assert archived_records(store, manifest) == records(log.reader(), 0, manifest.end_offset)
    assert manifest.end_offset == closed(log)[-1][1]
    assert manifest.holes == ()
    return manifest


def test_segments_that_were_cleaned_take_the_place_of_those_that_were_archived(log: KeyedLog) -> None:
    store = MemoryStore()
    assert errors(run(store, log.reader(), "a")) == []
    before = newest(store, log)
    log.clean()
    assert len(closed(log)) < len(before.entries)
    done = run(store, log.reader(), "b")
    assert errors(done) == []
    replaced = [d for d in done if d.action == "replaced"]
    assert {d.action for d in done} <= {"replaced", "archived", "keep"}
    assert "compacted since it was archived" in replaced[0].reason
    after = assert_as_local(store, log)
    assert ranges(after) == closed(log)
    assert after.version == before.version + len(replaced), "one commit for each group of segments"
    assert [d.item for d in after.deleting] == [e for e in before.entries if e not in after.entries]
    assert after.log_bytes < before.log_bytes
    assert_sound_archive(store, after.path)


def test_a_second_run_asks_for_no_more_than_one_that_has_nothing_to_do(log: KeyedLog) -> None:
    store = MemoryStore()
    for prefix in ("a", "b"):
        run(store, log.reader(), prefix)
        store.calls.clear()
        run(store, log.reader(), f"{prefix}-again")
        assert verbs(store.calls) == ["list", "get"]
        log.clean()


def test_a_log_whose_cleaner_took_nothing_away_is_left_as_it_is(tmp_path: Path) -> None:
    log, store = KeyedLog(tmp_path), MemoryStore()
    log.fill(4, keys=1_000)
    run(store, log.reader(), "a")
    before = newest(store, log)
    log.clean()
    assert len(closed(log)) < len(before.entries), "the segments are joined"
    store.calls.clear()
    assert {d.action for d in run(store, log.reader(), "b")} == {"archived", "keep"}
    assert verbs(store.calls) == ["list", "get"]
    assert newest(store, log) == before


def test_what_was_archived_stays_unless_it_is_to_be_replaced(log: KeyedLog) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    before = newest(store, log)
    log.clean()
    store.calls.clear()
    assert {d.action for d in run(store, log.reader(), "b", replaces=False)} == {"archived", "keep"}
    assert verbs(store.calls) == ["list", "get"]
    assert newest(store, log) == before


def test_a_dry_run_names_what_would_be_replaced(log: KeyedLog) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    log.clean()
    decisions = plan(log.reader(), store, replaces=True).decisions
    assert {d.action for d in decisions} == {Action.replace_archived, Action.keep}


def test_round_after_round_the_archive_follows_the_log(tmp_path: Path) -> None:
    log, store = KeyedLog(tmp_path, segment_bytes=1_200), MemoryStore()
    for n in range(5):
        log.fill(3, keys=3 + n, begin=3 * n)
        assert errors(run(store, log.reader(), f"a{n}", limits=SMALL)) == []
        log.clean(memory=24 * 9)
        assert errors(run(store, log.reader(), f"b{n}", limits=SMALL)) == []
        assert_as_local(store, log)
        manifest = newest(store, log)
        assert sum(e.log_size for e in Entries.of(store, manifest)) == sum(
            log.segment(base).stat().st_size for base, _ in closed(log)
        )


def test_entries_in_pages_are_replaced_and_quiet_pages_are_not_read(tmp_path: Path) -> None:
    log, store = KeyedLog(tmp_path, segment_bytes=700), MemoryStore()
    log.fill(8, keys=1_000)
    log.fill(4, keys=2, begin=8)
    run(store, log.reader(), "a", limits=SMALL)
    assert len(newest(store, log).pages) > 0
    log.checkpoint(CLEANER_OFFSET_CHECKPOINT, 60)
    store.calls.clear()
    run(store, log.reader(), "b", limits=SMALL)
    assert verbs(store.calls) == ["list", "get"], "a page is held against the log by its count and bytes"
    log.clean()
    assert errors(run(store, log.reader(), "c", limits=SMALL)) == []
    assert_as_local(store, log)
    store.calls.clear()
    run(store, log.reader(), "d", limits=SMALL)
    assert verbs(store.calls)[:2] == ["list", "get"]
    assert not {"upload", "put_if_absent"} & set(verbs(store.calls))


def test_segments_without_a_batch_are_said_to_be_emptied_and_not_lost(tmp_path: Path) -> None:
    log, store = KeyedLog(tmp_path, segment_bytes=1_000), MemoryStore()
    log.fill(2, keys=1)
    log.put((b"only 0", b"once more"))
    log.fill(3, keys=1_000, begin=2)
    run(store, log.reader(), "a")
    before = newest(store, log)
    base, end = closed(log)[0]
    for suffix in (".log", ".index", ".timeindex"):
        log.segment(base, suffix).write_bytes(b"")
    log.checkpoint(CLEANER_OFFSET_CHECKPOINT, before.end_offset)
    done = run(store, log.reader(), "b")
    assert errors(done) == []
    after = newest(store, log)
    assert [(g.start, g.end, g.kind) for g in after.gaps] == [(base, end, COMPACTED)]
    assert [d.item for d in after.deleting] == [before.entries[0]]
    assert archived_records(store, after) == records(log.reader(), 0, after.end_offset)
    store.calls.clear()
    assert {d.action for d in run(store, log.reader(), "c")} == {"archived", "keep"}
    assert {d.action for d in run(store, log.reader(), "d", replaces=False)} <= {"archived", "keep"}
    assert verbs(store.calls) == ["list", "get"] * 2


def test_the_last_archived_segment_is_not_given_up_for_nothing(log: KeyedLog) -> None:
    """The archive would end earlier: it waits for segments after it."""
    store = MemoryStore()
    run(store, log.reader(), "a")
    before = newest(store, log)
    for suffix in (".log", ".index", ".timeindex"):
        log.segment(closed(log)[-1][0], suffix).write_bytes(b"")
    log.checkpoint(CLEANER_OFFSET_CHECKPOINT, before.end_offset)
    run(store, log.reader(), "b")
    assert newest(store, log).end_offset == before.end_offset


def test_a_cleaned_segment_with_offsets_that_the_archive_lacks_is_copied_first(tmp_path: Path) -> None:
    """It overlaps what is archived until the next run gives that up."""
    log, store = KeyedLog(tmp_path), MemoryStore()
    log.fill(3)
    run(store, log.reader(), "a")
    log.fill(3, begin=3)
    log.clean()
    assert "copied" in {d.action for d in run(store, log.reader(), "b")}
    manifest = newest(store, log)
    assert (manifest.end_offset, manifest.gaps) == (closed(log)[-1][1], ())
    assert errors(run(store, log.reader(), "c")) == []
    assert_as_local(store, log)
    store.calls.clear()
    run(store, log.reader(), "d")
    assert verbs(store.calls) == ["list", "get"]


def test_what_only_the_archive_has_stays(log: KeyedLog) -> None:
    """The local log starts later: what is archived from below its start is not superseded, also not in part."""
    store = MemoryStore()
    run(store, log.reader(), "a")
    before = newest(store, log)
    log.clean()
    first, second = closed(log)[:2]
    log.log.close()
    for suffix in (".log", ".index", ".timeindex"):
        log.segment(first[0], suffix).unlink()
    log.log = opened(log.folder, segment_bytes=log.segment_bytes)
    assert errors(run(store, log.reader(), "b")) == []
    after = newest(store, log)
    kept = [e for e in before.entries if e.base_offset < second[0]]
    assert kept
    assert [e for e in kept if e not in after.entries] == []
    assert archived_records(store, after)[: len(records(ArchivedLog(store, before), 0, second[0]))] == records(
        ArchivedLog(store, before), 0, second[0]
    )
    assert after.gaps == ()


def encoded_run(store: MemoryStore, log: KeyedLog, prefix: str, how: Transforms) -> list[Done]:
    run = OffloadRun(store, FixedClock(), CountingIds(prefix), "source", lambda _: None, how)
    return list(offload(plan(log.reader(), store, replaces=True), run))


@pytest.mark.parametrize("encoding", ENCODED)
def test_what_is_compressed_or_encrypted_is_replaced_as_well(log: KeyedLog, encoding: str) -> None:
    store, how = MemoryStore(), transforms(encoding)
    assert errors(encoded_run(store, log, "a", how)) == []
    log.clean()
    assert errors(encoded_run(store, log, "b", transforms(encoding, seed=1))) == []
    manifest = newest(store, log)
    assert len(manifest.deleting) > 0
    archived = ArchivedLog(store, manifest, reading=ReadContext(partial(DecodedBytes, keys=KEYS)))
    assert records(archived, 0, manifest.end_offset) == records(log.reader(), 0, manifest.end_offset)


def test_what_cannot_be_decrypted_is_not_replaced_and_new_segments_are_copied(log: KeyedLog) -> None:
    store = MemoryStore()
    encoded_run(store, log, "a", transforms("aes-256-gcm"))
    before = newest(store, log)
    log.clean()
    log.fill(1, begin=6)
    done = run(store, log.reader(), "b")
    assert {type(e) for e in errors(done)} == {NoKey}
    after = newest(store, log)
    assert after.entries[: len(before.entries)] == before.entries
    assert after.end_offset > before.end_offset


# what a log cleaner has not done is not archived in place of anything


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


# readers


def test_who_reads_an_older_version_reads_on(log: KeyedLog) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    before = newest(store, log)
    was = archived_records(store, before)
    reading = ArchivedLog(store, before).chunks(0, before.end_offset)
    next(reading)
    log.clean()
    run(store, log.reader(), "b")
    list(reading)
    assert archived_records(store, load_version(store, before.path, before.version).manifest) == was
    assert len(archived_records(store, newest(store, log))) < len(was)


def test_aborted_transactions_stay_aborted(log: KeyedLog) -> None:
    store = MemoryStore()
    fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "attributes": 0x10}
    log.put((b"key-0", b"aborted"), base_sequence=0, **fields)
    log.log.roll()
    log.put((b"key-1", b"aborted too"), base_sequence=1, **fields)
    log.end_transaction(7, commit=False)
    log.fill(1, begin=6)
    run(store, log.reader(), "a")
    log.clean()
    run(store, log.reader(), "b")
    manifest = assert_as_local(store, log)
    committed = [r for b in ArchivedLog(store, manifest).records(0, manifest.end_offset, committed=True) for r in b.to_pylist()]
    assert not [r for r in committed if b"aborted" in (r["value"] or b"")]
    assert committed


def test_two_that_replace_at_once_leave_one_of_each(log: KeyedLog) -> None:
    store = MemoryStore()
    run(store, log.reader(), "a")
    log.clean()
    first, second = (plan(log.reader(), store, replaces=True) for _ in range(2))
    for due, prefix in ((first, "b"), (second, "c")):
        done = list(offload(due, OffloadRun(store, FixedClock(), CountingIds(prefix), "source", lambda _: None)))
        assert errors(done) == []
    assert {d.reason for d in done if d.action == "archived"} == {"archived by another process in the meantime"}
    manifest = assert_as_local(store, log)
    assert len(manifest.entries) == len(closed(log))
