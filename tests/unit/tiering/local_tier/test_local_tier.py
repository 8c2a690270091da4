"""Log directories that a process of ours owns: their topics, and what a restart finds of both."""

from collections.abc import Callable
from pathlib import Path

import pytest
from archive_fakes import CountingIds
from local_tiers import DIRS, ORDERS, SMALL, Host, produce
from managed import World
from simulated_disk import Crashed

from local_log.engine.manager.config import ManagerConfig
from local_log.errors import Corrupt, Invalid
from local_log.formats.filenames import TopicPartition
from local_log.log_dir import LogDir, is_brokers
from tiering.local_tier.errors import (
    InvalidPartitions,
    InvalidTopic,
    InvalidTopicConfig,
    TopicExists,
    UnknownTopicOrPartition,
)
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.topics_file import Topic


def test_a_topic_gets_an_id_logs_in_the_directories_with_the_fewest_and_its_settings() -> None:
    host = Host()
    tier = host.started()
    topic = tier.create_topic("orders", 3, {"segment.ms": "5000"})
    assert topic == Topic(topic.topic_id, (0, 1, 2), {"segment.ms": "5000"})
    assert tier.topics() == {"orders": topic}
    assert len(topic.topic_id or "") == 22
    assert [len(tier.partitions(directory)) for directory in DIRS] == [2, 1]
    config = tier.log(ORDERS).folder.config
    assert (config.segment_ms, config.segment_bytes, config.retention_ms) == (5000, 1024, 600_000)
    assert {log.topic_id for path in DIRS for log in LogDir(host.disk, path).logs()} == {topic.topic_id}


def test_a_restart_finds_topics_settings_and_records_after_a_stop_and_after_a_power_failure() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders", 2, {"retention.bytes": "7"})
    produce(tier, ORDERS, 20)
    tier.log(ORDERS).flush()
    topics = tier.topics()
    assert tier.stop() == ()
    tier = host.started()
    assert tier.was_clean
    assert tier.topics() == topics
    assert (tier.log(ORDERS).log_end_offset, tier.log(ORDERS).high_watermark) == (20, 20)
    host.loses_power()
    tier = host.started()
    assert not tier.was_clean
    assert tier.topics() == topics
    assert tier.log(ORDERS).log_end_offset == 20
    assert tier.log(ORDERS).folder.config.retention_bytes == 7


def test_a_power_failure_at_any_call_leaves_a_topic_whole_or_not_there() -> None:
    """Created, given partitions, changed and deleted: after each crash the next start completes or drops what was begun."""
    calls = _life(Host())
    seen = set()
    for after in range(1, calls):
        host = Host()
        host.disk.crash_after = after
        with pytest.raises(Crashed):
            _life(host)
        host.loses_power(0.5, after)
        tier = host.started()
        topics = tier.topics()
        for name, topic in topics.items():
            assert not topic.being_made
            assert [tier.log(TopicPartition(name, n)).log_end_offset for n in topic.partitions] == [0] * len(topic.partitions)
        assert {p.topic for p in tier.partitions()} == set(topics)
        assert not tier.missing()
        seen.add(tuple((name, topic.partitions, tuple(topic.config)) for name, topic in topics.items()))
        assert tier.stop() == ()
    whole = ("orders", (0, 1), ())
    assert seen == {(), (whole,), (("orders", (0, 1, 2), ()),), (("orders", (0, 1, 2), ("segment.ms",)),)}


def _life(host: Host) -> int:
    tier = host.started()
    tier.create_topic("orders", 2)
    tier.create_partitions("orders", 3)
    tier.alter_configs("orders", {"segment.ms": "5000"})
    tier.delete_topic("orders")
    return len(host.disk.calls)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "x" * 250, "ä", "__cluster_metadata"])
def test_a_name_that_no_topic_can_have_is_refused_as_kafka_does(name: str) -> None:
    with pytest.raises(InvalidTopic) as e:
        Host().started().create_topic(name)
    assert e.value.code == 17


def test_a_topic_that_exists_and_one_that_collides_are_refused() -> None:
    tier = Host().started()
    tier.create_topic("a.b_c")
    with pytest.raises(TopicExists, match=r"a\.b_c exists") as e:
        tier.create_topic("a.b_c")
    assert e.value.code == 36
    with pytest.raises(InvalidTopic, match=r"collides with a\.b_c"):
        tier.create_topic("a_b.c")
    assert [*tier.topics()] == ["a.b_c"]


