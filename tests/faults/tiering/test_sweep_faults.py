"""The sweep with a fault at every store call, writers that sleep, slow readers, and clocks that jump."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from archive_fakes import AppliesLate, CountingIds, Door, MemoryStore, RunsBetween, SleptClock
from made_manifests import PATH
from retained_worlds import (
    DELAY_MS,
    FIRST,
    GRACE_MS,
    HOUR_MS,
    Reader,
    World,
    assert_whole,
    caught,
    copied,
    due_start,
    faults_of,
    faulty,
    made,
    retain_and_sweep,
    survived,
)

from local_log.errors import Corrupt, Fenced
from remote.manifest.entries import Entries
from remote.manifest.pins import Pins
from remote.store import store_time as store_clock
from tiering.sweep import collect as sweep

pytestmark = pytest.mark.usefixtures("pages_decoded_once")


@pytest.fixture(scope="module")
def world() -> World:
    """A partition of which some expired."""
    return made()


@pytest.fixture(scope="module")
def littered(world: World) -> World:
    """The same after retention, copies that failed, commits that were lost, a pin that is over, and time."""
    one = world.fork()
    one.retain()
    for number in (3, 20, 90):
        one.upload(number, CountingIds(f"1{number:03}"))
    for call in (5, 6, 7):
        survived(lambda call=call: one.retain(faulty(one, "killed after", call), name="2"))
    page = min(key for key in one.store.objects if "/pages/" in key)
    one.store.put_if_absent(page.replace(page[-40:-8], "e" * 32), b"a page of a lost commit")
    Reader.opened(one, pinned=True)  # until then, it is over
    one.hours(DELAY_MS / HOUR_MS + 1)
    one.retain()
    one.hours(30)
    return one


def sweep_faults(littered: World) -> list[tuple[str, int]]:
    one = littered.fork()
    Reader.opened(one, pinned=True, name="f")
    return [*faults_of(lambda w, door: w.sweep(door), one)]


def test_the_sweep_takes_what_nobody_names_and_nothing_else(littered: World) -> None:
    one = littered.fork()
    orphans = one.orphans()
    kinds = {"/segments/", "/pages/", "/manifest/", "/pins/"}
    assert {kind for kind in kinds if any(kind in key for key in orphans)} == kinds
    gone = {piece.key for piece in one.sweep()}
    assert gone <= orphans
    assert {key for key in one.orphans() if "/segments/" in key or "/pins/" in key} == set()
    assert_whole(one, due_start(one))
    retain_and_sweep(one)
    assert one.orphans() == set()
    assert one.sweep(name="4") == []


def test_what_is_no_page_stays_among_pages(littered: World) -> None:
    one = littered.fork()
    foreign = f"{PATH.pages}readme.txt"
    one.store.put_if_absent(foreign, b"Somebody else's.")
    one.hours(400 * 24)
    assert one.sweep()
    assert foreign in one.store.objects


def check_sweep(littered: World, fault: str, number: int) -> None:
    """The same of the sweep."""
    one = littered.fork()
    pinned = Reader.opened(one, pinned=True, name="f")
    door = faulty(one, fault, number)
    survived(lambda: one.sweep(door))
    assert_whole(one, due_start(one))
    hurried = Reader.opened(one, pinned=False)
    one.copy(one.copied, name="d")
    survived(lambda: one.retain(name="e"))
    one.hours(2)
    survived(lambda: one.sweep(name="5"))
    if isinstance(door, AppliesLate):
        door.land()
    assert_whole(one, due_start(one))
    hurried.assert_reads_all(one)
    one.hours(8)
    one.sweep(name="6")
    pinned.assert_reads_all(one)
    one.hours(3)
    retain_and_sweep(one)
    assert one.orphans() == set()
    assert_whole(one, due_start(one))


def test_a_fault_at_any_call_of_the_sweep_loses_nothing_and_later_runs_leave_no_orphan(littered: World) -> None:
    faults = sweep_faults(littered)
    for fault, number in faults:
        check_sweep(littered, fault, number)
    assert len(faults) > 80


@pytest.mark.parametrize("off_ms", [-HOUR_MS, HOUR_MS])
def test_the_sweep_goes_by_the_store_s_clock(littered: World, off_ms: int) -> None:
    one, other = littered.fork(), littered.fork()
    assert one.sweep(off_ms=off_ms) == other.sweep()


def test_what_is_younger_than_the_grace_time_stays(world: World) -> None:
    one = world.fork()
    one.upload(77, CountingIds("1"))
    one.hours(GRACE_MS / HOUR_MS)
    assert not [p for p in one.sweep() if p.kind == "segment"]
    one.hours(0.01)
    assert len([p for p in one.sweep(name="3") if p.kind == "segment"]) == 2


def check_sleeper(world: World, number: int) -> None:
    """A writer uploads, sleeps for longer than any grace time, and commits just before that call of the sweep, or after it."""
    one = world.fork()
    sleeper = one.writer("d")
    entry = one.upload(one.copied, CountingIds("1"))
    one.hours(100)

    def wakes() -> None:
        try:
            sleeper.commit(FIRST, copied(entry))
        except Fenced:
            return
        one.copied += 1

    door = RunsBetween(one.store, {number: wakes})
    one.sweep(door)
    if door.actions:
        wakes()
    assert_whole(one, due_start(one))


@pytest.fixture(scope="module")
def small() -> World:
    """Two segments, soon swept."""
    clock = SleptClock()
    one = World(MemoryStore(clock), clock)
    one.copy(0, 1)
    return one


def calls_of_a_sweep(world: World) -> range:
    one = world.fork()
    one.upload(one.copied, CountingIds("1"))
    one.hours(100)
    door = Door(one.store)
    one.sweep(door)
    return range(1, len(door.calls) + 2)


def test_a_writer_that_slept_between_upload_and_commit_names_nothing_that_is_gone(small: World) -> None:
    for number in calls_of_a_sweep(small):
        check_sleeper(small, number)


def test_objects_of_a_partition_that_was_never_committed_wait_for_a_month(world: World) -> None:
    one = world.fork()
    page, foreign = next(key for key in one.store.objects if "/pages/" in key), f"{PATH.segments}readme.txt"
    one.store.objects = {}
    one.store.put_if_absent(page, b"a page of a commit that never was")
    one.store.put_if_absent(foreign, b"Somebody else's.")
    one.upload(0, CountingIds("1"))
    one.hours(24 * 30 - 1)
    assert one.sweep() == []
    one.hours(2)
    assert len(one.sweep()) == 3
    assert [*one.store.objects] == [foreign]


def test_a_pin_that_nobody_can_read_stops_the_sweep_and_is_told(littered: World) -> None:
    one = littered.fork()
    one.store.put_if_absent(PATH.pin("d" * 32), b"{")
    due = sweep.plan(one.store, PATH, one.clock.now_ms(), GRACE_MS)
    assert {piece.kind for piece in due.all} <= {"pin"}
    assert [type(e) for e in due.damaged_pins] == [Corrupt]


# mutants: the checks above see them

Mutant = Callable[[pytest.MonkeyPatch], None]


def sweep_without_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "pins_of", lambda *_: Pins())


def sweep_by_the_machine_s_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        store_clock, "store_now_ms", lambda store, ids: getattr(store, "inner", store).clock.now_ms() + 5 * HOUR_MS
    )


def sweep_that_names_only_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    true = sweep._segment_names
    bare = lambda entries: Entries(replace(entries.manifest, deleting=()), entries.pages)  # noqa: E731
    monkeypatch.setattr(sweep, "_segment_names", lambda entries, names: true(bare(entries), names))


def sweep_that_asks_no_second_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "still_unnamed", lambda due, *_: [*due.unclaimed])


def sweep_that_claims_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "claim", lambda *_: None)


def sweep_that_deletes_the_newest_versions_first(monkeypatch: pytest.MonkeyPatch) -> None:
    true = sweep.plan

    def plan(*arguments: Any) -> sweep.SweepPlan:
        due = true(*arguments)
        return replace(due, garbage=tuple(sorted(due.garbage, key=lambda piece: piece.key)))

    monkeypatch.setattr(sweep, "plan", plan)


@pytest.mark.parametrize(
    "mutant",
    [
        sweep_without_pins,
        sweep_by_the_machine_s_clock,
        sweep_that_names_only_what_is_read,
        sweep_that_deletes_the_newest_versions_first,
    ],
)
def test_a_sweep_that_goes_wrong_is_caught(littered: World, monkeypatch: pytest.MonkeyPatch, mutant: Mutant) -> None:
    faults = sweep_faults(littered)
    mutant(monkeypatch)
    assert caught(check_sweep, littered, faults)


@pytest.mark.parametrize("mutant", [sweep_that_asks_no_second_time, sweep_that_claims_nothing])
def test_a_sweep_that_trusts_what_it_saw_first_is_caught(small: World, monkeypatch: pytest.MonkeyPatch, mutant: Mutant) -> None:
    numbers = calls_of_a_sweep(small)
    mutant(monkeypatch)
    assert caught(check_sleeper, small, ((number,) for number in numbers))
