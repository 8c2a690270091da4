"""Rotation of keys: what is under a former key is wrapped by the current one, page by page, whatever happens on the way."""

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product
from typing import TypeVar

import pytest
from archive_fakes import (
    AppliesLate,
    CountingIds,
    Crash,
    CrashesAt,
    Door,
    FailsBefore,
    FixedClock,
    LosesAnswer,
    MemoryStore,
    Nth,
    RunsBetween,
    SleptClock,
    verbs,
)
from made_manifests import PATH, assert_sound_chain, entry

from local_log.errors import Corrupt, LogError, NoKey, Unavailable, WrongKey
from remote.manifest.entries import Entries
from remote.manifest.model import Limits, Manifest, never_archived
from remote.manifest.segment_entry import EncodingInfo, SegmentEntry
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import segment_copied
from remote.store.api import ObjectStore
from remote.transforms.keys import LocalKeyRing
from tiering.keys.rotate import RotationResult, Rotator, plan_rotation
from tiering.sweep import collect as sweep
from tiering.sweep.plan import Kind

pytestmark = pytest.mark.usefixtures("pages_decoded_once")

FORMER = LocalKeyRing("former keys", "old", {"old": bytes(32)})
NOW = LocalKeyRing("keys of today", "new", {"old": bytes(32), "new": bytes([1] * 32)})
FINAL = LocalKeyRing("keys of tomorrow", "new", {"new": bytes([1] * 32)})
LIMITS = Limits(inline_max=5, page_entries=3, fan_out=3)
HOUR_MS = 3_600_000
T = TypeVar("T")


def data_key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def encrypted(number: int, keys: LocalKeyRing = FORMER) -> SegmentEntry:
    """An entry whose data key is its number, and every fourth one that is not encrypted."""
    made = entry(10 * number, 10 * number + 10)
    if number % 4 == 3:
        return made
    wrapped = b64encode(keys.wrap(keys.current, data_key(number))).decode()
    info = EncodingInfo("AAAA", (1,), 1, 2, 3, 4, keys.current, wrapped, "AAAA")
    return replace(made, encoding="aes-256-gcm", encoded=info)


def writer(store: ObjectStore, ids: CountingIds) -> ManifestWriter:
    found = load_newest(store, PATH)
    return ManifestWriter(store, PATH, FixedClock(), ids, "source", found.manifest.writer_epoch if found else 0, LIMITS)


@cache
def objects_of(count: int) -> dict[str, bytes]:
    store, ids = MemoryStore(), CountingIds("a")
    for number in range(count):
        add(store, encrypted(number), ids)
    return store.objects


def archived(count: int) -> MemoryStore:
    """A partition of so many segments; most of them lie in pages, some of those below others."""
    store = MemoryStore()
    store.objects = dict(objects_of(count))
    return store


def add(store: ObjectStore, one: SegmentEntry, ids: CountingIds) -> None:
    first = never_archived(PATH.topic, PATH.topic_id, PATH.partition, 0)
    writer(store, ids).commit(first, lambda before: segment_copied(before, one, (), "never", 0))


def newest(store: ObjectStore) -> Manifest:
    found = load_newest(store, PATH)
    assert found is not None
    return found.manifest


def rotated(store: ObjectStore, keys: LocalKeyRing = NOW, *, ids: CountingIds | None = None) -> RotationResult:
    """A run of the command on the partition."""
    at = newest(store)
    found = plan_rotation(store, at, keys.current)
    return Rotator(store, keys, FixedClock(), ids or CountingIds("b"), "rotation", pages_per_step=3).rotate(found, at)


def assert_rotated(store: ObjectStore, count: int) -> None:
    """Every data key is what it was, under the current key; nothing else of any entry has changed."""
    found = [*Entries.of(store, newest(store))]
    assert [e.base_offset for e in found] == [10 * n for n in range(count)]
    for number, one in enumerate(found):
        if number % 4 == 3:
            assert one.encoded is None
        else:
            assert one.encoded is not None
            assert one.encoded.key_id == "new"
            assert FINAL.unwrap("new", b64decode(one.encoded.wrapped_key)) == data_key(number)
            assert replace(one.encoded, key_id="", wrapped_key="") == EncodingInfo("AAAA", (1,), 1, 2, 3, 4, "", "", "AAAA")


COUNT = 28
DUE = 21


