"""A writer that holds the manifest it has committed last: a put and a listing a commit, as safe as one that loads it first."""

import pytest
from archive_fakes import CountingIds, Door, MemoryStore, SleptClock, verbs
from made_manifests import PATH, assert_sound_chain
from manifest_writers import FIRST, Writer, copied, held, sweep

from local_log.errors import Fenced
from remote.manifest.held_manifest import HELD_MS_MAX, HeldManifest
from remote.manifest.model import Manifest
from remote.manifest.store import ManifestWriter, Stored, claim, load_newest
from remote.store.api import Body, ObjectStore


def holder(store: ObjectStore, clock: SleptClock | None = None) -> HeldManifest:
    writer = ManifestWriter(store, PATH, clock or SleptClock(), CountingIds("d"), "held", 0)
    return HeldManifest(writer, FIRST, load_newest(store, PATH) or Stored(FIRST, ""))


def commit(own: HeldManifest, number: int) -> Manifest:
    return own.commit(copied(number))


def test_each_commit_costs_a_put_and_a_listing() -> None:
    store = MemoryStore()
    own = holder(store)
    store.calls.clear()
    for number in range(3):
        own.refresh()
        commit(own, number)
    assert verbs(store.calls) == ["put_if_absent", "list"] * 3
    assert assert_sound_chain(store) == own.manifest
    assert held(own.manifest) == [0, 1, 2]


def test_a_key_that_another_has_taken_is_loaded_and_decided_on_again() -> None:
    store = MemoryStore()
    own = holder(store)
    commit(own, 0)
    Writer(store, "b").copy(1)
    store.calls.clear()
    commit(own, 2)
    assert verbs(store.calls) == ["put_if_absent", "get", "list", "get", "put_if_absent", "list"]
    assert held(assert_sound_chain(store)) == [0, 1, 2]
    store.calls.clear()
    commit(own, 3)
    assert verbs(store.calls) == ["put_if_absent", "list"]


def test_what_another_has_brought_meanwhile_is_not_brought_again() -> None:
    store = MemoryStore()
    own = holder(store)
    Writer(store, "b").copy(0)
    commit(own, 0)
    assert held(assert_sound_chain(store)) == [0]
    assert own.manifest.version == 1


def test_a_claim_in_between_stops_it() -> None:
    store = MemoryStore()
    own = holder(store)
    commit(own, 0)
    claim(store, FIRST, SleptClock(), CountingIds("c"), "other")
    with pytest.raises(Fenced):
        commit(own, 1)
    assert held(assert_sound_chain(store)) == [0]


def test_a_newer_version_that_a_commit_has_listed_is_loaded_before_the_next_upload() -> None:
    store = MemoryStore()

    class AnotherComesNext(Door):
        def put_if_absent(self, key: str, body: Body) -> None:
            super().put_if_absent(key, body)
            Writer(store, "b").copy(1)

    own = holder(AnotherComesNext(store))
    assert held(commit(own, 0)) == [0]
    assert held(own.refresh()) == [0, 1]


def test_a_version_that_is_held_for_long_is_asked_for_first() -> None:
    store, clock = MemoryStore(), SleptClock()
    own = holder(store, clock)
    commit(own, 0)
    Writer(store, "b").copy(1)
    clock.now += HELD_MS_MAX
    store.calls.clear()
    assert held(own.refresh()) == [0]
    assert store.calls == []
    clock.now += 1
    assert held(own.refresh()) == [0, 1]
    clock.now -= 2 * HELD_MS_MAX  # set back: nobody knows how long it was
    store.calls.clear()
    own.refresh()
    assert verbs(store.calls) == ["list"]


def test_a_writer_that_slept_until_its_next_key_was_free_again_goes_on_from_the_newest() -> None:
    store = MemoryStore()
    own = holder(store)
    commit(own, 0)
    Writer(store, "b").copy(2, 3, 4, 5)
    sweep(store, 3)
    assert held(commit(own, 1)) == [0, 1, 2, 3, 4, 5]
    assert held(assert_sound_chain(store, first_version=5)) == [0, 1, 2, 3, 4, 5]