def test_partitions_only_become_more() -> None:
    tier = Host().started()
    for count in (0, -1, 10_001):
        with pytest.raises(InvalidPartitions):
            tier.create_topic("orders", count)
    tier.create_topic("orders", 2)
    with pytest.raises(InvalidPartitions, match="2 partitions; expected 3 to 10000"):
        tier.create_partitions("orders", 2)
    assert tier.create_partitions("orders", 4).partitions == (0, 1, 2, 3)
    assert tier.log(TopicPartition("orders", 3)).log_end_offset == 0


def test_settings_that_a_topic_cannot_have_change_nothing() -> None:
    tier = Host().started()
    with pytest.raises(InvalidTopicConfig, match=r"topic orders: segment\.ms=0: expected 1 to") as e:
        tier.create_topic("orders", 1, {"segment.ms": "0"})
    assert (e.value.code, tier.topics(), tier.partitions()) == (40, {}, ())
    tier.create_topic("orders", 1, {"segment.ms": "9"})
    with pytest.raises(InvalidTopicConfig, match=r"did you mean segment\.ms\?"):
        tier.alter_configs("orders", {"segment.m": "1"})
    assert tier.log(ORDERS).folder.config.segment_ms == 9
    tier.alter_configs("orders", {"segment.ms": None, "flush.messages": "1"})
    assert tier.topics()["orders"].config == {"flush.messages": "1"}
    assert tier.log(ORDERS).folder.config.flush_messages == 1


def test_a_topic_that_is_not_there_is_unknown() -> None:
    tier = Host().started()
    for ask in (
        lambda: tier.topic("orders"),
        lambda: tier.delete_topic("orders"),
        lambda: tier.create_partitions("orders", 2),
        lambda: tier.alter_configs("orders", {}),
        lambda: tier.log(ORDERS),
    ):
        with pytest.raises(UnknownTopicOrPartition) as e:
            ask()
        assert e.value.code == 3


def test_a_deleted_topic_s_files_go_after_the_delay_and_a_new_one_of_its_name_starts_anew() -> None:
    host = Host()
    tier = host.started()
    before = tier.create_topic("orders")
    produce(tier, ORDERS, 5)
    tier.delete_topic("orders")
    assert (tier.topics(), tier.partitions()) == ({}, ())
    assert any(name.endswith("-delete") for name in host.disk.names("/a"))
    after = tier.create_topic("orders")
    assert after.topic_id != before.topic_id
    assert tier.log(ORDERS).log_end_offset == 0
    assert host.later(tier, 60_000) == ()
    assert not [name for path in DIRS for name in host.disk.names(path) if name.endswith("-delete")]


def test_retention_flushes_and_checkpoints_run_by_ticks() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders", 1, {"flush.ms": "1000"})
    produce(tier, ORDERS, 50)
    tier.tick()
    assert LogDir(host.disk, "/a").checkpoint("replication-offset-checkpoint")[ORDERS] == 50
    assert host.later(tier, 700_000) == ()
    assert tier.log(ORDERS).log_start_offset > 0
    assert LogDir(host.disk, "/a").checkpoint("recovery-point-offset-checkpoint")[ORDERS] > 0


def test_of_a_directory_of_logs_alone_topics_are_found_by_their_folders() -> None:
    """As of a broker's that is adopted: its file of topics is not there."""
    host = Host(dirs=("/a",))
    tier = host.started()
    topic = tier.create_topic("orders", 2, {"segment.ms": "9"})
    produce(tier, ORDERS, 3)
    tier.stop()
    host.disk.delete("/a/tiering-topics.json")
    assert is_brokers(host.disk, "/a")
    tier = host.started()
    assert tier.topics() == {"orders": Topic(topic.topic_id, (0, 1))}
    assert tier.log(ORDERS).log_end_offset == 3
    assert not is_brokers(host.disk, "/a")


def test_a_topic_that_a_broker_created_anew_meanwhile_is_another_topic_without_the_settings_of_the_first() -> None:
    host = Host(dirs=("/a",))
    tier = host.started()
    tier.create_topic("orders", 1, {"segment.ms": "9"})
    tier.stop()
    host.disk.truncate("/a/orders-0/partition.metadata", 0)
    host.disk.write("/a/orders-0/partition.metadata", 0, f"version: 0\ntopic_id: {'B' * 22}".encode())
    assert host.started().topics() == {"orders": Topic("B" * 22, (0,))}


def test_a_copy_of_one_disk_has_all_topics_and_what_it_lacks_is_said_not_made_anew() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders", 2)
    gone = tier.partitions("/b")
    topics = tier.topics()
    tier.stop()
    host.dirs = ("/a",)
    tier = host.started()
    assert tier.topics() == topics
    assert tier.missing() == gone
    with pytest.raises(UnknownTopicOrPartition):
        tier.log(gone[0])


