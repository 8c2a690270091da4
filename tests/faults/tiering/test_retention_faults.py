"""Retention with a fault at every store call, other writers in between, slow readers, and clocks that jump."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from archive_fakes import AppliesLate, CountingIds, Door, RunsBetween
from made_manifests import PATH
from retained_worlds import (
    AGE_MS,
    DELAY_MS,
    HOUR_MS,
    Reader,
    World,
    assert_whole,
    caught,
    due_start,
    faults_of,
    faulty,
    made,
    retain_and_sweep,
    survived,
)

from local_log.errors import Corrupt, Invalid, NotFound
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.manifest.pins import Pins
from remote.manifest.store import ManifestWriter
from remote.store.store_time import StoreRun
from tiering.retention import expire as retention
from tiering.retention.plan import Policy, RetentionPlan
from tiering.retention.policy import read_given
from tiering.retention.run import Retention

pytestmark = pytest.mark.usefixtures("pages_decoded_once")

T = TypeVar("T")


@pytest.fixture(scope="module")
def world() -> World:
    """Some segments are due, others expired before, long enough ago."""
    one = made()
    assert one.manifest.deleting
    assert one.manifest.pages
    assert due_start(one) > one.manifest.log_start_offset
    return one


def retention_faults(world: World) -> list[tuple[str, int]]:
    one = world.fork()
    Reader.opened(one, pinned=True)
    return [*faults_of(lambda w, door: w.retain(door), one)]


def test_retention_gives_up_what_is_due_and_its_objects_go_after_the_delay(world: World) -> None:
    one = world.fork()
    start, waited = due_start(one), len(one.manifest.deleting)
    keys = set(one.store.objects)
    done = one.retain()
    assert (done.deleted, done.log_start_offset, done.error) == (waited, start, None)
    assert len(keys - set(one.store.objects)) > 0
    expired = {d.id for d in one.manifest.deleting}
    assert expired
    keys = set(one.store.objects)
    assert one.retain(name="2").deleted == 0
    assert keys <= set(one.store.objects)
    one.hours(DELAY_MS / HOUR_MS)
    assert one.retain(name="3").deleted == len(expired)
    assert_whole(one, due_start(one))


def check_retention(world: World, fault: str, number: int) -> None:
    """Retention with a fault, an offload and another retention, the call that lands late, and a reader with a pin."""
    one, start = world.fork(), due_start(world)
    pinned = Reader.opened(one, pinned=True)
    door = faulty(one, fault, number)
    survived(lambda: one.retain(door))
    assert_whole(one, start)
    one.copy(one.copied, name="d")
    survived(lambda: one.retain(name="e"))
    if isinstance(door, AppliesLate):
        door.land()
    assert_whole(one, due_start(one))
    assert one.retain(name="3").error is None
    assert one.manifest.log_start_offset == due_start(one)
    one.hours(11)
    assert one.retain(name="4").error is None
    one.sweep(name="5")
    pinned.assert_reads_all(one)
    one.hours(2)
    retain_and_sweep(one)
    assert one.orphans() == set()
    assert_whole(one, due_start(one))


def test_a_fault_at_any_call_of_retention_loses_nothing_and_later_runs_leave_no_orphan(world: World) -> None:
    faults = retention_faults(world)
    for fault, number in faults:
        check_retention(world, fault, number)
    assert len(faults) > 40


def check_delay(world: World) -> None:
    """A reader without a pin has the delay."""
    one = world.fork()
    reader = Reader.opened(one, pinned=False)
    for _ in range(3):
        assert one.retain(name="3").error is None
        reader.assert_reads_all(one)
        one.hours(DELAY_MS / HOUR_MS / 3 - 0.1)
    one.hours(1)
    assert one.retain(name="3").deleted > 0


def test_a_reader_without_a_pin_has_the_delay(world: World) -> None:
    check_delay(world)


class Slow(Door):
    """Some calls take hours: a reader opens the manifest just before each commit."""

    def __init__(self, world: World, is_slow: Callable[[str, str], bool]) -> None:
        super().__init__(world.store)
        self.world, self.is_slow = world, is_slow
        self.readers: list[Reader] = []

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if self.is_slow(verb, key):
            self.world.hours(0.8 * DELAY_MS / HOUR_MS)
        if verb == "put_if_absent" and "-v" in key:
            self.readers.append(Reader.opened(self.world, pinned=False))
        return call()


@pytest.mark.parametrize(
    "is_slow",
    [
        lambda verb, key: verb == "delete" and "/segments/" in key,
        lambda verb, key: verb == "put_if_absent" and "-v" in key,
    ],
    ids=["deletes for hours before its commit", "sleeps before its commit"],
)
def test_the_delay_counts_from_the_commit_however_long_a_run_takes(world: World, is_slow: Callable[[str, str], bool]) -> None:
    one = world.fork()
    slow = Slow(one, is_slow)
    assert one.retain(slow).error is None
    assert len(slow.readers) == 2
    one.hours(DELAY_MS / HOUR_MS - 0.1)
    assert one.retain(name="2").error is None
    slow.readers[-1].assert_reads_all(one)
    one.hours(0.2)
    assert one.retain(name="3").error is None
    with pytest.raises(NotFound):
        slow.readers[-1].assert_reads_all(one)
    assert_whole(one, due_start(one))


@pytest.mark.parametrize("off_ms", [-HOUR_MS, HOUR_MS])
def test_a_machine_whose_clock_is_an_hour_off_retains_nothing_away(world: World, off_ms: int) -> None:
    one = world.fork()
    before = dict(one.store.objects)
    done = one.retain(off_ms=off_ms)
    if done.error is None:
        assert off_ms < 0  # by that clock nothing was due
    else:
        assert isinstance(done.error, Invalid)
        assert "3600 s apart" in str(done.error)
        assert "set this machine's clock" in str(done.error)
    assert {k: v for k, v in one.store.objects.items() if "/manifest/" in k or "/segments/" in k} == {
        k: v for k, v in before.items() if "/manifest/" in k or "/segments/" in k
    }


def test_a_plan_of_a_clock_that_was_set_back_since_is_not_done(world: World) -> None:
    """By a clock a year ahead all of the log was due, and the clock agrees with the store's by the time that it goes."""
    one = world.fork()
    before = one.manifest
    planned = retention.plan(before, one.store, Policy(AGE_MS, None, DELAY_MS), one.clock.now_ms() + 365 * 24 * HOUR_MS)
    assert planned.log_start_offset == before.end_offset
    done = retention.expire(planned, StoreRun(one.store, one.clock, CountingIds("a")), "retain")
    assert isinstance(done.error, Invalid)
    assert "run the same command again" in str(done.error)
    assert (done.deleted, one.manifest) == (0, before)
    assert one.retain(name="b").error is None


