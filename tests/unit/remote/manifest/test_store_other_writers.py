"""The commit beside other writers: who comes too late, who slept through a sweep, who was fenced."""

from itertools import combinations

import pytest
from archive_fakes import WRITES, Door, LosesAnswer, MemoryStore, Nth, RunsBetween, verbs
from made_manifests import PATH, assert_sound_chain
from manifest_writers import FIRST_PUT, PUT, Writer, calls_of_a_commit, copied, held, sweep

from local_log.errors import Conflict, Fenced, LogError, Unavailable, Unknown
from remote.manifest.model import Manifest
from remote.manifest.store import COMMIT_ATTEMPTS_MAX
from remote.manifest.transitions import claimed, source_seen
from remote.store.api import ObjectStore

# two writers


def test_the_key_taken_by_another_writer_means_reload_and_apply_again() -> None:
    store = MemoryStore()
    door = RunsBetween(store, {FIRST_PUT: lambda: Writer(store, "b").copy(1)})
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
    put = PUT if base else FIRST_PUT
    door = RunsBetween(store, {put: lambda: others_commit_and_sweep(store, base, swept)})
    done = Writer(door).copy(90)
    assert door.calls[put - 1] == ("put_if_absent", PATH.manifest(base + 1))
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
    with pytest.raises(LogError) as raised:
        claim(RunsBetween(store, {PUT: lambda: claim(store, "b", 0)}), "a", 0)
    assert isinstance(raised.value, Fenced)
    newest = assert_sound_chain(store)
    assert (newest.writer, newest.writer_epoch) == ("b", 1)
