"""Segments that a log cleaner empties while a copy is under way, and log files that have lost their bytes without one."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from golden_logs import broker_logs
from keyed_logs import TOPIC_ID, KeyedLog
from logs_to_archive import cut_finer, local_logs, path_of
from made_manifests import assert_sound_chain, entry, epochs, manifest
from one_offload import TXN
from one_offload import run as run_once

from local_log.errors import Corrupt
from local_log.formats.filenames import CLEANER_OFFSET_CHECKPOINT
from local_log.ranges import Range
from remote.manifest.gaps import COMPACTED, NO_BATCH
from remote.manifest.model import Manifest
from remote.read.log import ArchivedLog
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import OffloadPlan, plan
from tiering.offload.plan import Action


@pytest.fixture
def log(tmp_path: Path) -> Iterator[KeyedLog]:
    """A log whose second and third segments have records of keys alone that come again later."""
    log = KeyedLog(tmp_path / "logs", segment_bytes=200)  # of which two are too large for one
    for key in (b"first", b"again", b"again", b"again", b"last"):
        log.put((key, b"v" * 100))
        log.log.roll()
    yield log
    log.log.close()


def planned(log: KeyedLog, store: MemoryStore, *, replaces: bool = False) -> OffloadPlan:
    return plan(log.reader(), store, replaces=replaces)


def done_of(due: OffloadPlan, store: MemoryStore, prefix: str = "") -> list[Done]:
    return list(offload(due, OffloadRun(store, FixedClock(), CountingIds(prefix), "source", lambda _: None)))


def newest(log: KeyedLog, store: MemoryStore) -> Manifest:
    return assert_sound_chain(store, path_of(log.reader()))


def clean_each(log: KeyedLog) -> list[Range]:
    """A round of cleaning that joins no segments; those of them that it has emptied."""
    log.clean()
    sizes = {s.base_offset: (s.size(), s.next_base_offset) for s in log.reader().segments}
    return [(base, end) for base, (size, end) in sizes.items() if end is not None and not size]


def test_what_is_emptied_after_it_was_planned_is_no_damage_and_the_archive_goes_on_past_it(log: KeyedLog) -> None:
    store = MemoryStore()
    due = planned(log, store)
    empty = clean_each(log)
    assert empty == [(1, 2), (2, 3)]
    done = done_of(due, store)
    assert [d.error for d in done if d.error] == []
    assert [d.reason for d in done if d.action == "keep"][:2] == [f"nothing to copy: {NO_BATCH}"] * 2
    manifest = newest(log, store)
    assert [(g.start, g.end, g.kind) for g in manifest.gaps] == [(1, 3, COMPACTED)]
    chunks = list(ArchivedLog(store, manifest).chunks(0, manifest.end_offset))
    assert next(o for chunk in chunks for o in chunk.batches.last_offset.tolist()) == 0
    again = done_of(planned(log, store), store, "b")
    assert {d.action for d in again} <= {"archived", "keep"}


def test_without_any_round_before_the_replaced_file_says_that_it_was_a_cleaner(log: KeyedLog) -> None:
    """The checkpoint is written when a round ends; the old files are deleted later than that."""
    store = MemoryStore()
    due = planned(log, store)
    clean_each(log)
    (log.root / CLEANER_OFFSET_CHECKPOINT).unlink()
    assert [d.error for d in done_of(due, store) if d.error] == []


def test_what_is_emptied_while_it_is_to_be_replaced_is_replaced_the_next_time(log: KeyedLog) -> None:
    store = MemoryStore()
    done_of(planned(log, store), store)
    before = newest(log, store)
    log.checkpoint(CLEANER_OFFSET_CHECKPOINT, 5)
    body = log.segment(1).read_bytes()
    log.segment(1).write_bytes(body[:-1])  # fewer bytes than are archived: it is planned to be replaced
    due = planned(log, store, replaces=True)
    assert [d.segment.base_offset for d in due.decisions if d.action is Action.replace_archived] == [1]
    log.segment(1).write_bytes(body)
    clean_each(log)
    skipped = done_of(due, store, "b")
    assert [d.error for d in skipped if d.error] == []
    assert [d.decision.segment.base_offset for d in skipped if d.decision and d.decision.action is Action.skipped] == [1]
    assert newest(log, store) == before
    done = done_of(planned(log, store, replaces=True), store, "c")
    assert [d.error for d in done if d.error] == []
    assert [(g.start, g.end, g.kind) for g in newest(log, store).gaps] == [(1, 3, COMPACTED)]


@pytest.mark.parametrize("suffixes", [(".log",), (".log", ".index", ".timeindex")])
def test_a_log_file_without_a_byte_is_damage_where_no_cleaner_has_been(tmp_path: Path, suffixes: tuple[str, ...]) -> None:
    folder = broker_logs(tmp_path, TXN)
    cut_finer(folder / TXN, 5)
    (first, second), store = [s.base_offset for s in local_logs(folder)[TXN].segments][:2], MemoryStore()
    for suffix in suffixes:
        (folder / TXN / f"{second:020d}{suffix}").write_bytes(b"")
    errors = [d.error for d in run_once(store, local_logs(folder)[TXN]) if d.error]
    assert [type(e) for e in errors] == [Corrupt]
    assert "no log cleaner has emptied; restore its files from a replica" in str(errors[0])
    (gap,) = assert_sound_chain(store, path_of(local_logs(folder)[TXN])).holes
    assert gap.start == second
    assert first < second


def test_a_log_file_that_lost_its_bytes_is_damage_in_a_compacted_log_too(log: KeyedLog) -> None:
    store = MemoryStore()
    log.clean()
    log.segment(3).write_bytes(b"")
    errors = [d.error for d in done_of(planned(log, store), store) if d.error]
    assert [type(e) for e in errors] == [Corrupt]
    assert [(g.start, g.end) for g in newest(log, store).holes] == [(3, 4)]


@pytest.mark.parametrize(("known", "is_told"), [(((0, 0),), True), (((0, 0), (2, 3)), False)])
def test_only_a_log_that_may_fill_a_gap_tells_that_compaction_has_left_nothing_in_it(
    log: KeyedLog, known: tuple[tuple[int, int], ...], *, is_told: bool
) -> None:
    """The leader of epoch 0 may have lost an unclean election, and its cleaner has taken records that nobody else had."""
    assert clean_each(log) == [(1, 2), (2, 3)]
    due, lineage = planned(log, MemoryStore()), epochs(*known)
    behind = entry(3, 4, leader_epochs=lineage[-1:])
    gapped = replace(manifest(entry(0, 1), behind, leader_epochs=lineage), topic_id=TOPIC_ID)
    assert [gap.is_of_compaction for gap in due.emptied(gapped).gaps] == [is_told]
    assert [gap.is_of_compaction for gap in due.log_recorded(gapped, "source", 1).gaps] == [is_told]
    assert [gap.is_of_compaction for gap in due.emptied(gapped, is_clean=True).gaps] == [True]
