"""`__consumer_offsets` in a log directory of its own: what a restart, a power failure and the cleaner leave of it."""

from pathlib import Path

import pytest
from local_tiers import Host
from logs_at_work import batch_of
from offsets_kept import Coordinator
from small_logs import marker

from local_log.engine.manager.config import ManagerConfig
from local_log.engine.memory_records import memory_batches
from local_log.engine.producers.state import Origin
from local_log.errors import Invalid
from local_log.formats.filenames import TopicPartition
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.offset_metadata_manager import LogEnd
from tiering.endpoint.coordinator.offsets_log import NAME, Loaded, partition_for
from tiering.endpoint.coordinator.offsets_topic import OffsetsTopic
from tiering.endpoint.coordinator.opening import offsets_topic
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
from tiering.endpoint.coordinator.records import OffsetAndMetadata, offset_commit_record
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.opening import local_tier

CONFIG = GroupCoordinatorConfig(offsets_topic_partitions=3, offsets_topic_segment_bytes=1 << 20)


def on(host: Host) -> tuple[Coordinator, LocalTier]:
    """A coordinator on the host's directories, with what is there."""
    tier = host.started()
    return Coordinator(OffsetsTopic.of(tier, CONFIG)), tier


@pytest.fixture
def host() -> Host:
    return Host(dirs=("/a",), settings={})


@pytest.mark.parametrize(
    ("group", "code"),
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", 0), ("größe ✓", 421259460), ("🙂", 1772965)],
)
def test_a_group_belongs_to_the_partition_of_java_s_hash_code(group: str, code: int) -> None:
    assert partition_for(group, 1 << 31) == code
    assert partition_for(group, 50) == code % 50


def test_the_topic_is_made_once_with_the_settings_of_kafka_s(host: Host) -> None:
    _, tier = on(host)
    topic = tier.topics()[NAME]
    assert topic.partitions == (0, 1, 2)
    assert topic.config == {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "1048576"}
    tier.stop()
    assert on(host)[1].topics()[NAME].topic_id == topic.topic_id


def test_the_topic_has_a_policy_of_its_own_whatever_that_of_other_topics_is_and_keeps_what_was_set(host: Host) -> None:
    _, tier = on(host)
    tier.alter_configs(NAME, {"cleanup.policy": None, "segment.bytes": "2097152"})  # as after a restore
    tier.stop()
    host.settings = {"cleanup.policy": "compact,delete"}
    config = on(host)[1].config(NAME)
    assert (config.cleanup_policy, config.segment_bytes) == (("compact",), 2_097_152)


def test_offsets_of_many_groups_survive_a_restart_and_those_that_were_flushed_a_power_failure(host: Host) -> None:
    coordinator, tier = on(host)
    for number in range(9):
        coordinator.commit(number, group=f"group {number}", partition=number)
    kept = {number: {("orders", number): number} for number in range(9)}
    tier.stop()
    coordinator, tier = on(host)
    assert {number: coordinator.offsets(f"group {number}") for number in range(9)} == kept
    coordinator.commit(77, group="late")
    host.loses_power()
    coordinator, tier = on(host)
    assert {number: coordinator.offsets(f"group {number}") for number in range(9)} == kept
    assert [tier.log(p).log_end_offset for p in tier.partitions()] == [3, 3, 3]


def test_the_cleaner_keeps_the_last_commit_of_each_partition_and_a_restart_finds_it(host: Host) -> None:
    coordinator, tier = on(host)
    for number in range(300):
        coordinator.commit(number, partition=number % 2, committed_metadata="x" * 4000)
    coordinator.commit(5, partition=3)
    coordinator.delete(3)
    log = tier.log(TopicPartition(NAME, partition_for("readers", 3)))
    log.roll()
    before = sum(segment.size for segment in log.local.segments)
    assert not any(host.later(tier, 60_000) for _ in range(3))
    assert sum(segment.size for segment in log.local.segments) < before / 20
    assert coordinator.offsets() == {("orders", 0): 298, ("orders", 1): 299}
    tier.stop()
    assert on(host)[0].offsets() == {("orders", 0): 298, ("orders", 1): 299}


def test_of_what_was_committed_many_times_the_last_commit_is_loaded_and_all_that_transactions_have(host: Host) -> None:
    coordinator, tier = on(host)
    log = tier.log(TopicPartition(NAME, partition_for("readers", 3)))
    for number in range(40):
        coordinator.commit(number, partition=number % 2)
        if number in (10, 20):
            commit = offset_commit_record(OffsetCommitKey("readers", "orders", 0), OffsetAndMetadata(1000 + number, -1, "", 0))
            sent = batch_of(
                commit.value or b"", keys=(commit.key,), producer=number, sequence=0, transactional=True
            )  # of which one ends
            log.append_as_leader(sent, 0, Origin.REPLICATION)
    log.append_as_leader(marker(0, 10, commit=True), 0, Origin.COORDINATOR)
    coordinator.commit(5, partition=3)
    coordinator.delete(3)
    tier.stop()
    coordinator, tier = on(host)
    loaded = [found for found in OffsetsTopic.of(tier, CONFIG).load() if isinstance(found, Loaded)]
    assert [(one.transaction is None, one.record.value is None) for one in loaded] == [
        *[(False, False)] * 2,
        *[(True, False)] * 2,
        (True, True),
    ]
    assert coordinator.offsets() == {("orders", 0): 38, ("orders", 1): 39}
    assert coordinator.fetch(0, require_stable=True)["orders", 0][3] == 88, "the other one has not ended"


