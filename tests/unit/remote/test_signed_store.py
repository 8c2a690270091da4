"""Manifests that are signed: what is taken, what is refused, and what it costs."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from made_manifests import PATH, TOPIC_ID, assert_sound_chain, entry
from seeded_randomness import SeededRandomness

from local_log.errors import Corrupt, Newer, NoKey, WrongKey
from remote import archive
from remote.keys import PartitionPath, WritePath
from remote.manifest import stamped_json
from remote.manifest.entries import Entries
from remote.manifest.model import Limits, Manifest, never_archived
from remote.manifest.signatures import NotSigned
from remote.manifest.store import ManifestWriter, claim, load_newest, load_version
from remote.manifest.transitions import segment_copied
from remote.manifest.write_record import Decision, decide, read_decision
from remote.signed_store import RolledBack, SignedStore
from remote.store.api import ObjectStore
from remote.transforms.keys import LocalKeyRing

KEYS = LocalKeyRing("keys", "new", {"old": bytes(32), "new": bytes([1] * 32)})
OLD = LocalKeyRing("old keys", "old", {"old": bytes(32)})
ENTRIES = [entry(10 * n, 10 * n + 10) for n in range(20)]
LIMITS = Limits(inline_max=5, page_entries=3, fan_out=2)


class CountingRing:
    """A key ring that counts what it is asked."""

    def __init__(self) -> None:
        self.current = "new"
        self.asked: list[str] = []

    def wrap(self, key_id: str, data_key: bytes) -> bytes:
        self.asked.append("wrap")
        return KEYS.wrap(key_id, data_key)

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        self.asked.append("unwrap")
        return KEYS.unwrap(key_id, wrapped)


class Memory(dict[str, bytes]):
    """What outlasts a process."""

    def put(self, name: str, body: bytes) -> None:
        self[name] = body


def copied(number: int) -> Callable[[Manifest], Manifest]:
    """The change that adds an entry."""
    return lambda m: segment_copied(m, ENTRIES[number], (), "lost", 0)


def committed(store: ObjectStore, *numbers: int, path: PartitionPath = PATH, limits: Limits = LIMITS) -> Manifest:
    """Commits these entries, one after the other."""
    first = never_archived(path.topic, path.topic_id, path.partition, 0)
    newest = load_newest(store, path)
    epoch = newest.manifest.writer_epoch if newest else 0
    writer = ManifestWriter(store, path, FixedClock(), CountingIds(f"{len(numbers):x}{numbers[0]:02x}"), "tests", epoch, limits)
    return [writer.commit(first, copied(n)) for n in numbers][-1]


def with_keys(store: MemoryStore, keys: LocalKeyRing = KEYS, *, plain: bool = False, seen: Memory | None = None) -> SignedStore:
    """The store for who has keys, as a new process."""
    return SignedStore(store, keys, plain_allowed=plain, seen=seen, randomness=SeededRandomness())


def test_what_is_committed_with_keys_is_signed_and_read_with_and_without_them() -> None:
    store = MemoryStore()
    after = committed(with_keys(store), *range(20))
    assert after.signed_by == "new"
    for reader in (with_keys(store), store):
        assert load_newest(reader, PATH).manifest == after  # type: ignore[union-attr]
        assert [*Entries.of(reader, after)] == ENTRIES
        assert_sound_chain(reader, PATH)
    value = json.loads(store.objects[PATH.manifest(after.version)])
    assert value["format"]["major"] == 2
    assert list(value)[-2:] == ["~crc32c", "~mac"]
    assert {*value["~mac"]} == {"key_id", "mac", "wrapped_key"}


def test_without_keys_nothing_is_written_that_was_not_before() -> None:
    plain = MemoryStore()
    committed(plain, *range(20))
    assert not any(b"~mac" in body or b"sha256" in body.replace(b"parent_sha256", b"") for body in plain.objects.values())
    assert all(b'"format":{"major":1,' in body for key, body in plain.objects.items() if key.endswith(".json"))


def test_a_page_of_a_signed_manifest_is_the_one_that_was_signed_though_its_checksum_is_right() -> None:
    store = MemoryStore()
    after = committed(with_keys(store), *range(20))
    refs = [ref for ref in after.pages if ref.sha256]
    assert len(refs) == len(after.pages) > 0
    other = replace(refs[0], sha256="0" * 64)
    with pytest.raises(Corrupt, match="SHA-256"):
        [*Entries.of(store, replace(after, pages=(other, *after.pages[1:])))]


def forged(body: bytes, **change: object) -> bytes:
    """A manifest as who has no key would change it: its signature is left where it is, its checksum is right."""
    value = json.loads(body)
    mac = value.pop("~mac")
    del value["~crc32c"]
    return (
        stamped_json.stamped(value | change)[:-2]
        + b',"~mac":'
        + json.dumps(mac, sort_keys=True, separators=(",", ":")).encode()
        + b"}\n"
    )


def test_a_manifest_that_was_changed_is_corrupt() -> None:
    store = MemoryStore()
    version = committed(with_keys(store), 0, 1).version
    key = PATH.manifest(version)
    store.objects[key] = forged(store.objects[key], log_start_offset=5)
    assert load_newest(store, PATH)  # without keys nobody can know
    with pytest.raises(Corrupt, match="its signature is invalid") as raised:
        load_newest(with_keys(store), PATH)
    assert raised.value.file == key


@pytest.mark.parametrize("byte", [1, 40, 150, 300])
def test_a_signature_with_a_changed_byte_is_corrupt(byte: int) -> None:
    store = MemoryStore()
    key = PATH.manifest(committed(with_keys(store), 0).version)
    body = bytearray(store.objects[key])
    body[-byte] ^= 1
    store.objects[key] = bytes(body)
    with pytest.raises((Corrupt, NoKey, WrongKey, Newer)):
        load_newest(with_keys(store), PATH)


def test_a_manifest_of_another_version_partition_or_topic_is_corrupt() -> None:
    store = MemoryStore()
    other = PartitionPath(PATH.topic, "B" * 22, 0)
    committed(with_keys(store), 0, 1)
    committed(with_keys(store), 5, path=other)
    for key, from_key in ((PATH.manifest(2), PATH.manifest(1)), (PATH.manifest(1), other.manifest(1))):
        before, store.objects[key] = store.objects[key], store.objects[from_key]
        with pytest.raises(Corrupt):
            load_version(with_keys(store), PATH, 2 if key == PATH.manifest(2) else 1)
        store.objects[key] = before


def test_one_without_a_signature_is_refused_by_who_has_keys_unless_he_is_told_otherwise() -> None:
    store = MemoryStore()
    before = committed(store, 0)
    with pytest.raises(NotSigned, match="--allow-plain"):
        load_newest(with_keys(store), PATH)
    assert archive.newest_partitions(with_keys(store), PATH.topic)[0].file == PATH.manifest(before.version)  # type: ignore[union-attr]
    with pytest.raises(NotSigned):
        committed(with_keys(store), 1)
    assert committed(with_keys(store, plain=True), 1).signed_by == "new"
    assert load_newest(with_keys(store), PATH).manifest.entries == tuple(ENTRIES[:2])  # type: ignore[union-attr]


def test_a_signed_chain_is_not_gone_on_with_by_who_has_no_keys() -> None:
    store = MemoryStore()
    committed(with_keys(store), 0)
    stored = dict(store.objects)
    for commit in (lambda: committed(store, 1), lambda: claim(store, never_archived("topic", TOPIC_ID, 0, 0), *WRITER)):
        with pytest.raises(NoKey, match="give keys that have it"):
            commit()
    assert store.objects == stored
    assert committed(store, 0)  # where nothing changes, nothing is written


WRITER = (FixedClock(), CountingIds("c"), "tests")


def test_who_lacks_the_key_that_has_signed_is_told_which() -> None:
    store = MemoryStore()
    committed(with_keys(store), 0)
    with pytest.raises(NoKey, match="'new' is needed"):
        load_newest(with_keys(store, OLD), PATH)
    with pytest.raises(WrongKey, match="'new'"):
        load_newest(with_keys(store, LocalKeyRing("other keys", "new", {"new": bytes(32)})), PATH)


def test_a_key_ring_is_asked_once_however_much_is_read_and_written() -> None:
    store, keys = MemoryStore(), CountingRing()
    writer = SignedStore(store, keys, randomness=SeededRandomness())
    committed(writer, *range(5))
    assert keys.asked == ["wrap"]
    keys.asked.clear()
    reader = SignedStore(store, keys, randomness=SeededRandomness())
    committed(reader, *range(5, 10))
    committed(reader, 7, path=PartitionPath("other", TOPIC_ID, 1))
    assert keys.asked == ["unwrap"]


def test_a_signature_costs_no_request() -> None:
    plain, store = MemoryStore(), MemoryStore()
    committed(plain, *range(10))
    committed(with_keys(store), *range(10))
    assert [call[0] for call in store.calls] == [call[0] for call in plain.calls]


def test_a_former_key_s_chain_goes_on_under_the_current_key() -> None:
    store = MemoryStore()
    assert committed(with_keys(store, OLD), 0).signed_by == "old"
    assert committed(with_keys(store, KEYS), 1).signed_by == "new"
    alone = LocalKeyRing("keys of tomorrow", "new", {"new": bytes([1] * 32)})
    assert load_newest(with_keys(store, alone), PATH)
    with pytest.raises(NoKey, match="'old'"):
        load_version(with_keys(store, alone), PATH, 1)


def test_the_record_of_a_write_is_signed_too() -> None:
    store = MemoryStore()
    key = WritePath(PATH.topic, PATH.topic_id, "w").attempt("a" * 32)
    decide(with_keys(store), FixedClock(), key, Decision(True, 5, "me"))
    assert read_decision(with_keys(store), key) == read_decision(store, key) == Decision(True, 5, "me")
    store.objects[key] = stamped_json.stamped(
        {"format": {"major": 1, "minor": 1}, "outcome": "given up", "decided_at_ms": 5, "by": "eve", "ranges": []}
    )
    with pytest.raises(NotSigned):
        read_decision(with_keys(store), key)


@pytest.mark.parametrize("keys", [None, KEYS])
def test_what_was_rolled_back_is_found_by_who_remembers(keys: LocalKeyRing | None) -> None:
    store, seen = MemoryStore(), Memory()
    reader = SignedStore(store, keys, seen=seen)
    committed(SignedStore(store, keys), *range(5))
    assert load_newest(reader, PATH).manifest.version == 5  # type: ignore[union-attr]
    for version in (5, 4):
        del store.objects[PATH.manifest(version)]
    again = SignedStore(store, keys, seen=seen)
    with pytest.raises(RolledBack, match="version 3 is the newest, and version 5 was there before") as raised:
        load_newest(again, PATH)
    assert raised.value.file == PATH.manifest(5)
    assert load_newest(SignedStore(store, keys, seen=Memory()), PATH)  # who remembers nothing finds nothing
    for version in (3, 2, 1):
        del store.objects[PATH.manifest(version)]
    with pytest.raises(RolledBack, match="version 0 is the newest"):
        load_newest(again, PATH)


def test_another_version_under_the_same_number_is_found_by_who_remembers() -> None:
    store, seen = MemoryStore(), Memory()
    committed(with_keys(store), *range(3))
    load_newest(with_keys(store, seen=seen), PATH)
    del store.objects[PATH.manifest(3)]
    committed(with_keys(store), 7)
    with pytest.raises(RolledBack, match="another version 3"):
        load_newest(with_keys(store, seen=seen), PATH)


def test_versions_from_before_are_read_and_a_listing_that_lags_behind_is_no_rollback() -> None:
    store, seen = MemoryStore(), Memory()
    committed(store, *range(5))
    reader = SignedStore(store, seen=seen)
    load_newest(reader, PATH)
    assert load_version(reader, PATH, 2).manifest.version == 2
    held = store.objects.pop(PATH.manifest(5))
    with pytest.raises(RolledBack):
        load_newest(reader, PATH)
    store.objects[PATH.manifest(5)] = held
    store.list = lambda *_, **__: iter([m for m in MemoryStore.list(store, PATH.manifests) if "-v5" not in m.key])  # type: ignore[method-assign]
    assert load_newest(reader, PATH).manifest.version == 4  # type: ignore[union-attr]


@pytest.mark.parametrize("kept", [b"", b"x", b"5x", b"\xff\xff", b" "])
def test_a_memory_that_cannot_be_read_is_none(kept: bytes) -> None:
    store, seen = MemoryStore(), Memory()
    committed(store, 0, 1)
    load_newest(SignedStore(store, seen=seen), PATH)
    for name in seen:
        seen[name] = kept
    assert load_newest(SignedStore(store, seen=seen), PATH)


def test_a_signed_manifest_that_was_cut_short_is_to_be_brought_back_and_not_to_be_signed() -> None:
    store = MemoryStore()
    file = PATH.manifest(committed(with_keys(store), 0).version)
    for size in (len(store.objects[file]) - 1, 200, 1, 0):
        store.objects[file] = store.objects[file][:size]
        with pytest.raises(Corrupt, match="restore it from a copy") as raised:
            load_newest(with_keys(store), PATH)
        assert not isinstance(raised.value, NotSigned)
