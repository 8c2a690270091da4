"""The commit: optimistic, by put-if-absent, with no other lock."""

from dataclasses import replace

import pytest
from archive_fakes import WRITES, CountingIds, FixedClock, ListsStale, MemoryStore, verbs
from made_manifests import PATH, assert_sound_chain, entry
from manifest_writers import FIRST, Writer, held, sweep

from local_log.errors import Conflict, Corrupt, Invalid, Unavailable, Unknown
from local_log.formats.checkpoints import EpochEntry
from remote.manifest.codec import encode
from remote.manifest.stamped_json import sha256
from remote.manifest.store import load_newest, load_version, newest_version
from remote.manifest.transitions import segment_copied

# one writer


def test_nothing_is_archived_before_the_first_commit() -> None:
    assert load_newest(MemoryStore(), PATH) is None
    assert newest_version(MemoryStore(), PATH) == 0


def test_a_partition_without_a_manifest_is_listed_once_and_foreign_keys_before_the_manifests_are_passed_over() -> None:
    store = MemoryStore()
    newest_version(store, PATH)
    assert verbs(store.calls) == ["list"]
    store.put_if_absent(f"{PATH.manifests}!foreign", b"")
    assert newest_version(store, PATH) == 0
    Writer(store, "a").copy(0)
    assert newest_version(store, PATH) == 1


def test_the_first_commit_is_version_1_and_has_no_parent() -> None:
    store = MemoryStore()
    done = Writer(store, "a").copy(0)
    assert (done.version, done.parent_sha256, done.writer, done.writer_epoch) == (1, "", "a", 0)
    assert (done.put_id, done.committed_at_ms) == (CountingIds("a").new_id(), FixedClock().now_ms())
    assert store.objects == {PATH.manifest(1): encode(done)}


def test_each_version_names_the_hash_of_the_one_before_it() -> None:
    store = MemoryStore()
    Writer(store).copy(0, 1, 2)
    first, second, third = (load_version(store, PATH, version) for version in (1, 2, 3))
    assert second.manifest.parent_sha256 == first.sha256 == sha256(store.objects[PATH.manifest(1)])
    assert third.manifest.parent_sha256 == second.sha256
    assert len({s.manifest.put_id for s in (first, second, third)}) == 3
    assert held(assert_sound_chain(store)) == [0, 1, 2]


def test_a_change_that_changes_nothing_writes_nothing() -> None:
    store = MemoryStore()
    before = Writer(store).copy(0)
    store.calls.clear()
    assert Writer(store, "b").copy(0) == before
    assert WRITES.isdisjoint(verbs(store.calls))
    assert Writer(MemoryStore()).commit(lambda m: m) == FIRST


def test_a_change_that_breaks_an_invariant_writes_nothing() -> None:
    store = MemoryStore()
    Writer(store).copy(0)
    store.calls.clear()
    with pytest.raises(Invalid, match="every missing range is a named gap"):
        Writer(store).commit(lambda m: replace(m, entries=(*m.entries, entry(20, 30))))
    assert WRITES.isdisjoint(verbs(store.calls))


def test_a_change_that_no_longer_makes_sense_writes_nothing() -> None:
    store = MemoryStore()
    Writer(store).commit(lambda m: segment_copied(m, entry(0, 10), (EpochEntry(1, 0),), "", 7))
    store.calls.clear()
    with pytest.raises(Conflict, match="another history"):
        Writer(store).commit(lambda m: segment_copied(m, entry(10, 20), (EpochEntry(0, 0),), "", 7))
    assert WRITES.isdisjoint(verbs(store.calls))


def test_no_commit_is_built_on_a_damaged_or_newer_manifest() -> None:
    store = MemoryStore()
    Writer(store).copy(0)
    key = PATH.manifest(2)
    for body, error in ((b"{", Corrupt), (b'{"format": {"major": 9}}', Invalid)):
        store.objects[key] = body
        store.calls.clear()
        with pytest.raises(error, match="manifest/"):
            Writer(store).copy(1)
        assert WRITES.isdisjoint(verbs(store.calls))


# the listing


@pytest.mark.parametrize(
    "name", ["0", "99999999999999999998-v2.json", "99999999999999999990-v9.json.tmp", "README", "00000000000000000000-v5.json"]
)
def test_foreign_keys_among_the_manifests_are_passed_over(name: str) -> None:
    store = MemoryStore()
    store.put_if_absent(f"{PATH.manifests}{name}", b"foreign")
    Writer(store).copy(0, 1)
    assert held(assert_sound_chain(store)) == [0, 1]


def test_a_manifests_name_in_a_folder_below_is_passed_over() -> None:
    store = MemoryStore()
    store.put_if_absent(f"{PATH.manifests}0/99999999999999999990-v9.json", b"foreign")
    Writer(store).copy(0)
    assert held(assert_sound_chain(store)) == [0]


@pytest.mark.parametrize("listings", [1, 2])
@pytest.mark.parametrize("lag", [1, 2, 3])
def test_a_listing_that_lags_behind_costs_another_round(lag: int, listings: int) -> None:
    """Lagging once more after the put has shown which version there is, it is no longer asked."""
    store = MemoryStore()
    Writer(store, "b").copy(0)
    stale = ListsStale(store)
    stale.freeze(listings)
    Writer(store, "b").copy(*range(1, 1 + lag))
    Writer(stale).copy(90)
    assert verbs(stale.calls).count("put_if_absent") == 2
    assert held(assert_sound_chain(store)) == [*range(1 + lag), 90]


@pytest.mark.parametrize("listings", [1, 2])
def test_a_listing_that_shows_none_of_the_versions_recovers(listings: int) -> None:
    store = MemoryStore()
    stale = ListsStale(store)
    stale.freeze(listings)
    Writer(store, "b").copy(0, 1)
    Writer(stale).copy(90)
    assert held(assert_sound_chain(store)) == [0, 1, 90]


def test_a_listing_that_shows_a_deleted_version_recovers() -> None:
    store = MemoryStore()
    Writer(store, "b").copy(0)
    stale = ListsStale(store)
    stale.freeze(1)
    Writer(store, "b").copy(1, 2)
    sweep(store, 1)
    try:
        Writer(stale).copy(90)
    except (Unavailable, Unknown, Conflict):
        Writer(store).copy(90)
    assert held(assert_sound_chain(store, first_version=3)) == [0, 1, 2, 90]


def test_a_store_that_does_not_list_what_it_has_taken_leaves_the_commit_unknown() -> None:
    store = MemoryStore()
    Writer(store, "b").copy(0)
    stale = ListsStale(store)
    stale.freeze(1_000)
    with pytest.raises(Unknown):
        Writer(stale).copy(90)
    assert WRITES.intersection(verbs(stale.calls)) == {"put_if_absent"}
    Writer(store).copy(90)
    assert held(assert_sound_chain(store)) == [0, 90]
