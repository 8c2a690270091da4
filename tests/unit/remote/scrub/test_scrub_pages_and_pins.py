"""A long manifest whose older entries stand in pages, and the pins of readers: what can be wrong with either."""

from dataclasses import replace

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from scrubbed import LATER_MS, NOW_MS, TXN, findings, found, newest, path

from remote.keys import page_name
from remote.manifest import codec, pins
from remote.manifest.entries import Entries
from remote.manifest.model import Limits, Manifest
from remote.manifest.store import ManifestWriter, load_version
from remote.manifest.transitions import deleted, retained, source_seen
from remote.scrub.finding import Kind

LIMITS = Limits(inline_max=4, page_entries=2, fan_out=2, deleting_max=20)
HOUR_MS = 3_600_000


def committed(
    store: MemoryStore, *numbers: int, log_start_offset: int = 0, deleted_ids: frozenset[str] = frozenset()
) -> Manifest:
    """The newest manifest after a few commits of somebody whose manifests are short."""
    before = newest(store).manifest
    writer = ManifestWriter(store, before.path, FixedClock(NOW_MS), CountingIds("c"), "c", before.writer_epoch, LIMITS)
    for number in numbers:
        writer.commit(before, lambda m, n=number: source_seen(m, "c", n))  # type: ignore[misc]
    if log_start_offset:
        writer.commit(before, lambda m: retained(m, log_start_offset, NOW_MS))
    if deleted_ids:
        writer.commit(before, lambda m: deleted(m, deleted_ids))
    return newest(store).manifest


@pytest.fixture
def paged(store: MemoryStore) -> MemoryStore:
    """The archive with most entries in pages, on two levels."""
    manifest = committed(store, *range(12))
    assert max(ref.level for ref in manifest.pages) > 0
    return store


def page_keys(store: MemoryStore) -> list[str]:
    return [path(store).page(name) for name in Entries.of(store, newest(store).manifest).page_names()]


@pytest.mark.parametrize("deep", [False, True])
def test_a_sound_archive_with_pages_has_no_finding(paged: MemoryStore, deep: bool) -> None:
    assert findings(paged, deep=deep) == []


def test_a_page_that_no_version_names_is_an_orphan(paged: MemoryStore) -> None:
    key = path(paged).page(page_name(0, 212, "f" * 32))
    paged.put_if_absent(key, b"left behind")
    assert found(paged) == [(Kind.orphan, key)]


def test_a_page_that_only_older_versions_name_is_nobodys_once_those_are_swept(paged: MemoryStore) -> None:
    before = set(page_keys(paged))
    manifest = committed(paged, log_start_offset=900)
    expired = [e for d in manifest.deleting for e in Entries.of(paged, manifest).deleting(d)]
    for one in expired:
        for name in (one.log_name, one.aux_name):
            del paged.objects[path(paged).segment(name)]
    committed(paged, deleted_ids=frozenset(d.id for d in manifest.deleting))
    assert findings(paged) == []
    for version in range(1, newest(paged).manifest.version):
        del paged.objects[path(paged).manifest(version)]
    gone = sorted(before - set(page_keys(paged)))
    assert gone
    assert found(paged) == [(Kind.orphan, key) for key in gone]


def test_a_page_that_is_missing_is_found(paged: MemoryStore) -> None:
    for key in page_keys(paged):
        body = paged.objects.pop(key)
        assert found(paged) == [(Kind.missing_object, key), (Kind.left_out, path(paged).prefix)]
        paged.objects[key] = body
    assert findings(paged) == []


