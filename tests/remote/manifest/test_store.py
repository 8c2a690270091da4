"""The commit: optimistic, by put-if-absent, with no other lock."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, count

import pytest
from archive_fakes import (
    WRITES,
    AppliesLate,
    CountingIds,
    Crash,
    CrashesAt,
    Door,
    FailsBefore,
    FixedClock,
    ListsStale,
    LosesAnswer,
    MemoryStore,
    Nth,
    RunsBetween,
    verbs,
)
from made_manifests import PATH, assert_sound_chain, entry

from local_log.errors import Corrupt
from local_log.formats.checkpoints import EpochEntry
from remote.errors import Conflict, Fenced, Invalid, RemoteError, Unavailable, Unknown
from remote.manifest.codec import encode, sha256
from remote.manifest.model import Manifest, never_archived
from remote.manifest.store import (
    COMMIT_ATTEMPTS_MAX,
    PUT_ATTEMPTS_MAX,
    ManifestWriter,
    load_newest,
    load_version,
    newest_version,
)
from remote.manifest.transitions import claimed, segment_copied, source_seen
from remote.object_store import ObjectStore

FIRST = never_archived(PATH.topic, PATH.topic_id, PATH.partition, 0)
PUT = 3
"""The number of a commit's put among its calls: two listings, or a listing and a get, come first."""

Change = Callable[[Manifest], Manifest]


class Writer:
    """A writer with an id source of its own, who copies segments of ten offsets by number."""

    def __init__(self, store: ObjectStore, name: str = "a", epoch: int = 0) -> None:
        self.clock = FixedClock()
        self.writer = ManifestWriter(store, PATH, self.clock, CountingIds(name), name, epoch)

    def commit(self, change: Change) -> Manifest:
        return self.writer.commit(FIRST, change)

    def copy(self, *numbers: int) -> Manifest:
        for number in numbers:
            done = self.commit(copied(number))
        return done


def copied(number: int) -> Change:
    one = entry(10 * number, 10 * number + 10)
    return lambda before: segment_copied(before, one, (EpochEntry(0, 0),), "lost", 7)


