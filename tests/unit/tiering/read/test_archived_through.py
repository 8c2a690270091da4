"""How far in time an archive has a topic."""

from functools import partial
from pathlib import Path

import pytest
from archive_fakes import CountingIds, Door, MemoryStore, RunsBetween, SleptClock
from made_archive import TOPIC_ID, made

from local_log.errors import NotFound
from remote.archive import create_archive
from remote.manifest.losses import source_gone
from remote.manifest.model import never_archived
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import first_seen, topic_deleted
from remote.store.api import ObjectStore
from remote.store.open import open_store
from tiering.read.archived_through import ArchivedThrough, archived_through, partitions_behind


def test_a_partition_is_archived_through_the_latest_of_its_records_wherever_that_is(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    made(store, [[[10, 70, 20]], [[30]]])
    made(store, [[[5]]], partition=2)
    assert archived_through(store, "made") == (ArchivedThrough(0, 4, 70), ArchivedThrough(2, 1, 5))
    assert archived_through(store, "other") == ()


def test_nobody_is_told_of_an_archive_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no archive there"):
        archived_through(open_store(str(tmp_path)), "made")


def seen(store: ObjectStore, partition: int, start: int, end: int, topic_id: str = TOPIC_ID) -> ManifestWriter:
    """Records that broker-1 has a log with these offsets, of which nothing is archived; gives the writer that has done it."""
    create_archive(store, SleptClock(), CountingIds())
    none_yet = never_archived("made", topic_id, partition, start)
    writer = ManifestWriter(store, none_yet.path, SleptClock(), CountingIds(f"{partition:x}e"), "tests", 0)
    writer.commit(none_yet, lambda known: first_seen(known, "broker-1", start, end))
    return writer


def test_a_partition_of_which_nothing_is_archived_yet_holds_its_topic_back(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    made(store, [[[70]]])
    seen(store, 1, 0, 3)
    seen(store, 2, 100, 103)
    found = archived_through(store, "made")
    assert found == (ArchivedThrough(0, 1, 70), ArchivedThrough(1, 0, -1), ArchivedThrough(2, 0, -1))
    assert partitions_behind(found, 70) == (1, 2)


def test_a_topic_of_which_nothing_is_archived_yet_is_behind_in_all_of_its_partitions(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    seen(store, 0, 0, 3)
    seen(store, 1, 0, 3)
    assert archived_through(store, "made") == (ArchivedThrough(0, 0, -1), ArchivedThrough(1, 0, -1))


def test_a_log_that_was_empty_when_it_was_recorded_may_have_records_now_and_holds_its_topic_back(tmp_path: Path) -> None:
    """Where a log only grows in its active segment the offload does not record its end again."""
    store = open_store(str(tmp_path))
    made(store, [[[70]]])
    seen(store, 1, 0, 0)
    assert archived_through(store, "made") == (ArchivedThrough(0, 1, 70), ArchivedThrough(1, 0, -1))


def test_a_partition_that_all_its_log_directories_have_lost_and_a_deleted_one_hold_nobody_back(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    made(store, [[[70]]])
    for partition, change in (
        (1, partial(source_gone, source="broker-1", log_end_offset=3, now_ms=1)),
        (2, partial(topic_deleted, now_ms=1)),
    ):
        seen(store, partition, 0, 3).commit(never_archived("made", TOPIC_ID, partition, 0), change)
    assert archived_through(store, "made") == (ArchivedThrough(0, 1, 70),)


def test_a_topic_that_was_created_again_counts_from_when_it_is_what_readers_see(tmp_path: Path) -> None:
    store, again = open_store(str(tmp_path)), "B" * 22
    made(store, [[[70]]])
    seen(store, 1, 0, 3, again)
    assert archived_through(store, "made") == (ArchivedThrough(0, 1, 70),)
    made(store, [[[90]]], topic_id=again, first_ms=1_000)
    assert archived_through(store, "made") == (ArchivedThrough(0, 1, 90), ArchivedThrough(1, 0, -1))


def test_a_topic_whose_former_one_was_lost_before_it_was_archived_is_waited_for(tmp_path: Path) -> None:
    store, again = open_store(str(tmp_path)), "B" * 22
    gone = partial(source_gone, source="broker-1", log_end_offset=3, now_ms=1)
    seen(store, 0, 0, 3).commit(never_archived("made", TOPIC_ID, 0, 0), gone)
    assert archived_through(store, "made") == ()
    seen(store, 1, 0, 3, again)
    assert archived_through(store, "made") == (ArchivedThrough(1, 0, -1),)


def test_a_partition_that_is_archived_while_it_is_looked_for_is_found_as_it_was_or_as_it_is() -> None:
    found = []
    for number in range(1, _calls() + 1):
        store = _one_archived_and_one_seen()
        between = RunsBetween(store, {number: lambda store=store: made(store, [[[90]]], partition=1)})
        found.append(archived_through(between, "made"))
    assert set(found) == {(ArchivedThrough(0, 1, 70), later) for later in (ArchivedThrough(1, 0, -1), ArchivedThrough(1, 1, 90))}


def _one_archived_and_one_seen() -> MemoryStore:
    store = MemoryStore()
    made(store, [[[70]]])
    seen(store, 1, 0, 3)
    return store


def _calls() -> int:
    door = Door(_one_archived_and_one_seen())
    archived_through(door, "made")
    return len(door.calls)


def test_a_topic_is_behind_where_any_of_its_partitions_has_no_record_as_late() -> None:
    found = (ArchivedThrough(0, 4, 70), ArchivedThrough(1, 0, -1), ArchivedThrough(2, 1, 5))
    assert partitions_behind(found, 5) == (1,)
    assert partitions_behind(found, 6) == partitions_behind(found, 70) == (1, 2)
    assert partitions_behind(found, 71) == (0, 1, 2)


def test_only_the_partitions_that_are_named_are_waited_for_and_those_that_are_not_there_yet_too() -> None:
    found = (ArchivedThrough(0, 4, 70), ArchivedThrough(1, 0, -1))
    assert partitions_behind(found, 70, [0]) == ()
    assert partitions_behind(found, 70, [0, 3]) == (3,)