def test_a_version_whose_pages_have_been_swept_is_no_damage(world: World) -> None:
    """A command opens all partitions of a topic first, and may come to the last of them a day later."""
    one = world.fork()
    stale = replace(one.manifest, pages=tuple(replace(ref, bounds=None) for ref in one.manifest.pages))  # so that it reads them
    due = retention.plan(stale, one.store, Policy(AGE_MS, None, DELAY_MS), one.clock.now_ms())
    retain_and_sweep(one)
    start = one.manifest.log_start_offset
    given = read_given((f"retention.ms={AGE_MS}", f"file.delete.delay.ms={DELAY_MS}"))
    replanned = Retention(one.store, one.clock, CountingIds("e"), given, is_archive_alone=True).plan(PATH, stale)
    assert isinstance(replanned, RetentionPlan), replanned
    assert replanned.manifest == one.manifest
    late = retention.expire(due, StoreRun(one.store, one.clock, CountingIds("f")), "retain")
    assert not isinstance(late.error, Corrupt)
    assert one.manifest.log_start_offset == start


@pytest.mark.parametrize("off_ms", [-14 * HOUR_MS, -HOUR_MS, 0, HOUR_MS, 14 * HOUR_MS])
def test_a_reader_whose_clock_is_off_is_waited_for_as_long_as_any_other(world: World, off_ms: int) -> None:
    one = world.fork()
    reader = Reader.opened(one, pinned=True, off_ms=off_ms)
    assert one.retain().error is None
    one.hours(11.9)
    assert one.retain(name="2").error is None
    one.sweep()
    reader.assert_reads_all(one)
    one.hours(2.2)
    assert one.retain(name="3").deleted > 0
    with pytest.raises(NotFound):
        reader.assert_reads_all(one)


def test_two_that_retain_at_once_end_as_one(world: World) -> None:
    alone = world.fork()
    alone.retain()
    for number in range(1, 40):
        one = world.fork()
        between = RunsBetween(one.store, {number: lambda one=one: one.retain(name="5")})
        assert one.retain(between).error is None
        assert one.manifest.log_start_offset == alone.manifest.log_start_offset
        assert {e.segment_id for e in one.manifest.entries} == {e.segment_id for e in alone.manifest.entries}
        assert_whole(one, due_start(one))
        if between.actions:
            break
    assert number > 10


# mutants: the checks above see them

Mutant = Callable[[pytest.MonkeyPatch], None]


def deletes_before_the_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    true = retention.advance_log_start_offset

    def advance(writer: ManifestWriter, start: int, now_ms: int, **more: Any) -> Manifest:
        for one in Entries.of(writer.store, retention.newest_manifest(writer.store, PATH)).overlapping(0, start):
            writer.store.delete(PATH.segment(one.log_name))
        return true(writer, start, now_ms, **more)

    monkeypatch.setattr(retention, "advance_log_start_offset", advance)


def waits_for_no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    true = retention.plan
    monkeypatch.setattr(retention, "plan", lambda m, store, policy, now: true(m, store, replace(policy, delete_delay_ms=0), now))


def retention_without_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "pins_of", lambda *_: Pins())


@pytest.mark.parametrize("mutant", [deletes_before_the_manifest, retention_without_pins])
def test_a_retention_that_goes_wrong_is_caught(world: World, monkeypatch: pytest.MonkeyPatch, mutant: Mutant) -> None:
    faults = retention_faults(world)
    mutant(monkeypatch)
    assert caught(check_retention, world, faults)


def test_a_retention_that_waits_for_nobody_is_caught(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    waits_for_no_delay(monkeypatch)
    assert caught(check_delay, world, [()])
