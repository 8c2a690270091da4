"""What retention costs in requests: a partition with nothing to do, and one whose segments are given up and go."""

import pytest
from archive_fakes import CountingIds, Door, MemoryStore, SleptClock, verbs
from made_manifests import PATH, entry
from retained_worlds import World, made

from local_log.formats.checkpoints import EpochEntry
from remote.keys import PartitionPath
from remote.manifest.model import never_archived
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import segment_copied
from tiering.retention.plan import RetentionPlan
from tiering.retention.policy import read_given
from tiering.retention.run import Retention


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
    assert verbs(door.calls).count("put_if_absent") == 2  # the store's clock, and one manifest for all that is given up
    assert len(door.calls) <= 12
    world.hours(24)
    door = Door(world.store)
    assert world.retain(door).deleted == 3
    assert verbs(door.calls).count("delete") == 2 * 3 + 1
    assert verbs(door.calls).count("put_if_absent") == 2
    assert len(door.calls) <= 24
