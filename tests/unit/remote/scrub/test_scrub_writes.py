"""Scrubs of a direct write that is committed, and that no manifest has taken in: the writer died, or the store failed."""

import pytest
from archive_fakes import MemoryStore
from scrubbed import found
from written_rows import committed_only, new_archive

from remote import archive
from remote.manifest.store import load_newest
from remote.manifest.write_record import record_of
from remote.scrub.finding import Kind
from remote.scrub.named_still import is_named_still


@pytest.fixture
def store() -> MemoryStore:
    return committed_only()


def segment_objects(store: MemoryStore) -> list[str]:
    """The keys of the log, and of its indexes, of the only segment."""
    (manifest,) = archive.newest_manifests(store, "rows")
    (entry,) = manifest.entries
    return [manifest.path.segment(name) for name in (entry.log_name, entry.aux_name)]


@pytest.mark.parametrize("deep", [False, True])
def test_a_write_that_is_committed_is_sound_before_a_manifest_has_taken_it_in(store: MemoryStore, deep: bool) -> None:
    assert found(store, deep=deep) == []


def test_damage_in_a_write_that_is_committed_is_found_before_a_manifest_has_taken_it_in(store: MemoryStore) -> None:
    key = segment_objects(store)[0]
    body = bytearray(store.objects[key])
    body[-1] ^= 1
    store.objects[key] = bytes(body)
    ((kind, at),) = found(store, deep=True)
    assert (kind in (Kind.wrong_crc, Kind.bad_batch), at) == (True, key)


@pytest.mark.parametrize("number", [0, 1])
def test_an_object_that_a_write_that_is_committed_lacks_is_found(store: MemoryStore, number: int) -> None:
    key = segment_objects(store)[number]
    del store.objects[key]
    assert found(store) == [(Kind.missing_object, key)]


def test_a_record_of_a_write_that_cannot_be_read_is_found_and_its_objects_are_no_orphans(store: MemoryStore) -> None:
    (path,) = archive.partition_paths(store, "rows")
    newest = load_newest(store, path)
    assert newest is not None
    assert newest.manifest.pending is not None
    key = record_of(newest.manifest.pending)
    store.objects[key] = b"{"
    kinds = [kind for kind, at in found(store, deep=True) if at == key or at.startswith(path.segments)]
    assert kinds == [Kind.corrupt_manifest]


def test_what_a_write_that_is_committed_names_is_named(store: MemoryStore) -> None:
    (path,) = archive.partition_paths(store, "rows")
    name = segment_objects(store)[0].rpartition("/")[2]
    assert is_named_still(store, path, name)
    assert not is_named_still(new_archive(), path, name)