def test_a_damaged_file_of_topics_is_refused_since_it_may_be_the_newest_and_another_directory_s_copy_mends_it() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders", 2, {"segment.ms": "9"})
    topics = tier.topics()
    tier.stop()
    for file in ("/a/tiering-topics.json", "/b/tiering-topics.json"):
        host.disk.truncate(file, 10)
        with pytest.raises(Corrupt, match=rf"{file} at byte 0: .*copy the file from another log directory .*or delete it"):
            host.started()
        host.disk.delete(file)
        tier = host.started()
        assert tier.topics() == topics
        tier.stop()


@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_stop_after_a_start_that_failed_writes_nothing(*, is_damaged: bool) -> None:
    """After a power failure, a clean-shutdown file would end recovery, and empty checkpoints would move log starts."""
    host = Host()
    tier = host.started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 40)
    tier.log(ORDERS).maybe_increment_log_start_offset(33)
    host.later(tier, 100_000)
    host.loses_power(0.0)
    if is_damaged:
        host.disk.truncate("/a/tiering-topics.json", 10)
    else:
        host.disk.make_folder("/a/foreign")
    before = host.disk.contents("/a")
    before.pop("/a/.lock", None)
    tier = host.tier()
    with pytest.raises((Corrupt, Invalid)):
        tier.start()
    assert tier.stop() == ()
    assert host.disk.contents("/a") == before


@pytest.mark.parametrize("was_started", [True, False])
def test_no_topic_is_made_or_changed_and_no_task_is_run_unless_the_logs_are_open(*, was_started: bool) -> None:
    """The directory is not locked then, and may be a broker's or another process's."""
    host = Host()
    tier = host.started()
    tier.create_topic("orders")
    if was_started:
        tier.stop()
    else:
        host.disk.make_folder("/a/foreign")
        tier = host.tier()
        with pytest.raises(Invalid, match="not a partition's folder"):
            tier.start()
    before = host.disk.contents("/a")
    acts: list[Callable[[], object]] = [
        lambda: tier.create_topic("state"), tier.tick, lambda: tier._manager.get_or_create(ORDERS)
    ]  # fmt: skip
    for act in acts:
        with pytest.raises(Invalid, match="the logs are not open, so nothing is written; start first"):
            act()
    if was_started:
        with pytest.raises(Invalid, match="start first"):
            tier.alter_configs("orders", {"segment.ms": "9"})
    assert (tier.stop(), host.disk.contents("/a")) == ((), before)


def test_a_second_stop_writes_nothing() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 40)
    tier.log(ORDERS).maybe_increment_log_start_offset(33)
    tier.stop()
    before = host.disk.contents("/a")
    assert tier.stop() == ()
    assert host.disk.contents("/a") == before


def test_a_new_directory_is_formatted_and_two_are_of_one_cluster() -> None:
    host = Host()
    host.started().stop()
    properties = [LogDir(host.disk, path).properties() for path in DIRS]
    assert [set(one) for one in properties] == [{"version", "cluster.id", "node.id", "directory.id"}] * 2
    assert properties[0]["cluster.id"] == properties[1]["cluster.id"]
    assert properties[0]["directory.id"] != properties[1]["directory.id"]
    host.started()
    assert [LogDir(host.disk, path).properties() for path in DIRS] == properties


def test_a_directory_that_another_process_has_is_refused(tmp_path: Path) -> None:
    world = World()
    world.start(tmp_path)
    config = ManagerConfig(log_dirs=(str(tmp_path),))
    with pytest.raises(Invalid, match="a broker or another process of ours is using this log directory"):
        LocalTier(world.disk, config, lambda: 0, lambda: 0.0, CountingIds().new_id).start()


def test_compacted_topics_keep_their_local_log_where_topics_are_tiered_by_default() -> None:
    host = Host(settings={**SMALL, "remote.storage.enable": "true"})
    tier = host.started()
    tier.create_topic("orders")
    tier.create_topic("state", 1, {"cleanup.policy": "compact"})
    assert tier.is_tiered(ORDERS)
    assert not tier.is_tiered(TopicPartition("state", 0))
    with pytest.raises(InvalidTopicConfig, match="a compacted topic cannot be tiered"):
        tier.create_topic("other", 1, {"cleanup.policy": "compact", "remote.storage.enable": "true"})


def test_the_disk_of_a_directory_fails_and_the_other_goes_on() -> None:
    host = Host()
    tier = host.started()
    tier.create_topic("orders", 2)
    with host.failing_writes("/a/"):
        tier.create_topic("payments", 1)
        assert [failure.directory for failure in tier.offline] == ["/a"]
        assert tier.log(TopicPartition("payments", 0)).folder.path == "/b/payments-0"
    tier.stop()
    tier = host.started()
    assert {*tier.topics()} == {"orders", "payments"}