def test_every_due_entry_is_wrapped_anew_wherever_it_stands_and_no_object_is_touched() -> None:
    store = archived(COUNT)
    before = newest(store)
    assert any(ref.level == 1 for ref in before.pages)
    assert any(ref.level == 0 for ref in before.pages)
    door = Door(store)
    assert rotated(door) == RotationResult(PATH, DUE, DUE, DUE)
    assert_rotated(store, COUNT)
    assert_sound_chain(store, first_version=COUNT)
    keys = {call[1] for call in door.calls}
    assert not any("/segments/" in key for key in keys)
    assert set(verbs(door.calls)) == {"list", "get", "put_if_absent"}


def test_a_second_rotation_does_nothing() -> None:
    store = archived(COUNT)
    rotated(store)
    version = newest(store).version
    door = Door(store)
    assert rotated(door) == RotationResult(PATH, DUE, 0, 0)
    assert newest(store).version == version
    assert "put_if_absent" not in verbs(door.calls)


def test_what_a_dry_run_finds_is_what_a_rotation_does() -> None:
    store = archived(COUNT)
    door = Door(store)
    assert plan_rotation(door, newest(store), "new") == RotationResult(PATH, DUE, DUE, 0)
    assert set(verbs(door.calls)) == {"get"}


def test_a_partition_without_anything_encrypted_has_nothing_to_rotate() -> None:
    store = MemoryStore()
    add(store, entry(0, 10), CountingIds())
    assert rotated(store) == RotationResult(PATH, 0, 0, 0)
    assert newest(store).version == 1


def test_a_rotation_of_many_pages_takes_many_commits() -> None:
    store = archived(COUNT)
    before = newest(store).version
    assert rotated(store).rewrapped == DUE
    assert newest(store).version > before + 2
    assert_rotated(store, COUNT)
    assert_sound_chain(store, first_version=COUNT)


def test_a_reader_of_the_version_before_goes_on_with_the_former_key() -> None:
    store = archived(COUNT)
    before = newest(store)
    rotated(store)
    found = [e.encoded.key_id for e in Entries.of(store, before) if e.encoded is not None]
    assert found == ["old"] * DUE


# keys that are not there


@pytest.mark.parametrize(
    ("keys", "error"),
    [(FINAL, NoKey), (LocalKeyRing("others", "new", {"old": bytes([9] * 32), "new": bytes([1] * 32)}), WrongKey)],
)
def test_without_the_former_key_nothing_is_changed_and_the_segment_is_named(keys: LocalKeyRing, error: type[LogError]) -> None:
    store = archived(COUNT)
    before = dict(store.objects)
    found = rotated(store, keys)
    assert isinstance(found.error, error)
    assert "'old'" in str(found.error)
    assert ".log: " in str(found.error)
    assert (found.due, found.rewrapped) == (DUE, 0)
    assert store.objects == before


def test_a_wrapped_key_that_is_no_base64_is_corrupt() -> None:
    store = MemoryStore()
    one = encrypted(0)
    assert one.encoded is not None
    add(store, replace(one, encoded=replace(one.encoded, wrapped_key="*")), CountingIds())
    assert isinstance(rotated(store).error, Corrupt)


# what may happen on the way


def calls_of_a_rotation() -> int:
    door = Door(archived(COUNT))
    rotated(door)
    return len(door.calls)


@pytest.mark.slow
def test_a_rotation_that_is_killed_at_any_call_is_finished_by_the_next() -> None:
    seen = set[frozenset[tuple[str, bytes]]]()
    for number, after in product(range(1, calls_of_a_rotation() + 1), (False, True)):
        store = archived(COUNT)
        with pytest.raises(Crash):
            rotated(CrashesAt(store, number, after=after))
        if (left := frozenset(store.objects.items())) in seen:
            continue  # the next run knows nothing else
        seen.add(left)
        again = rotated(store, ids=CountingIds("c"))
        assert again.error is None
        assert again.rewrapped == again.due <= DUE
        assert_rotated(store, COUNT)
        assert_sound_chain(store, first_version=COUNT)
    assert len(seen) > 5


@pytest.mark.parametrize(
    "fails",
    [
        lambda store, number: FailsBefore(store, Unavailable("down"), Nth("put_if_absent", number)),
        lambda store, number: LosesAnswer(store, Nth("put_if_absent", number)),
        lambda store, number: AppliesLate(store, Nth("put_if_absent", number)),
    ],
    ids=["fails", "loses the answer", "applies it late"],
)
@pytest.mark.slow
def test_a_put_that_fails_costs_nothing_but_another_run(fails: Callable[[ObjectStore, int], Door]) -> None:
    puts = 0
    for number in range(1, 30):
        store = archived(COUNT)
        door = fails(store, number)
        first = rotated(door)
        if isinstance(door, AppliesLate):
            door.land()
        puts = verbs(door.calls).count("put_if_absent")
        if puts < number:
            break
        again = rotated(store, ids=CountingIds("c"))
        assert again.error is None
        assert first.rewrapped + again.rewrapped >= DUE
        assert_rotated(store, COUNT)
        assert_sound_chain(store, first_version=COUNT)
    assert 5 < puts < 29


