"""The objects of expired segments go several at a time, and what cannot go keeps its place in the manifest."""

import threading
from dataclasses import replace

import pytest
from archive_fakes import CountingIds, Door, FailsBefore, MemoryStore, SleptClock
from made_manifests import PATH
from retained_worlds import AGE_MS, DELAY_MS, LIMITS, World

from local_log.errors import Conflict, Invalid, LogError, Unavailable
from remote.manifest.entries import Entries
from remote.manifest.model import PageRef
from remote.manifest.paging import has_below
from remote.store.api import ObjectStore
from remote.store.store_time import StoreRun
from tiering.retention import expire as retention
from tiering.retention.plan import Policy
from tiering.sweep import collect as sweep


class Meets(Door):
    """Ends a deletion only when several are under way."""

    def __init__(self, inner: ObjectStore, parties: int) -> None:
        super().__init__(inner)
        self.barrier = threading.Barrier(parties)

    def delete(self, key: str) -> None:
        if "/segments/" in key:
            self.barrier.wait(20)
        super().delete(key)


@pytest.fixture
def world() -> World:
    """Eight segments that expired long enough ago."""
    clock = SleptClock()
    one = World(MemoryStore(clock), clock)
    one.copy(*range(8))
    one.hours(24)
    assert one.retain().log_start_offset == 80
    one.hours(24)
    return one


def retain(world: World, door: Door, threads: int) -> retention.Expired:
    due = retention.plan(world.manifest, door, Policy(AGE_MS, None, DELAY_MS), world.clock.now_ms())
    return retention.expire(due, StoreRun(door, world.clock, CountingIds("e")), "retain", threads=threads)


def objects(world: World) -> list[str]:
    return [key for key in world.store.objects if "/segments/" in key]


def test_several_objects_are_deleted_at_a_time(world: World) -> None:
    items = len(world.manifest.deleting)
    done = retain(world, Meets(world.store, 4), 4)
    assert (done.deleted, done.error) == (items, None)
    assert (objects(world), world.manifest.deleting) == ([], ())


@pytest.mark.parametrize("threads", [1, 4])
def test_what_cannot_be_deleted_waits_on_and_keeps_nobody_from_the_others(world: World, threads: int) -> None:
    first = world.manifest.deleting[0]
    entry = next(Entries.of(world.store, world.manifest).deleting(first))
    kept = PATH.segment(entry.log_name)
    door = FailsBefore(world.store, Invalid("not allowed"), lambda verb, key: (verb, key) == ("delete", kept))
    done = retain(world, door, threads)
    assert isinstance(done.error, Invalid)
    assert [d.id for d in world.manifest.deleting] == [first.id]
    assert kept in objects(world)
    assert len(objects(world)) <= 4  # of a page it keeps at most its entries
    assert retain(world, Door(world.store), threads).error is None
    assert (objects(world), world.manifest.deleting) == ([], ())


@pytest.mark.parametrize(("threads", "asked_max"), [(1, 1), (4, 8)])
def test_a_store_that_is_away_is_not_asked_for_every_object(world: World, threads: int, asked_max: int) -> None:
    waiting = world.manifest.deleting
    error: LogError = Unavailable("no answer")
    door = FailsBefore(world.store, error, lambda verb, key: verb == "delete" and "/segments/" in key)
    done = retain(world, door, threads)
    assert done.error is error
    assert len([key for verb, key, *_ in door.calls if verb == "delete" and "/segments/" in key]) <= asked_max
    assert world.manifest.deleting == waiting


def test_who_comes_after_another_process_has_done_it_all_is_told_so_and_misses_no_page(world: World) -> None:
    """A process that had read the manifest slept: then the objects were deleted, and their pages, too."""
    before = world.manifest
    assert any(isinstance(d.item, PageRef) for d in before.deleting)
    assert any(not isinstance(d.item, PageRef) for d in before.deleting)
    assert retain(world, Door(world.store), 1).error is None
    world.hours(48)
    assert [piece for piece in world.sweep() if "/pages/" in str(piece)]
    policy = Policy(AGE_MS, None, DELAY_MS)
    due = retention.plan(before, world.store, policy, world.clock.now_ms())
    done = retention.expire(due, StoreRun(world.store, world.clock, CountingIds("g")), "retain")
    assert isinstance(done.error, Conflict)
    assert "run the same command again" in str(done.error)
    assert world.manifest.deleting == ()


def test_the_sweep_deletes_several_at_a_time(world: World) -> None:
    for number in range(8, 12):
        world.upload(number, CountingIds("1"))
    world.hours(48)
    now_ms = world.clock.now_ms()
    due = sweep.plan(world.store, PATH, now_ms, 1)
    assert len([piece for piece in due.unclaimed if piece.kind == "segment"]) == 8
    gone = [*sweep.sweep(due, Meets(world.store, 4), world.clock, CountingIds("b"), now_ms, threads=4)]
    assert {piece.key for piece in gone} >= {piece.key for piece in due.unclaimed}
    assert not {piece.key for piece in due.unclaimed} & set(world.store.objects)


def test_what_finds_no_room_among_what_waits_is_left_to_the_next_run() -> None:
    clock = SleptClock()
    one = World(MemoryStore(clock), clock)
    one.copy(*range(3))
    writer = replace(one.writer(), limits=replace(LIMITS, deleting_max=2))
    after = retention.advance_log_start_offset(writer, 30, clock.now_ms())
    assert (len(after.deleting), after.log_start_offset) == (2, 30)
    assert has_below(after)
