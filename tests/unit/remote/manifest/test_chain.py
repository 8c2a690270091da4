"""Whether the stored versions are one chain."""

import json

import pytest
from archive_fakes import Door, MemoryStore, RunsBetween, SleptClock
from made_manifests import PATH, chain_faults
from manifest_writers import PUT, Writer, sweep

from local_log.errors import Corrupt, Invalid
from remote.manifest.chain import BrokenChain, stored_versions
from remote.manifest.stamped_json import stamped
from remote.manifest.store import newest_version


@pytest.fixture
def store() -> MemoryStore:
    """Versions 1 to 5, and what does not belong among them."""
    store = MemoryStore()
    Writer(store).copy(0, 1, 2, 3, 4)
    store.put_if_absent(f"{PATH.manifests}README", b"foreign")
    store.put_if_absent(f"{PATH.pages}0", b"foreign")
    return store


def versions(store: MemoryStore) -> list[int]:
    return [stored.version for stored in stored_versions(store, PATH)]


def change(store: MemoryStore, version: int, **fields: object) -> None:
    key = PATH.manifest(version)
    value = {**json.loads(store.objects[key]), **fields}
    del value["~crc32c"]
    store.objects[key] = stamped(value)


def test_a_sound_chain_has_nothing_wrong_and_each_version_is_read_once(store: MemoryStore) -> None:
    door = Door(store)
    assert chain_faults(door) == []
    assert [call[1] for call in door.calls if call[0] == "get"] == [PATH.manifest(v) for v in (5, 4, 3, 2, 1)]
    assert versions(store) == [5, 4, 3, 2, 1]
    assert chain_faults(MemoryStore()) == []


def test_a_chain_whose_oldest_versions_are_swept_is_sound(store: MemoryStore) -> None:
    sweep(store, 3)
    assert chain_faults(store) == []


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_version_that_was_changed_is_not_what_its_child_was_built_on(store: MemoryStore, version: int) -> None:
    change(store, version, writer="mallory")
    (found,) = chain_faults(store)
    assert isinstance(found, BrokenChain)
    assert found.file == PATH.manifest(version)
    assert f"version {version + 1} was built on" in str(found)
    assert "restore both" in str(found)


def test_a_version_that_names_another_parent_is_reported_with_it(store: MemoryStore) -> None:
    change(store, 3, parent_sha256="0" * 64)
    assert [f.file for f in chain_faults(store) if isinstance(f, Corrupt)] == [PATH.manifest(3), PATH.manifest(2)]
    change(store, 1, parent_sha256="0" * 64)
    assert "version 1 names a parent" in str(chain_faults(store)[-1])


def test_a_version_that_is_missing_between_others_is_named(store: MemoryStore) -> None:
    store.delete(PATH.manifest(3))
    (found,) = chain_faults(store)
    assert isinstance(found, BrokenChain)
    assert (found.file, found.problem) == (
        PATH.manifest(3),
        "version 3 is missing between 2 and 4: restore it from a copy",
    )


def test_every_version_cut_or_with_a_bit_flipped_is_found_by_its_key(store: MemoryStore) -> None:
    key = PATH.manifest(3)
    sound = store.objects[key]
    for at in range(0, len(sound), 7):
        for body in (sound[:at], sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :]):
            store.objects[key] = body
            found = chain_faults(store)
            assert isinstance(found[0], BrokenChain)
            assert found[0].file == key


def test_a_version_of_a_newer_format_is_named_and_the_others_are_looked_at(store: MemoryStore) -> None:
    change(store, 5, format={"major": 2, "minor": 0})
    change(store, 2, writer="mallory")
    newer, broken = chain_faults(store)
    assert isinstance(newer, Invalid)
    assert PATH.manifest(5) in str(newer)
    assert isinstance(broken, BrokenChain)


def test_a_manifest_under_the_key_of_another_version_is_named(store: MemoryStore) -> None:
    store.objects[PATH.manifest(5)] = store.objects[PATH.manifest(4)]
    (found,) = chain_faults(store)
    assert isinstance(found, BrokenChain)
    assert "it says that it is version 4" in str(found)


def test_as_many_versions_are_looked_at_as_was_asked_for(store: MemoryStore) -> None:
    change(store, 2, writer="mallory")
    assert chain_faults(store, versions_max=3) == []
    assert len(chain_faults(store, versions_max=4)) == 1


def test_versions_that_are_swept_meanwhile_are_no_fault(store: MemoryStore) -> None:
    door = RunsBetween(store, {3: lambda: sweep(store, 4)})
    assert chain_faults(door) == []


# what a writer that slept has put under a key that was free again

HOUR_MS = 3_600_000


def with_a_leftover(swept: int, *, base: int = 3, others: int = 5) -> MemoryStore:
    """Versions up to `swept` are gone but for the one that a writer has put who had slept since version `base`."""
    clock = SleptClock()
    store = MemoryStore(clock)
    Writer(store).copy(*range(base))

    def long_night() -> None:
        clock.now += HOUR_MS
        Writer(store, "b").copy(*range(base, base + others))
        clock.now += 30 * HOUR_MS
        sweep(store, swept)

    Writer(RunsBetween(store, {PUT: long_night}), "c").copy(base + others)
    assert newest_version(store, PATH) == base + others + 1
    assert PATH.manifest(base + 1) in store.objects
    return store


@pytest.mark.parametrize("swept", [4, 5, 7])
def test_a_version_that_a_sleeping_writer_has_put_under_a_freed_key_is_none_of_the_chain(swept: int) -> None:
    store = with_a_leftover(swept)
    assert versions(store) == [*range(9, swept, -1)]
    assert chain_faults(store) == []


def test_two_leftovers_are_two() -> None:
    store = with_a_leftover(7)
    store.put_if_absent(PATH.manifest(2), store.objects[PATH.manifest(4)])
    assert versions(store) == [9, 8]


def test_a_version_that_was_restored_from_a_copy_is_of_the_chain(store: MemoryStore) -> None:
    for version in (1, 2):
        store.modified[PATH.manifest(version)] += 30 * HOUR_MS
    assert versions(store) == [5, 4, 3, 2, 1]
    store.delete(PATH.manifest(1))
    change(store, 2, writer="mallory")
    assert versions(store) == [5, 4, 3]
    store.objects[PATH.manifest(3)] = b"{"
    assert versions(store) == [5, 4, 3, 2]


def test_a_version_that_was_changed_long_after_is_found_where_others_lie_below(store: MemoryStore) -> None:
    change(store, 3, writer="mallory")
    store.modified[PATH.manifest(3)] += 30 * HOUR_MS
    (found,) = chain_faults(store)
    assert isinstance(found, BrokenChain)
    assert found.file == PATH.manifest(3)