@pytest.mark.slow
def test_copies_and_another_rotation_in_between_lose_nothing() -> None:
    for number in range(1, calls_of_a_rotation() + 1, 2):
        store = archived(COUNT)
        ids = CountingIds("c")

        def copy_more(store: ObjectStore = store, ids: CountingIds = ids) -> None:
            for n in range(COUNT, COUNT + 4):
                add(store, encrypted(n, NOW), ids)

        def rotate_too(store: ObjectStore = store) -> None:
            rotated(store, ids=CountingIds("d"))

        for meanwhile in (copy_more, rotate_too):
            found = rotated(RunsBetween(store, {number: meanwhile}), ids=CountingIds(meanwhile.__name__.encode().hex()[:4]))
            assert found.error is None
        count = len([*Entries.of(store, newest(store))])
        assert count == COUNT + 4
        assert_rotated(store, count)
        assert_sound_chain(store, first_version=COUNT)


def test_a_segment_that_is_copied_under_a_former_key_meanwhile_is_left_for_the_next_run() -> None:
    store = archived(COUNT)
    late = RunsBetween(store, {8: lambda: add(store, encrypted(COUNT, FORMER), CountingIds("c"))})
    assert rotated(late).error is None
    rotated(store, ids=CountingIds("d"))
    assert_rotated(store, COUNT + 1)


def test_a_rotation_of_a_version_whose_pages_have_been_swept_goes_on_from_the_newest() -> None:
    """A command opens all partitions of a topic first, and may come to the last of them a day later."""
    between = {"old": bytes(32), "between": bytes([2] * 32)}
    store = archived(COUNT)
    stale, found = newest(store), plan_rotation(store, newest(store), "new")
    rotated(store, LocalKeyRing("keys of yesterday", "between", between))
    kept = {PATH.page(name) for name in Entries.of(store, newest(store)).page_names()}
    gone = {PATH.page(name) for name in Entries.of(store, stale).page_names()} - kept
    assert gone
    for key in gone:
        store.delete(key)
    assert plan_rotation(store, stale, "new") == RotationResult(PATH, DUE, DUE, 0)
    keys = LocalKeyRing("keys of today", "new", {**between, "new": bytes([1] * 32)})
    rotator = Rotator(store, keys, FixedClock(), CountingIds("c"), "rotation")
    assert rotator.rotate(found, stale).error is None
    assert_rotated(store, COUNT)


def test_a_page_that_the_newest_version_names_and_that_is_missing_is_damage() -> None:
    store = archived(COUNT)
    store.delete(PATH.page(newest(store).pages[0].name))
    assert isinstance(plan_rotation(store, newest(store), "new").error, Corrupt)


# a sweep in between


class SweptBeforeTheCommit(Door):
    """A rotation sleeps when its first pages are written: a segment is archived, a day goes by, and a sweep runs."""

    def __init__(self, store: MemoryStore, clock: SleptClock) -> None:
        super().__init__(store)
        self.store, self.clock = store, clock
        self.swept: set[Kind] = set()

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if verb == "list" and "put_if_absent" in verbs(self.calls) and not self.swept:
            self.clock.now += 2 * HOUR_MS
            add(self.store, encrypted(COUNT), CountingIds("c"))
            self.clock.now += 30 * HOUR_MS
            due = sweep.plan(self.store, PATH, self.clock.now, 24 * HOUR_MS)
            self.swept = {piece.kind for piece in sweep.sweep(due, self.store, self.clock, CountingIds("d"), self.clock.now)}
        return call()


def test_no_rotation_names_a_page_that_a_sweep_has_deleted_while_it_slept() -> None:
    """The swept pages may hold the only copies of data keys."""
    clock = SleptClock()
    store = MemoryStore(clock)
    store.objects = dict(objects_of(COUNT))
    store.modified = dict.fromkeys(store.objects, clock.now)
    door = SweptBeforeTheCommit(store, clock)
    assert rotated(door, ids=CountingIds("b")).error is None
    assert Kind.page in door.swept
    rotated(store, ids=CountingIds("e"))
    assert_rotated(store, COUNT + 1)