def test_a_page_that_was_deleted_since_the_scrub_began_is_no_damage(paged: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scrub may take days, and its machine may sleep."""
    get, before, swept = paged.get, set(page_keys(paged)), list[str]()

    def then_swept(key: str) -> bytes:
        if key in before and not swept:
            swept.append(key)
            manifest = committed(paged, log_start_offset=newest(paged).manifest.end_offset)
            committed(paged, deleted_ids=frozenset(d.id for d in manifest.deleting))
            for gone in before - set(page_keys(paged)):
                del paged.objects[gone]
        return get(key)

    monkeypatch.setattr(paged, "get", then_swept)
    kinds = [kind for kind, _ in found(paged)]
    assert swept
    assert swept[0] not in paged.objects
    assert set(kinds) == {Kind.left_out}


def test_a_page_that_is_damaged_is_found(paged: MemoryStore) -> None:
    key = page_keys(paged)[0]
    paged.objects[key] = paged.objects[key][:-1]
    assert found(paged) == [(Kind.corrupt_manifest, key), (Kind.left_out, path(paged).prefix)]


def test_an_object_that_a_page_names_and_that_is_missing_is_found(paged: MemoryStore) -> None:
    first = next(iter(Entries.of(paged, newest(paged).manifest)))
    assert first not in newest(paged).manifest.entries
    key = path(paged).segment(first.log_name)
    del paged.objects[key]
    assert found(paged, deep=True) == [(Kind.missing_object, key)]


def test_what_retention_has_expired_may_be_there_or_not(paged: MemoryStore) -> None:
    manifest = committed(paged, log_start_offset=900)
    assert manifest.deleting
    assert findings(paged, deep=True) == []
    entries = Entries.of(paged, manifest)
    for one in [e for d in manifest.deleting for e in entries.deleting(d)]:
        del paged.objects[path(paged).segment(one.log_name)]
    assert findings(paged, deep=True) == []


def pinned(store: MemoryStore, version: int, lasts_ms: int = HOUR_MS) -> str:
    pin = pins.create(store, path(store), "reader", version, 0, 100, lasts_ms, FixedClock(LATER_MS), CountingIds("b"))
    store.modified[path(store).pin(pin.id)] = LATER_MS
    return path(store).pin(pin.id)


def test_a_pin_of_a_reader_is_no_finding_until_its_time_is_over(store: MemoryStore) -> None:
    key = pinned(store, newest(store).manifest.version)
    assert findings(store) == []
    [finding] = findings(store, now_ms=LATER_MS + 3 * HOUR_MS)
    assert (finding.kind, finding.key, finding.age_ms) == (Kind.dangling_pin, key, 3 * HOUR_MS)


def test_a_pin_of_a_version_that_never_was_is_found(store: MemoryStore) -> None:
    key = pinned(store, newest(store).manifest.version + 1)
    assert found(store) == [(Kind.dangling_pin, key)]


def test_a_pin_that_cannot_be_read_is_found(store: MemoryStore) -> None:
    key = pinned(store, 1)
    store.objects[key] = b"{}"
    assert found(store) == [(Kind.dangling_pin, key)]


def test_pins_of_one_topic_cost_nothing_where_there_are_none(store: MemoryStore) -> None:
    store.calls.clear()
    findings(store, topics=(TXN,))
    assert [call for call in store.calls if "pins" in call[1]] == []


def test_a_version_that_a_sleeping_writer_has_put_under_a_freed_key_is_an_orphan_and_no_broken_chain(store: MemoryStore) -> None:
    manifest = newest(store).manifest
    for version in range(1, manifest.version):
        store.delete(path(store).manifest(version))
    key = path(store).manifest(manifest.version - 2)
    store.put_if_absent(key, b"{}")
    store.modified[key] = NOW_MS + 30 * HOUR_MS
    assert found(store, now_ms=NOW_MS + 60 * HOUR_MS) == [(Kind.orphan, key)]


@pytest.mark.parametrize("is_swept", [True, False])
def test_a_version_that_is_put_under_a_key_that_was_freed_since_the_scrub_began_is_no_broken_chain(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, is_swept: bool
) -> None:
    number, get, left = newest(store).manifest.version - 1, MemoryStore.get, [True]
    key = path(store).manifest(number)
    other = replace(load_version(store, path(store), number).manifest, committed_at_ms=NOW_MS - 1)

    def put_meanwhile(self: MemoryStore, asked: str) -> bytes:
        if asked == key and left:
            left.clear()
            for version in range(1, number if is_swept else 1):
                store.delete(path(store).manifest(version))
            store.objects[key] = codec.encode(other)
            store.modified[key] = NOW_MS + (30 * HOUR_MS if is_swept else 0)
        return get(self, asked)

    monkeypatch.setattr(MemoryStore, "get", put_meanwhile)
    kinds = dict(found(store, now_ms=NOW_MS + 60 * HOUR_MS))
    assert (Kind.broken_chain in kinds, Kind.left_out in kinds) == (not is_swept, is_swept)
    assert is_swept or kinds[Kind.broken_chain] == key
