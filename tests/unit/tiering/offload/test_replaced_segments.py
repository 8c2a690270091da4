"""A compacted topic that is archived, cleaned and archived again: what was cleaned takes the place of what was archived of it."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore, verbs
from encodings_to_try import ENCODED, KEYS, transforms
from keyed_logs import KeyedLog
from made_manifests import assert_sound_archive
from replaced import archived_records, assert_as_local, closed, errors, newest, ranges, records, run
from small_logs import opened

from local_log.errors import NoKey
from local_log.formats.filenames import CLEANER_OFFSET_CHECKPOINT
from remote.manifest.entries import Entries
from remote.manifest.gaps import COMPACTED
from remote.manifest.model import Limits
from remote.manifest.store import load_version
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.encoder import Transforms
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan
from tiering.offload.plan import Action

SMALL = Limits(inline_max=2, page_entries=2, fan_out=2)


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
