"""Topics that get more partitions while disks fail, are away, or lose their power in the middle."""

import pytest
from local_tiers import ORDERS, Host, produce
from simulated_disk import Crashed

from local_log.engine.manager.guarded_disk import Offline
from local_log.formats.filenames import TopicPartition
from tiering.local_tier.errors import InvalidPartitions
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.topics_file import Topic


def test_more_partitions_leave_those_alone_whose_disk_is_away() -> None:
    host = Host()
    tier = host.started()
    topic = tier.create_topic("orders", 2)
    produce(tier, ORDERS, 20)
    tier.log(ORDERS).flush()
    assert tier.log(ORDERS).folder.path == "/a/orders-0"
    assert _fails(tier, "/a") == 1
    assert tier.create_partitions("orders", 3) == Topic(topic.topic_id, (0, 1, 2))
    assert tier.missing() == (ORDERS,)
    with pytest.raises(Offline):
        tier.log(ORDERS)
    tier.stop()
    tier = host.started()
    assert tier.log(ORDERS).log_end_offset == 20
    assert tier.partitions() == tuple(TopicPartition("orders", n) for n in range(3))


def test_a_growth_that_failed_half_way_is_completed_when_it_is_asked_for_again() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders", 2)
    with host.failing_writes("/a/orders-2/partition.metadata"):
        with pytest.raises(Offline, match="/a: this log directory is offline"):
            tier.create_partitions("orders", 5)
        assert tier.topic("orders").partitions == (0, 1, 2, 3, 4)
        assert tier.topic("orders").being_made == (2,)
        assert [p.partition for p in tier.partitions()] == [1, 3, 4]
        with pytest.raises(Offline, match="/a: this log directory is offline"):
            tier.create_partitions("orders", 5)
        with pytest.raises(InvalidPartitions):
            tier.create_partitions("orders", 4)
    tier.stop()
    tier = host.started()
    assert tier.topic("orders") == Topic(tier.topic("orders").topic_id, (0, 1, 2, 3, 4))
    assert not tier.missing()


def test_an_interrupted_growth_is_completed_by_the_new_partitions_alone() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders", 2)
    (gone,) = tier.partitions("/b")
    host.disk.crash_after = len(host.disk.calls) + 12
    with pytest.raises(Crashed):
        tier.create_partitions("orders", 3)
    host.loses_power(0.0)
    host.dirs = ("/a",)
    tier = host.started()
    assert tier.topic("orders").partitions == (0, 1, 2)
    assert tier.missing() == (gone,)


def _fails(tier: LocalTier, path: str) -> int:
    """The disk of a directory fails; returns how many are offline then."""
    for directory in tier._manager.directories:
        if directory.path == path:
            directory.disk.fail("Input/output error")
    return len(tier.offline)