def test_transactions_that_a_broker_has_written_are_taken_up(host: Host) -> None:
    _, tier = on(host)
    log = tier.log(TopicPartition(NAME, partition_for("readers", 3)))
    for producer, offset in ((7, 70), (8, 80)):
        commit = offset_commit_record(OffsetCommitKey("readers", "orders", producer), OffsetAndMetadata(offset, -1, "", 0))
        sent = batch_of(commit.value or b"", keys=(commit.key,), producer=producer, sequence=0, transactional=True)
        log.append_as_leader(sent, 0, Origin.REPLICATION)
    log.append_as_leader(marker(0, 7, commit=True), 0, Origin.COORDINATOR)
    tier.stop()
    coordinator, tier = on(host)
    assert coordinator.offsets() == {("orders", 7): 70}
    assert coordinator.fetch(8, require_stable=True)["orders", 8][3] == 88
    tier.log(TopicPartition(NAME, partition_for("readers", 3))).append_as_leader(
        marker(0, 8, commit=False), 0, Origin.COORDINATOR
    )
    tier.stop()
    assert on(host)[0].fetch(8, require_stable=True)["orders", 8] == (-1, -1, "", 0)


def test_an_offset_of_an_open_transaction_beyond_the_end_of_its_log_is_that_end_when_it_is_committed(host: Host) -> None:
    _, tier = on(host)
    log = tier.log(TopicPartition(NAME, partition_for("readers", 3)))
    for number in (0, 1):
        commit = offset_commit_record(OffsetCommitKey("readers", "orders", number), OffsetAndMetadata(9, -1, "", 0))
        sent = batch_of(commit.value or b"", keys=(commit.key,), producer=7 + number, sequence=0, transactional=True)
        log.append_as_leader(sent, 0, Origin.REPLICATION)
    tier.stop()
    coordinator, tier = on(host)
    coordinator.groups.lower_offsets(lambda topic, number: LogEnd(ZERO_TOPIC_ID, 6))
    log = tier.log(TopicPartition(NAME, partition_for("readers", 3)))
    for producer, is_committed in ((7, True), (8, False)):
        log.append_as_leader(marker(0, producer, commit=is_committed), 0, Origin.COORDINATOR)
    tier.stop()
    coordinator, _ = on(host)
    assert coordinator.offsets() == {("orders", 0): 6}


def test_a_batch_that_the_cleaner_has_emptied_at_the_end_of_a_segment_is_read_over(host: Host) -> None:
    coordinator, tier = on(host)
    log = tier.log(TopicPartition(NAME, partition_for("readers", 3)))
    commit = offset_commit_record(OffsetCommitKey("readers", "orders", 0), OffsetAndMetadata(70, -1, "", 0))
    log.append_as_leader(batch_of(commit.value or b"", keys=(commit.key,), producer=7, sequence=0), 0, Origin.REPLICATION)
    log.roll()
    coordinator.commit(80)
    log.roll()
    assert not any(host.later(tier, 60_000) for _ in range(3))
    batches = memory_batches(log.read(0, 1 << 20).records)
    assert batches[0].records_count == 0
    assert batches[0].producer_id == 7
    tier.stop()
    assert on(host)[0].offsets() == {("orders", 0): 80}


def test_a_marker_ends_a_producer_s_transaction_in_its_own_partition_alone(host: Host) -> None:
    _, tier = on(host)
    by_partition = {partition_for(group, 3): group for group in map(str, range(20))}
    for number, group in sorted(by_partition.items()):
        commit = offset_commit_record(OffsetCommitKey(group, "orders", 0), OffsetAndMetadata(70, -1, "", 0))
        sent = batch_of(commit.value or b"", keys=(commit.key,), producer=7, sequence=0, transactional=True)
        tier.log(TopicPartition(NAME, number)).append_as_leader(sent, 0, Origin.REPLICATION)
    tier.log(TopicPartition(NAME, 2)).append_as_leader(marker(0, 7, commit=True), 0, Origin.COORDINATOR)
    tier.stop()
    found = on(host)[0]
    assert [found.offsets(by_partition[number]) for number in range(3)] == [{}, {}, {("orders", 0): 70}]


def test_a_directory_with_other_logs_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "kafka-logs"
    (path / "orders-0").mkdir(parents=True)
    with (
        pytest.raises(Invalid, match="orders-0: choose a directory for committed offsets alone"),
        offsets_topic(str(path), CONFIG, lambda _: None),
    ):
        pass
    assert [one.name for one in path.iterdir()] == ["orders-0"]


def test_a_directory_is_made_held_by_one_process_and_taken_up_again(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "offsets")
    with offsets_topic(path, CONFIG, lambda _: None) as topic:
        Coordinator(topic).commit(12)
        with pytest.raises(Invalid, match="is using this log directory"), offsets_topic(path, CONFIG, lambda _: None):
            pass
    with offsets_topic(path, GroupCoordinatorConfig(), lambda _: None) as topic:
        assert topic.partitions == 3, "as many as it was made with"
        assert Coordinator(topic).offsets() == {("orders", 0): 12}


def test_a_directory_that_lacks_a_partition_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path)
    with offsets_topic(path, CONFIG, lambda _: None):
        pass
    tier = local_tier(ManagerConfig(log_dirs=(path,)), lambda topic: {})
    tier.start()
    tier.stop()
    for name in ("tiering-topics.json", f"{NAME}-1"):
        one = tmp_path / name
        if one.is_dir():
            for file in one.iterdir():
                file.unlink()
            one.rmdir()
        else:
            one.unlink()
    with pytest.raises(Invalid, match="only some partitions"), offsets_topic(path, CONFIG, lambda _: None):
        pass