def held(manifest: Manifest) -> list[int]:
    """The numbers of the segments that a manifest names."""
    return [e.base_offset // 10 for e in manifest.entries]


def sweep(store: MemoryStore, up_to: int) -> None:
    """What the sweep does to old versions."""
    for version in range(1, up_to + 1):
        store.delete(PATH.manifest(version))


def calls_of_a_commit(versions_before: int = 0) -> int:
    store = MemoryStore()
    for number in range(versions_before):
        Writer(store, "c").copy(number)
    door = Door(store)
    Writer(door).copy(90)
    return len(door.calls)


# one writer


def test_nothing_is_archived_before_the_first_commit() -> None:
    assert load_newest(MemoryStore(), PATH) is None
    assert newest_version(MemoryStore(), PATH) == 0


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


@pytest.mark.parametrize("listings", [1, 2, 3, 4])
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


# answers that get lost


@pytest.mark.parametrize("lost", [(1,), (1, 2), (1, 2, 3), ()])
def test_a_commit_whose_answers_were_lost_is_won_once(lost: tuple[int, ...]) -> None:
    store = MemoryStore()
    door = LosesAnswer(store, Nth("put_if_absent", *lost))
    writer = Writer(door)
    assert held(writer.copy(0)) == [0]
    assert assert_sound_chain(store).version == 1
    assert list(store.objects) == [PATH.manifest(1)]
    assert verbs(door.calls).count("put_if_absent") == min(PUT_ATTEMPTS_MAX, len(lost) + 1 if lost else PUT_ATTEMPTS_MAX)
    assert len(writer.clock.slept) == (len(lost) or PUT_ATTEMPTS_MAX - 1)


def test_a_put_that_was_lost_before_it_came_through_is_made_again() -> None:
    store = MemoryStore()
    door = AppliesLate(store, Nth("put_if_absent", 1, 2))
    Writer(door).copy(0)
    door.land()
    assert held(assert_sound_chain(store)) == [0]
    assert assert_sound_chain(store).version == 1


def test_a_commit_that_nobody_knows_of_says_so_and_deletes_nothing() -> None:
    store = MemoryStore()
    Writer(store, "b").copy(0)
    before = dict(store.objects)
    door = AppliesLate(store, Nth("put_if_absent"))
    writer = Writer(door)
    with pytest.raises(Unknown, match="nothing was deleted"):
        writer.copy(1)
    assert store.objects == before
    assert "delete" not in verbs(store.calls)
    assert verbs(door.calls).count("put_if_absent") == PUT_ATTEMPTS_MAX
    assert writer.clock.slept == sorted(writer.clock.slept)


@pytest.mark.parametrize("meanwhile", [(), (1,), (2,), (1, 2), (2, 3, 4)], ids=str)
def test_a_commit_that_lands_after_its_writer_gave_up_leaves_a_sound_chain(meanwhile: tuple[int, ...]) -> None:
    store = MemoryStore()
    Writer(store, "b").copy(0)
    door = AppliesLate(store, Nth("put_if_absent"))
    with pytest.raises(Unknown):
        Writer(door).copy(1)
    for number in meanwhile[:1]:
        Writer(store, "b").copy(number)
    door.land()
    for number in meanwhile[1:]:
        Writer(store, "b").copy(number)
    assert_sound_chain(store)
    Writer(store).copy(1)
    assert held(assert_sound_chain(store)) == sorted({0, 1, *meanwhile})


def test_a_commit_that_lands_after_a_sweep_has_freed_its_key_changes_nothing() -> None:
    store = MemoryStore()
    Writer(store, "b").copy(0)
    door = AppliesLate(store, Nth("put_if_absent"))
    with pytest.raises(Unknown):
        Writer(door).copy(1)
    Writer(store, "b").copy(2, 3, 4, 5)
    sweep(store, 3)
    door.land()
    assert PATH.manifest(2) in store.objects
    Writer(store).copy(1)
    assert held(assert_sound_chain(store, first_version=5)) == [0, 1, 2, 3, 4, 5]


def test_a_put_of_unknown_outcome_is_not_called_failed_because_the_next_try_failed() -> None:
    store = MemoryStore()
    lossy = LosesAnswer(store, Nth("put_if_absent", 1))
    door = FailsBefore(lossy, Unavailable("down"), Nth("put_if_absent", 2))
    with suppress(Unknown):
        Writer(door).copy(0)
    assert held(assert_sound_chain(store)) == [0]


def test_whoever_says_unavailable_has_changed_nothing() -> None:
    for number in range(1, calls_of_a_commit(1) + 1):
        store = MemoryStore()
        Writer(store, "b").copy(0)
        before = dict(store.objects)
        calls = count(1)
        door = FailsBefore(store, Unavailable("down"), lambda *_, calls=calls, number=number: next(calls) == number)
        try:
            Writer(door).copy(1)
        except Unavailable:
            assert store.objects == before, f"call {number}, {door.calls[number - 1]}: Unavailable, and yet committed"
        except Unknown:
            pass
        Writer(store).copy(1)
        assert held(assert_sound_chain(store)) == [0, 1]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_writer_that_dies_anywhere_leaves_a_chain_for_the_next(after: bool) -> None:
    for number in range(1, calls_of_a_commit(1) + 1):
        store = MemoryStore()
        Writer(store, "b").copy(0)
        with pytest.raises(Crash):
            Writer(CrashesAt(store, number, after=after)).copy(1)
        assert_sound_chain(store)
        Writer(store, "c").copy(1, 2)
        newest = assert_sound_chain(store)
        assert held(newest) == [0, 1, 2]


# two writers


def test_the_key_taken_by_another_writer_means_reload_and_apply_again() -> None:
    store = MemoryStore()
    door = RunsBetween(store, {PUT: lambda: Writer(store, "b").copy(1)})
    Writer(door).copy(0)
    assert verbs(door.calls).count("put_if_absent") == 2
    newest = assert_sound_chain(store)
    assert held(newest) == [0, 1]
    assert (newest.version, newest.writer) == (2, "a")


@pytest.mark.parametrize("versions_before", [0, 1, 3])
def test_a_commit_of_another_writer_before_any_call_gives_one_chain_of_both(versions_before: int) -> None:
    for number in range(1, calls_of_a_commit(versions_before) + 1):
        store = MemoryStore()
        for earlier in range(versions_before):
            Writer(store, "c").copy(earlier)
        door = RunsBetween(store, {number: lambda store=store: Writer(store, "b").copy(91)})
        Writer(door).copy(90)
        assert not door.actions
        newest = assert_sound_chain(store)
        assert held(newest) == [*range(versions_before), 90, 91], number
        assert newest.version == versions_before + 2


def test_commits_of_others_before_any_two_or_three_calls_give_one_chain_of_all() -> None:
    for size in (2, 3):
        for numbers in combinations(range(1, 12), size):
            store = MemoryStore()
            Writer(store, "c").copy(0)
            actions = {n: (lambda store=store, n=n: Writer(store, "b").copy(20 + n)) for n in numbers}
            door = RunsBetween(store, actions)
            Writer(door).copy(90)
            ran = [20 + n for n in numbers if n not in door.actions]
            assert held(assert_sound_chain(store)) == [0, *ran, 90], numbers


def test_lost_answers_and_another_writer_before_any_call_give_one_chain_of_both() -> None:
    for lost in ((1,), (1, 2), (1, 2, 3), ()):
        for number in range(1, 12):
            store = MemoryStore()
            Writer(store, "c").copy(0)
            door = RunsBetween(
                LosesAnswer(store, Nth("put_if_absent", *lost)), {number: lambda store=store: Writer(store, "b").copy(91)}
            )
            Writer(door).copy(90)
            ran = [] if door.actions else [91]
            newest = assert_sound_chain(store)
            assert held(newest) == [0, 90, *ran], (lost, number)
            assert newest.version == 2 + len(ran)


def test_both_writers_copying_the_same_segment_name_it_once() -> None:
    for number in range(1, calls_of_a_commit(1) + 3):
        store = MemoryStore()
        Writer(store, "c").copy(0)
        Writer(RunsBetween(store, {number: lambda store=store: Writer(store, "b").copy(1)})).copy(1)
        newest = assert_sound_chain(store)
        assert (held(newest), newest.version) == ([0, 1], 2), number


def test_a_writer_that_always_comes_too_late_stops_with_conflict() -> None:
    store = MemoryStore()
    numbers = iter(range(100, 1_000))

    class Hurries(Door):
        def put_if_absent(self, key: str, body: bytes) -> None:  # type: ignore[override]
            Writer(store, "b").copy(next(numbers))
            super().put_if_absent(key, body)

    door = Hurries(store)
    with pytest.raises(Conflict, match="too late"):
        Writer(door).copy(0)
    assert verbs(door.calls).count("put_if_absent") == COMMIT_ATTEMPTS_MAX
    assert 0 not in held(assert_sound_chain(store))


# a writer that sleeps while versions are swept


def others_commit_and_sweep(store: MemoryStore, base: int, swept: int = 3) -> None:
    """Five commits on top of version `base`, after which a sweep deletes up to version `base` + `swept`."""
    Writer(store, "b").copy(1, 2, 3, 4, 5)
    sweep(store, base + swept)


@pytest.mark.parametrize("swept", [1, 2, 3, 4])
@pytest.mark.parametrize("base", [0, 1, 2])
def test_a_put_won_on_a_swept_key_is_noticed_and_applied_again(base: int, swept: int) -> None:
    store = MemoryStore()
    for earlier in range(base):
        Writer(store, "c").copy(10 + earlier)
    door = RunsBetween(store, {PUT: lambda: others_commit_and_sweep(store, base, swept)})
    done = Writer(door).copy(90)
    assert door.calls[PUT - 1] == ("put_if_absent", PATH.manifest(base + 1))
    assert PATH.manifest(base + 1) in store.objects  # won at the store, and nobody will build on it
    assert done.version == base + 6
    newest = assert_sound_chain(store, first_version=base + 6)
    assert sorted(held(newest)) == sorted([*range(10, 10 + base), 1, 2, 3, 4, 5, 90])


@pytest.mark.parametrize("base", [0, 1, 2])
def test_a_writer_that_sleeps_through_a_sweep_before_any_call_ends_in_the_one_chain(base: int) -> None:
    for number in range(1, calls_of_a_commit(base) + 1):
        store = MemoryStore()
        for earlier in range(base):
            Writer(store, "c").copy(10 + earlier)
        door = RunsBetween(store, {number: lambda store=store: others_commit_and_sweep(store, base)})
        try:
            Writer(door).copy(90)
        except (Unavailable, Unknown, Conflict):  # what tells the caller to come again
            Writer(store).copy(90)
        newest = assert_sound_chain(store, first_version=base + 6)
        assert sorted(held(newest)) == sorted([*range(10, 10 + base), 1, 2, 3, 4, 5, 90]), (number, door.calls)


def test_a_taken_key_that_is_swept_before_it_is_read_back_means_reload() -> None:
    store = MemoryStore()
    Writer(store, "c").copy(0)
    actions = {PUT: lambda: Writer(store, "b").copy(1, 2, 3, 4, 5), PUT + 1: lambda: sweep(store, 4)}
    door = RunsBetween(store, actions)
    try:
        Writer(door).copy(90)
    except (Unavailable, Unknown, Conflict):
        Writer(store).copy(90)
    assert door.calls[PUT - 1 : PUT + 1] == [("put_if_absent", PATH.manifest(2)), ("get", PATH.manifest(2))]
    assert sorted(held(assert_sound_chain(store, first_version=6))) == [0, 1, 2, 3, 4, 5, 90]


def test_a_writer_that_wins_a_swept_key_does_not_mislead_the_next_sleeper() -> None:
    store = MemoryStore()
    Writer(store, "c").copy(0)
    inner = RunsBetween(store, {PUT: lambda: others_commit_and_sweep(store, 1)})
    outer = RunsBetween(store, {PUT: lambda: Writer(inner, "d").copy(80)})
    Writer(outer).copy(90)
    assert sorted(held(assert_sound_chain(store, first_version=6))) == [0, 1, 2, 3, 4, 5, 80, 90]


# fencing


def claim(store: ObjectStore, name: str, epoch: int) -> Manifest:
    return Writer(store, name, epoch).commit(claimed)


def test_a_claim_raises_the_writer_epoch() -> None:
    store = MemoryStore()
    Writer(store).copy(0)
    assert claim(store, "b", 0).writer_epoch == 1
    assert claim(store, "c", 1).writer_epoch == 2
    assert assert_sound_chain(store).writer_epoch == 2


@pytest.mark.parametrize("lost", [(1,), (1, 2, 3), ()])
def test_a_claim_whose_answers_were_lost_is_made_once_and_does_not_fence_itself(lost: tuple[int, ...]) -> None:
    store = MemoryStore()
    Writer(store).copy(0)
    assert claim(LosesAnswer(store, Nth("put_if_absent", *lost)), "b", 0).writer_epoch == 1
    assert (assert_sound_chain(store).version, assert_sound_chain(store).writer_epoch) == (2, 1)


def test_a_writer_of_a_lower_epoch_is_fenced_and_writes_nothing() -> None:
    store = MemoryStore()
    Writer(store).copy(0)
    claim(store, "b", 0)
    store.calls.clear()
    for change in (copied(1), claimed, lambda m: source_seen(m, "a", 0)):
        with pytest.raises(Fenced, match="writer epoch 1 of b"):
            Writer(store).commit(change)
    assert WRITES.isdisjoint(verbs(store.calls))
    Writer(store, "b", epoch=1).copy(1)
    assert held(assert_sound_chain(store)) == [0, 1]


def test_a_writer_is_fenced_by_a_claim_before_any_call_up_to_its_put() -> None:
    for number in (1, 2, 3):
        store = MemoryStore()
        Writer(store, "c").copy(0)
        door = RunsBetween(store, {number: lambda store=store: claim(store, "b", 0)})
        with pytest.raises(Fenced):
            Writer(door).copy(1)
        assert held(assert_sound_chain(store)) == [0]


def test_of_two_that_claim_at_once_one_is_fenced() -> None:
    store = MemoryStore()
    Writer(store, "c").copy(0)
    with pytest.raises(RemoteError) as raised:
        claim(RunsBetween(store, {PUT: lambda: claim(store, "b", 0)}), "a", 0)
    assert isinstance(raised.value, Fenced)
    newest = assert_sound_chain(store)
    assert (newest.writer, newest.writer_epoch) == ("b", 1)
