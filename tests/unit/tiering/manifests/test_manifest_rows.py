"""Manifests for people, on many pages: what both versions have is not read."""

from collections.abc import Callable

import pytest
from archive_fakes import CountingIds, Door, FixedClock, MemoryStore
from made_manifests import PATH, entry

from local_log.formats.checkpoints import EpochEntry
from remote.manifest.entries import Entries
from remote.manifest.model import Limits, Manifest, never_archived
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter, load_version
from remote.manifest.transitions import retained, segment_copied
from tiering.manifests.rows import difference, history

LIMITS = Limits(inline_max=3, page_entries=2, fan_out=3, deleting_max=50)
FIRST = never_archived(PATH.topic, PATH.topic_id, PATH.partition, 0)
COPIES = 60


def copied(one: SegmentEntry) -> Callable[[Manifest], Manifest]:
    return lambda m: segment_copied(m, one, (EpochEntry(0, 0),), "lost", 7)


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    """60 copies in order, four that come late into a gap, and retention."""
    store = MemoryStore()
    writer = ManifestWriter(store, PATH, FixedClock(), CountingIds(), "a", 0, LIMITS)
    for number in range(COPIES):
        base = 10 * number + 10 * (number >= 20)
        writer.commit(FIRST, copied(entry(base, base + 10)))
    for base in range(200, 208, 2):
        writer.commit(FIRST, copied(entry(base, base + 2)))
    writer.commit(FIRST, lambda m: retained(m, 33, 9))
    return store


def at(store: MemoryStore | Door, version: int) -> Entries:
    return Entries.of(store, load_version(store, PATH, version).manifest)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (40, 41), (59, 60), (60, 64), (64, 65), (10, 65), (65, 10), (33, 33)])
def test_a_difference_is_what_two_lists_of_entries_would_tell(store: MemoryStore, before: int, after: int) -> None:
    sides = [{e.segment_id for e in at(store, version)} for version in (before, after)]
    waiting = [
        {e.segment_id for d in load_version(store, PATH, v).manifest.deleting for e in at(store, v).deleting(d)}
        for v in (before, after)
    ]
    rows = {
        r["segment_id"]: (r["before"], r["after"]) for r in difference(at(store, before), at(store, after)) if r["segment_id"]
    }
    expected = {}
    for one in sides[0] | sides[1] | waiting[0] | waiting[1]:
        states = [
            "COPY_SEGMENT_FINISHED" if one in sides[n] else "DELETE_SEGMENT_STARTED" if one in waiting[n] else None
            for n in (0, 1)
        ]
        if states[0] != states[1]:
            expected[one] = (states[0], states[1] or "DELETE_SEGMENT_FINISHED")
    assert rows == expected


def test_the_difference_of_neighbours_reads_the_pages_that_changed_and_no_others(store: MemoryStore) -> None:
    door = Door(store)
    assert len([*difference(at(door, 59), at(door, 60))]) == 2
    assert len([c for c in door.calls if "/pages/" in c[1]]) <= 8
    assert len([*at(store, 60).page_names()]) > 30


def test_history_reads_no_page(store: MemoryStore) -> None:
    door = Door(store)
    assert len([*history(door, PATH)]) == COPIES + 5
    assert not any("/pages/" in call[1] for call in door.calls)
