"""Records of writes over many partitions: which go, which stay, and that nobody misses one."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from archive_fakes import (
    AppliesLate,
    CountingIds,
    Crash,
    CrashesAt,
    Door,
    FailsBefore,
    LosesAnswer,
    MemoryStore,
    RunsBetween,
    SleptClock,
)
from made_manifests import entry

from local_log.errors import NotFound, Unavailable, Unknown
from remote import archive
from remote.direct_write.commit import PartitionEntries, Write, commit_write
from remote.direct_write.topic import WrittenTopic, written_topic
from remote.keys import PartitionPath, own_write_id
from remote.manifest import pins
from remote.manifest.model import never_archived
from remote.manifest.store import ManifestWriter, claim, load_version
from remote.manifest.transitions import topic_deleted
from remote.manifest.write_record import Decision, as_decided
from remote.store.api import ObjectStore
from tiering.delays import GRACE_MS
from tiering.sweep import collect as sweep
from tiering.sweep import writes as sweep_writes

PARTITIONS = 2
DAY_MS = 24 * 3_600_000
OURS = own_write_id(CountingIds("aa").new_id())


class World:
    """An archive in memory, its clock, and writes and sweeps at it."""

    def __init__(self) -> None:
        self.clock = SleptClock()
        self.store = MemoryStore(self.clock)
        archive.create_archive(self.store, self.clock, CountingIds("a"))
        self.runs = 0

    def ids(self) -> CountingIds:
        self.runs += 1
        return CountingIds(f"{self.runs:06x}")

    def write(self, write_id: str, store: ObjectStore | None = None, topic: WrittenTopic | None = None) -> Decision:
        def place(now: Any) -> PartitionEntries:
            return {path: (entry(p.end_offset, p.end_offset + 10),) for path, p in now.items()}

        asked = Write(write_id, (topic or written_topic(self.store, "rows", PARTITIONS),), "tests")
        return commit_write(store or self.store, self.clock, self.ids(), asked, place, threads=1)

    def days(self, count: float) -> None:
        self.clock.sleep(count * 24 * 3600)

    def sweep(self, store: ObjectStore | None = None, name: str = "rows") -> set[str]:
        """As `tiering sweep` does it: the partitions, then the records. Gives the records that went."""
        store, now_ms = store or self.store, self.clock.now_ms()
        for path in [*archive.partition_paths(store, name)]:
            [*sweep.sweep(sweep.plan(store, path, now_ms, GRACE_MS), store, self.clock, self.ids(), now_ms)]
        gone: set[str] = set()
        for topic, topic_id in [*sweep_writes.topic_ids(store, [name])]:
            due = sweep_writes.plan(store, topic, topic_id, now_ms, GRACE_MS)
            gone |= {piece.key for piece in sweep_writes.sweep(due, store)}
        return gone

    def records(self) -> set[str]:
        return {key for key in self.store.objects if "/writes/" in key}

    def ends(self, store: ObjectStore | None = None) -> list[int]:
        return [m.end_offset for m in archive.newest_manifests(store or self.store, "rows")]

    def paths(self) -> list[PartitionPath]:
        return [*archive.partition_paths(self.store, "rows")]


@pytest.fixture
def world() -> World:
    return World()


def given_up(world: World, write_id: str) -> None:
    """A write whose decision nobody knows of, and which the next one gives up."""
    late = AppliesLate(world.store, lambda verb, key: verb == "put_if_absent" and "/writes/" in key)
    with pytest.raises(Unknown):
        world.write(write_id, late)
    for path in world.paths():
        first = load_version(world.store, path, 1).manifest
        claim(world.store, first, world.clock, world.ids(), "tests")


def test_the_record_of_a_write_that_nobody_can_run_again_goes_when_it_is_old_and_others_stay(world: World) -> None:
    world.write("users")
    world.write(OURS)
    given_up(world, own_write_id("b" * 32))
    records = world.records()
    assert len(records) == 3
    assert world.sweep() == set()
    world.days(0.9)
    assert world.sweep() == set()
    world.days(0.2)
    assert world.sweep() == {key for key in records if OURS in key}
    world.days(400)
    assert world.sweep() == set()
    assert world.ends() == [20, 20]
    assert world.write("users").ranges[0].start == 0
    assert world.ends() == [20, 20]


def test_a_record_stays_as_long_as_a_version_is_stored_that_waits_for_it(world: World) -> None:
    world.write("first")
    world.write(OURS)
    path = world.paths()[0]
    version = next(n for n in range(1, 9) if load_version(world.store, path, n).manifest.pending)
    second = next(n for n in range(version + 1, 9) if load_version(world.store, path, n).manifest.pending)
    for _ in range(3):
        pins.create(world.store, path, "a reader", second, 0, 20, 3 * DAY_MS, world.clock, world.ids())
        world.days(2)
        assert world.sweep() == set()
        waiting = load_version(world.store, path, second).manifest
        assert as_decided(world.store, waiting).end_offset == 20
    world.days(5)
    assert len(world.sweep()) == 1


def test_a_record_stays_as_long_as_a_partition_has_not_taken_its_write_in(world: World) -> None:
    world.write("first")
    topic = written_topic(world.store, "rows")
    decides = CrashesAt(world.store, decision_of(world), after=True)
    with pytest.raises(Crash):
        world.write(OURS, decides, topic)
    world.days(40)
    assert world.sweep() == set()
    assert world.ends() == [20, 20]
    claim(world.store, load_version(world.store, world.paths()[0], newest(world, 0)).manifest, world.clock, world.ids(), "x")
    world.days(40)
    assert world.sweep() == set()
    assert world.ends() == [20, 20]
    claim(world.store, load_version(world.store, world.paths()[1], newest(world, 1)).manifest, world.clock, world.ids(), "x")
    world.days(40)
    assert len(world.sweep()) == 1
    assert world.ends() == [20, 20]


def newest(world: World, partition: int) -> int:
    return archive.newest_manifests(world.store, "rows")[partition].version


def decision_of(world: World) -> int:
    """Which call of a second write puts its record."""
    other = World()
    other.write("first")
    topic, door = written_topic(other.store, "rows"), Door(other.store)
    other.write(OURS, door, topic)
    return next(n for n, call in enumerate(door.calls, 1) if call[0] == "put_if_absent" and "/writes/" in call[1])


def littered() -> World:
    world = World()
    world.write("users")
    world.write(OURS)
    world.write(own_write_id("c" * 32))
    given_up(world, own_write_id("b" * 32))
    world.days(3)
    return world


def calls_of_a_sweep() -> int:
    world = littered()
    door = Door(world.store)
    world.sweep(door)
    return len(door.calls)


FAULTS: dict[str, Callable[[ObjectStore, int], ObjectStore]] = {
    "fails before": lambda store, n: FailsBefore(store, Unavailable("no answer"), numbered(n)),
    "answer lost": lambda store, n: LosesAnswer(store, numbered(n)),
    "killed after": lambda store, n: CrashesAt(store, n, after=True),
    "lands late": lambda store, n: AppliesLate(store, numbered(n)),
}


def numbered(number: int) -> Callable[[str, str], bool]:
    seen = iter(range(1, 10**6))
    return lambda verb, key: next(seen) == number


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.slow
def test_a_fault_at_any_call_loses_nothing_and_the_next_sweep_takes_what_is_left(fault: str) -> None:
    calls = calls_of_a_sweep()
    assert calls > 20
    for number in range(1, calls + 1):
        world = littered()
        faulty = FAULTS[fault](world.store, number)
        with suppress(Unavailable, Unknown, Crash):
            world.sweep(faulty)
        assert world.ends() == [30, 30]
        world.write("users")
        assert world.ends() == [30, 30]
        world.days(2)
        world.sweep()
        if isinstance(faulty, AppliesLate):
            with suppress(NotFound):  # a read of what has gone since
                faulty.land()
        assert sum("/_" in key for key in world.records()) == 1  # the one that was given up
        assert world.ends() == [30, 30]


@pytest.mark.slow
def test_a_reader_between_any_two_calls_of_a_sweep_sees_all_rows() -> None:
    for number in range(1, calls_of_a_sweep() + 1):
        world = littered()
        seen: list[list[int]] = []
        world.sweep(RunsBetween(world.store, {number: lambda world=world, seen=seen: seen.append(world.ends())}))
        assert seen == [[30, 30]]


@pytest.mark.parametrize("write_id", ["users", OURS])
def test_a_writer_that_wakes_up_long_after_it_was_given_up_does_not_decide_anew(world: World, write_id: str) -> None:
    world.write("first")
    topic = written_topic(world.store, "rows")

    def long_night() -> None:
        world.write("second")
        world.days(40)
        world.sweep()
        world.days(40)
        world.sweep()

    asleep = RunsBetween(world.store, {decision_of(world): long_night})
    decision = world.write(write_id, asleep, topic)
    assert decision.committed
    assert [(r.start, r.end) for r in decision.ranges] == [(20, 30), (20, 30)]
    assert world.ends() == [30, 30]


def test_a_topic_whose_first_write_died_and_was_swept_is_written_to_again(world: World) -> None:
    """Readers see no such topic, and still its partitions were claimed."""
    dies = CrashesAt(world.store, first_decision(), after=False)
    with pytest.raises(Crash):
        world.write("users", dies)
    world.days(2)
    world.sweep()
    for path in world.paths():
        claim(world.store, never_archived(path.topic, path.topic_id, path.partition, 0), world.clock, world.ids(), "a sweep")
    assert world.ends() == []
    assert world.write("users").committed
    assert world.ends() == [10, 10]
    world.write("others")
    assert world.ends() == [20, 20]


def first_decision() -> int:
    """Which call of the first write puts its record."""
    other = World()
    door = Door(other.store)
    other.write("users", door, written_topic(other.store, "rows", PARTITIONS))
    return next(n for n, call in enumerate(door.calls, 1) if call[0] == "put_if_absent" and "/writes/" in call[1])


@pytest.mark.parametrize("partition", range(PARTITIONS + 1))
def test_a_deleted_topic_whose_last_versions_are_gone_but_for_one_is_not_written_to_under_its_id(partition: int) -> None:
    world = World()
    former = written_topic(world.store, "rows", PARTITIONS + 1)
    world.write("users", topic=former)
    for path in world.paths():
        ManifestWriter(world.store, path, world.clock, world.ids(), "d", 9).commit(
            never_archived(path.topic, path.topic_id, path.partition, 0), lambda m: topic_deleted(m, 7)
        )
        if path.partition != partition:
            for key in [key for key in world.store.objects if key.startswith(path.manifests)]:
                world.store.delete(key)
    assert written_topic(world.store, "rows", PARTITIONS).topic_id != former.topic_id
    world.write("others")
    assert world.ends() == [10, 10]


def test_all_records_of_a_deleted_topic_go_and_its_next_life_knows_nothing_of_them(world: World) -> None:
    world.write("users")
    given_up(world, "others")
    for path in world.paths():
        first = load_version(world.store, path, 1).manifest
        ManifestWriter(world.store, path, world.clock, world.ids(), "d", 9).commit(first, lambda m: topic_deleted(m, 7))
    world.days(0.5)
    assert world.sweep() == set()
    world.days(1)
    assert len(world.sweep()) == 2
    assert world.records() == set()
    former = world.paths()[0].topic_id
    for key in [key for key in world.store.objects if key.startswith("rows/")]:
        world.store.delete(key)  # its tombstones, long after
    world.write("users")
    assert world.ends() == [10, 10]
    assert world.paths()[0].topic_id == former


def test_the_record_of_a_write_to_two_topics_stays_until_both_were_deleted(world: World) -> None:
    topics = tuple(written_topic(world.store, name, 1) for name in ("more", "rows"))

    def place(now: Any) -> PartitionEntries:
        return {path: (entry(p.end_offset, p.end_offset + 10),) for path, p in now.items()}

    def delete(name: str) -> None:
        for path in archive.partition_paths(world.store, name):
            first = never_archived(path.topic, path.topic_id, path.partition, 0)
            ManifestWriter(world.store, path, world.clock, world.ids(), "d", 9).commit(first, lambda m: topic_deleted(m, 7))

    commit_write(world.store, world.clock, world.ids(), Write("users", topics, "tests"), place, threads=1)
    record = world.records()
    assert len(record) == 1
    for deleted, goes in (("more", set()), ("rows", record)):
        delete(deleted)
        world.days(3)
        assert world.sweep() | world.sweep(name="more") == goes
