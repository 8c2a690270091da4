"""What retention costs in requests: a partition with nothing to do, and one whose segments expire and go."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from archive_fakes import CountingIds, Door, MemoryStore, SleptClock, verbs
from made_manifests import PATH, entry
from retained_worlds import HOUR_MS, World, made

from local_log.formats.checkpoints import EpochEntry
from remote.clock import Clock
from remote.keys import PROBE_PREFIX, PartitionPath
from remote.manifest.model import never_archived
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import segment_copied
from tiering.retention.plan import RetentionPlan
from tiering.retention.policy import read_given
from tiering.retention.run import Planned, Retention

T = TypeVar("T")


def partitions(count: int, segments: int = 3) -> Door:
    """An archive of a topic with so many partitions of so many segments, all of them young."""
    clock = SleptClock()
    store = MemoryStore(clock)
    for number in range(count):
        path = PartitionPath(PATH.topic, PATH.topic_id, number)
        first = never_archived(path.topic, path.topic_id, number, 0)
        writer = ManifestWriter(store, path, clock, CountingIds(f"{number:02}"), "w", 0)
        for n in range(segments):
            one = entry(10 * n, 10 * n + 10, max_timestamp_ms=clock.now_ms())
            writer.commit(first, lambda m, one=one: segment_copied(m, one, (EpochEntry(0, 0),), "lost", 7))
    return Door(store)


def expired(door: Door, clock: Clock) -> list[Planned]:
    """What becomes of an archive's topic of which nothing is kept for longer than an hour."""
    given = read_given(("retention.ms=3600000", "file.delete.delay.ms=3600000"))
    return [*Retention(door, clock, CountingIds("f"), given, is_archive_alone=True).done([PATH.topic])]


def probes(door: Door) -> list[str]:
    """The calls by which the store's clock was asked."""
    return [verb for verb, key, *_ in door.calls if str(key).startswith(PROBE_PREFIX)]


def requests(door: Door, *settings: str) -> int:
    retention = Retention(door, SleptClock(), CountingIds("f"), read_given(settings), is_archive_alone=True)
    for _, done in retention.done([PATH.topic]):
        assert isinstance(done, RetentionPlan)
        assert done.is_empty
    return len(door.calls)


@pytest.mark.parametrize(
    "settings", [("retention.ms=1000",), ("retention.bytes=300",), ("retention.ms=1000", "retention.bytes=201")]
)
def test_a_partition_with_nothing_to_do_costs_a_listing_and_its_manifest(settings: tuple[str, ...]) -> None:
    two, three = (requests(partitions(count), *settings) for count in (2, 3))
    assert three - two == 2


def test_manifests_that_several_threads_load_cost_no_more_and_are_planned_in_order() -> None:
    door = partitions(7)
    retention = Retention(door, SleptClock(), CountingIds("f"), read_given(["retention.ms=1000"]), is_archive_alone=True)
    alone = [*retention.planned([PATH.topic])]
    paths = [path for path, _ in alone]
    door.calls.clear()
    assert [*retention.planned_of(reversed(paths), threads=3)] == alone[::-1]
    assert sorted(verbs(door.calls)) == ["get"] * 7 + ["list"] * 7


def test_neither_does_one_with_pages_cost_more() -> None:
    """What retention has to know of the oldest page stands in the manifest."""
    world = made()
    world.retain()
    assert world.manifest.pages[0].level > 0
    door = Door(world.store)
    assert world.retain(door).deleted == 0
    assert verbs(door.calls) == ["list", "get"]


def test_nor_by_size() -> None:
    world = made()
    world.retain()
    door, size = Door(world.store), world.manifest.log_bytes
    for kept in (size, size - 1):  # the same, and too large by less than a segment
        door.calls.clear()
        given = read_given((f"retention.bytes={kept}",))
        retention = Retention(door, world.clock, CountingIds("f"), given, is_archive_alone=True)
        for _, done in retention.done([PATH.topic]):
            assert isinstance(done, RetentionPlan)
            assert done.is_empty
        assert [verb for verb in verbs(door.calls) if verb == "get"] == ["get"]


def test_giving_up_and_deleting_cost_what_they_write_and_little_more() -> None:
    world = World(MemoryStore(SleptClock()), SleptClock())
    world.store.clock = world.clock
    world.copy(*range(3))
    world.hours(24)
    door = Door(world.store)
    assert world.retain(door).log_start_offset == 30
    assert verbs(door.calls).count("put_if_absent") == 2  # the store's clock, and one manifest for all that expires
    assert len(door.calls) <= 12
    world.hours(24)
    door = Door(world.store)
    assert world.retain(door).deleted == 3
    assert verbs(door.calls).count("delete") == 2 * 3 + 1
    assert verbs(door.calls).count("put_if_absent") == 2
    assert len(door.calls) <= 24


def test_the_store_is_asked_the_time_once_however_many_partitions_have_work() -> None:
    door = partitions(10)
    clock = door.inner.clock  # type: ignore[attr-defined]
    for deleted in (0, 3):
        clock.now += HOUR_MS + 1
        door.calls.clear()
        for _, done in expired(door, clock):
            assert isinstance(done, RetentionPlan)
            assert (len(done.due), done.is_empty) == (deleted, False)
        assert probes(door) == ["put_if_absent", "head", "delete"]


def test_a_run_that_lasts_for_hours_goes_on_by_the_time_that_it_has_asked() -> None:
    door = partitions(5)
    clock = door.inner.clock  # type: ignore[attr-defined]
    clock.now += HOUR_MS + 1

    class Slow(Door):
        def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
            clock.now += HOUR_MS if verb == "put_if_absent" and "/manifest/" in key else 0
            return call()

    slow = Slow(door)
    assert [type(done) for _, done in expired(slow, clock)] == [RetentionPlan] * 5
    assert probes(slow) == ["put_if_absent", "head", "delete"]


def test_a_clock_that_is_set_forward_in_a_run_makes_nothing_older() -> None:
    """The first partition is due when the store is asked; the others are an hour younger."""
    first = partitions(1)
    store, true = first.inner, first.inner.clock  # type: ignore[attr-defined]
    true.now += HOUR_MS + 1
    for number in (1, 2):
        path = PartitionPath(PATH.topic, PATH.topic_id, number)
        one = entry(0, 10, max_timestamp_ms=true.now_ms())
        writer = ManifestWriter(store, path, true, CountingIds(f"{number:02}"), "w", 0)
        base = never_archived(path.topic, path.topic_id, number, 0)
        writer.commit(base, lambda m, one=one: segment_copied(m, one, (EpochEntry(0, 0),), "lost", 7))
    machine = SleptClock(true.now)

    class SetForward(Door):
        def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
            machine.now += 365 * 24 * HOUR_MS if verb == "put_if_absent" and "/manifest/" in key else 0
            return call()

    done = [plan for _, plan in expired(SetForward(store), machine)]
    assert [plan.segments for plan in done if isinstance(plan, RetentionPlan)] == [3, 0, 0]
