"""A topic deleted from the archive: by its id, fenced, waited for, and gone in the end, whatever goes wrong on the way."""

import pytest
from archive_fakes import AppliesLate, CountingIds, Door, FixedClock, RunsBetween
from made_manifests import PATH, entry
from retained_worlds import FIRST, GRACE_MS, HOUR_MS, Jumping, Reader, World, copied, faults_of, faulty, made, survived

from local_log.errors import Fenced, Invalid, NotFound
from local_log.formats.checkpoints import EpochEntry
from remote.keys import PartitionPath
from remote.manifest.model import count_of, never_archived
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import segment_copied
from remote.store.store_time import StoreRun
from tiering.delays import DELETE_DELAY_MS
from tiering.retention import delete_topic
from tiering.retention import expire as retention
from tiering.retention.plan import Policy

pytestmark = pytest.mark.usefixtures("pages_decoded_once")

OTHER_ID = "B" * 22


@pytest.fixture(scope="module")
def world() -> World:
    return made()


def deleted(world: World, store: Door | None = None, name: str = "1") -> list[Exception]:
    """As the command does it."""
    door, clock, ids = store or world.store, Jumping(world.clock), CountingIds(name)
    errors = []
    for m in delete_topic.partitions(door, PATH.topic, None):
        if m.is_deleted:
            due = retention.plan(m, door, Policy(), clock.now_ms())
            done = retention.expire(due, StoreRun(door, clock, ids), "d")
        else:
            done = delete_topic.delete_partition(m, StoreRun(door, clock, ids), "d")
        errors += [done.error] if done.error else []
    return errors


def archived(world: World, path: PartitionPath) -> None:
    first = never_archived(path.topic, path.topic_id, path.partition, 0)
    writer = ManifestWriter(world.store, path, world.clock, CountingIds("7"), "w", 0)
    writer.commit(first, lambda m: segment_copied(m, entry(0, 10), (EpochEntry(0, 0),), "lost", 7))


def gone(world: World) -> None:
    """Deletion and sweep, again and again, until nothing but the last version is left."""
    for _ in range(2):
        assert deleted(world, name="2") == []
        world.hours(DELETE_DELAY_MS / HOUR_MS + 1)
        assert deleted(world, name="3") == []
        world.hours(GRACE_MS / HOUR_MS + 9)
        world.sweep(name="4")


def test_all_of_it_is_given_up_at_once_and_its_objects_go_after_the_delay(world: World) -> None:
    one = world.fork()
    segments = one.manifest.segment_count + sum(count_of(d.item) for d in one.manifest.deleting)
    assert deleted(one) == []
    m = one.manifest
    assert (m.is_deleted, m.segment_count, m.log_start_offset) == (True, 0, m.end_offset)
    objects = [key for key in one.store.objects if "/segments/" in key]
    assert len(objects) == 2 * segments
    one.hours(DELETE_DELAY_MS / HOUR_MS - 1)
    assert deleted(one, name="2") == []
    assert [key for key in one.store.objects if "/segments/" in key] != []
    one.hours(2)
    assert deleted(one, name="3") == []
    assert [key for key in one.store.objects if "/segments/" in key] == []


def test_late_writers_are_kept_out_and_a_reader_with_a_pin_reads_on(world: World) -> None:
    one = world.fork()
    sleeper = one.writer("d")
    reader = Reader.opened(one, pinned=True)
    late = one.upload(one.copied, CountingIds("5"))
    assert deleted(one) == []
    with pytest.raises(Fenced):
        sleeper.commit(FIRST, copied(late))
    with pytest.raises(Invalid, match="was deleted"):
        one.writer("e").commit(FIRST, copied(late))
    one.hours(11)
    assert deleted(one, name="2") == []
    one.sweep()
    reader.assert_reads_all(one)


def test_the_last_version_keeps_late_offloads_out_for_ever(world: World) -> None:
    one = world.fork()
    sleeper = one.writer("d")
    late = one.upload(one.copied, CountingIds("5"))
    gone(one)
    last = [PATH.manifest(one.manifest.version)]
    assert [*one.store.objects] == last
    one.hours(400 * 24)
    assert one.sweep(name="6") == []
    with pytest.raises(Fenced):
        sleeper.commit(FIRST, copied(late))
    with pytest.raises(Invalid, match="was deleted"):
        one.writer("e").commit(FIRST, copied(late))
    assert [*one.store.objects] == last


