"""The commit when an answer is lost, comes late, or the writer dies: won once, and never called failed when it was not."""

from contextlib import suppress
from itertools import count

import pytest
from archive_fakes import AppliesLate, Crash, CrashesAt, FailsBefore, LosesAnswer, MemoryStore, Nth, verbs
from made_manifests import PATH, assert_sound_chain
from manifest_writers import Writer, calls_of_a_commit, held, sweep

from local_log.errors import Unavailable, Unknown
from remote.store.conditional_put import PUT_ATTEMPTS_MAX


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