def test_a_writer_that_slept_since_before_the_topic_was_there_does_not_begin_it_again(world: World) -> None:
    one = world.fork()

    def long_years() -> None:
        one.store.objects = dict(world.store.objects)
        gone(one)
        one.hours(400 * 24)
        one.sweep(name="6")

    late = one.upload(one.copied, CountingIds("5"))
    one.store.objects = {}
    asleep = ManifestWriter(RunsBetween(one.store, {2: long_years}), PATH, one.clock, CountingIds("7"), "w", 0)
    with pytest.raises(Fenced):
        asleep.commit(FIRST, copied(late))
    one.hours(GRACE_MS / HOUR_MS + 1)
    one.sweep(name="8")
    assert [*one.store.objects] == [PATH.manifest(one.manifest.version)]
    assert one.manifest.is_deleted


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.slow
def test_a_fault_at_any_call_leaves_the_topic_whole_or_deleted_and_the_next_run_ends_it(world: World, step: int) -> None:
    before = world.fork()
    if step == 2:
        assert deleted(before, name="6") == []
        before.hours(DELETE_DELAY_MS / HOUR_MS + 1)
    faults = [*faults_of(lambda w, door: deleted(w, door), before)]
    for fault, number in faults:
        one = before.fork()
        door = faulty(one, fault, number)
        survived(lambda one=one, door=door: deleted(one, door))
        survived(lambda one=one: one.copy(one.copied, name="d"))
        if isinstance(door, AppliesLate):
            door.land()
        if not one.manifest.is_deleted:
            Reader.opened(one, pinned=False).assert_reads_all(one)
        gone(one)
        assert one.orphans() == set(), (fault, number)
        assert one.manifest.is_deleted
    assert len(faults) > 20 * step


def test_two_that_delete_it_at_once_both_succeed(world: World) -> None:
    for number in range(1, 20):
        one = world.fork()
        assert deleted(one, RunsBetween(one.store, {number: lambda one=one: deleted(one, name="5")})) == []
        assert one.manifest.is_deleted


def test_of_several_topics_of_one_name_the_id_has_to_be_said(world: World) -> None:
    one = world.fork()
    other = PartitionPath(PATH.topic, OTHER_ID, 0)
    archived(one, other)
    archived(one, PartitionPath(PATH.topic, OTHER_ID, 10))
    with pytest.raises(Invalid, match=f"--topic-id: {PATH.topic_id}, {OTHER_ID}"):
        delete_topic.partitions(one.store, PATH.topic, None)
    assert [m.path.partition for m in delete_topic.partitions(one.store, PATH.topic, OTHER_ID)] == [0, 10]
    (found,) = delete_topic.partitions(one.store, PATH.topic, PATH.topic_id)
    run = StoreRun(one.store, FixedClock(one.clock.now), CountingIds("1"))
    assert delete_topic.delete_partition(found, run, "d").error is None
    with pytest.raises(Invalid, match=rf"--topic-id: {PATH.topic_id} \(deleted\), {OTHER_ID}$"):
        delete_topic.partitions(one.store, PATH.topic, None)


@pytest.mark.parametrize("expires", [False, True], ids=["before its objects went", "after an expiry has deleted its objects"])
def test_a_topic_that_is_made_anew_is_not_deleted_by_the_second_run_for_the_one_before(world: World, expires: bool) -> None:
    one = world.fork()
    assert deleted(one) == []
    anew = PartitionPath(PATH.topic, OTHER_ID, 0)
    archived(one, anew)
    one.hours(DELETE_DELAY_MS / HOUR_MS + 1)
    if expires:
        assert one.retain().error is None
        assert one.manifest.deleting == ()
    with pytest.raises(Invalid, match="--topic-id"):
        deleted(one, name="5")
    stored = load_newest(one.store, anew)
    assert stored is not None
    assert not stored.manifest.is_deleted
    (former,) = delete_topic.partitions(one.store, PATH.topic, PATH.topic_id)
    assert former.is_deleted


def test_what_is_not_there_is_not_found_and_what_cannot_be_read_stops_it_all(world: World) -> None:
    one = world.fork()
    for topic, topic_id in (("nowhere", None), (PATH.topic, "C" * 22)):
        with pytest.raises(NotFound):
            delete_topic.partitions(one.store, topic, topic_id)
    second = PartitionPath(PATH.topic, PATH.topic_id, 1)
    one.store.put_if_absent(second.manifest(1), b"{")
    with pytest.raises(Exception, match="not JSON") as raised:
        delete_topic.partitions(one.store, PATH.topic, None)
    assert type(raised.value).__name__ == "Corrupt"
