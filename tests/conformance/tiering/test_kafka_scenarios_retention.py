"""Kafka's tiered storage scenarios about what leaves the archive, and where a log starts then: see KAFKA_CASES.md.

Kafka's broker deletes what its topic's settings say. Here `tiering expire` does, told by the same names, and it follows the log
start offset that the broker has written down. The objects go in a second run, after a delay.
"""

from pathlib import Path

import pytest
from small_brokers import HOUR_MS, A, tiered_topic, values
from small_clusters import Cluster, Consumed

from local_log.errors import NotFound, OffsetOutOfRange
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.filenames import TopicPartition
from local_log.formats.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    UNKNOWN_OFFSET,
)
from remote.store.store_time import StoreRun
from tiering.retention import delete_topic
from tiering.retention import expire as retention
from tiering.retention.plan import Policy, RetentionPlan
from tiering.retention.policy import read_given
from tiering.retention.run import LocalTier, Retention
from tiering.wiring import Tiers

DELAY_MS = 60_000


def retain(cluster: Cluster, partition: TopicPartition, *settings: str, start: int | None = None) -> list[int]:
    """Archive retention as `tiering expire` does it beside the leader, from `start` on where that is given.

    The base offsets of the segments that it gives up. Their objects go by the next one, DELAY_MS later.
    """
    before = [*cluster.archived(partition)]
    both = Retention(
        cluster.store,
        cluster.clock,
        cluster.ids,
        read_given([f"file.delete.delay.ms={DELAY_MS}", *settings]),
        LocalTier.of(cluster.leader_dir(partition), lambda topic: topic == partition.topic),
        partition=partition.partition,
        log_start_offset=start,
        follows=True,
    )
    for _, due in both.done([partition.topic]):
        assert isinstance(due, RetentionPlan), due
    left = [*cluster.archived(partition)]
    return [base for base in before if base not in left]


def delete_archived_topic(cluster: Cluster, topic: str) -> None:
    """As `tiering delete-topic` does it: at first its partitions, DELAY_MS later, when it is run again, their objects."""
    for manifest in delete_topic.partitions(cluster.store, topic, None):
        if manifest.is_deleted:
            due = retention.plan(manifest, cluster.store, Policy(delete_delay_ms=DELAY_MS), cluster.clock.now)
            done = retention.expire(due, StoreRun(cluster.store, cluster.clock, cluster.ids), "delete-topic")
        else:
            done = delete_topic.delete_partition(manifest, StoreRun(cluster.store, cluster.clock, cluster.ids), "delete-topic")
        assert done.error is None


def assert_objects_go(cluster: Cluster, partition: TopicPartition, segments: int) -> None:
    """Of the objects those of so many segments are left, once the delay is over."""
    named = len(cluster.archived(partition))
    assert named == segments
    assert cluster.objects(partition) > 2 * segments
    retain(cluster, partition)
    assert cluster.objects(partition) > 2 * segments
    cluster.later(DELAY_MS)
    retain(cluster, partition)
    assert cluster.objects(partition) == 2 * segments


def assert_starts_at(cluster: Cluster, partition: TopicPartition, offset: int, epoch: int) -> None:
    """The log starts there in the archive and for readers, and the archive's lineage of leader epochs with it."""
    manifest = cluster.manifest(partition)
    assert manifest is not None
    assert manifest.log_start_offset == offset
    assert manifest.leader_epochs[0] == EpochEntry(epoch, offset)
    for below in (0, offset - 1):
        with pytest.raises(OffsetOutOfRange) as raised:
            cluster.consume(partition, below)
        assert raised.value.start == offset


@pytest.mark.parametrize("setting", ["retention.bytes=1", "retention.ms=1"])
def test_archived_segments_that_are_too_many_or_too_old_go_and_the_log_starts_behind_them(tmp_path: Path, setting: str) -> None:
    """DeleteSegmentsByRetentionSizeTest and DeleteSegmentsByRetentionTimeTest."""
    cluster = Cluster.of(tmp_path)
    cluster.create_topic("topicA", batches_per_segment=1)
    cluster.produce(A, 0, 1, 2, 3, times={3: cluster.clock.now + HOUR_MS})
    cluster.offload_until_idle()
    assert cluster.archived(A) == {n: values(n) for n in range(3)}
    assert cluster.local(A) == [3]
    name, _, value = setting.partition("=")
    cluster.configure("topicA", tiered_topic(1, **{name.replace(".", "_"): value}))
    assert retain(cluster, A, setting) == [0, 1, 2]
    assert_objects_go(cluster, A, 0)
    assert_starts_at(cluster, A, 3, epoch=0)
    cluster.offload_until_idle()
    assert cluster.local(A) == [3]
    assert cluster.tiered(A).earliest().offset == 3
    assert cluster.consume(A, 3) == Consumed(values(3), segments=[])


def test_records_that_are_deleted_take_the_archived_segments_below_them_along(tmp_path: Path) -> None:
    """DeleteSegmentsDueToLogStartOffsetBreachTest."""
    cluster = Cluster.of(tmp_path, brokers=2)
    cluster.create_topic("topicA", {0: [0, 1]}, batches_per_segment=2)
    cluster.produce(A, 0, 1, 2, 3, 4)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {0: values(0, 1), 2: values(2, 3)}
    assert cluster.local(A) == [4]
    cluster.delete_records(A, 3)
    assert retain(cluster, A) == [0]
    assert_objects_go(cluster, A, 1)
    assert_starts_at(cluster, A, 3, epoch=0)
    assert cluster.log(A).epochs.entries == [EpochEntry(0, 3)]
    assert cluster.consume(A, 3) == Consumed(values(3, 4), segments=[2])
    cluster.lead(A, 1)
    cluster.produce(A, 5, 6, 7, 8, 9)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {2: values(2, 3), 4: values(4, 5), 6: values(6, 7)}
    assert cluster.local(A) == [8]
    cluster.delete_records(A, 7)
    assert retain(cluster, A) == [2, 4]
    assert_objects_go(cluster, A, 1)
    assert_starts_at(cluster, A, 7, epoch=1)
    assert cluster.consume(A, 7) == Consumed(values(7, 8, 9), segments=[6])


@pytest.mark.parametrize("start", range(1, 7))
def test_records_are_deleted_up_to_any_offset_and_offloading_goes_on(tmp_path: Path, start: int) -> None:
    """DeleteRecords before, at and behind every border: of segments, of the tiers, and at the log's end."""
    cluster = Cluster.of(tmp_path)
    cluster.create_topic("topicA", batches_per_segment=2)
    cluster.produce(A, *range(6))
    cluster.offload_until_idle()
    assert cluster.archived(A) == {0: values(0, 1), 2: values(2, 3)}
    assert cluster.local(A) == [4]
    cluster.delete_records(A, start)
    assert retain(cluster, A) == [base for base in (0, 2) if base + 2 <= start]
    assert cluster.tiered(A).earliest().offset == start
    assert cluster.consume(A, start).values == values(*range(start, 6))
    cluster.produce(A, 6, 7, 8)
    cluster.offload_until_idle()
    left = [base for base in (0, 2, 4, 6) if base + 2 > start]
    assert cluster.archived(A) == {base: values(base, base + 1) for base in left}
    assert cluster.local(A) == [8]
    assert cluster.consume(A, start) == Consumed(values(*range(start, 9)), segments=left)
    assert cluster.tiered(A).earliest().offset == start


def test_a_deleted_topic_leaves_nothing_in_the_archive(tmp_path: Path) -> None:
    """DeleteTopicTest."""
    cluster = Cluster.of(tmp_path, brokers=2)
    one = TopicPartition("topicA", 1)
    cluster.create_topic("topicA", {0: [0, 1], 1: [1, 0]}, batches_per_segment=1)
    for partition in (A, one):
        cluster.produce(partition, 0, 1, 2)
    cluster.offload_until_idle()
    for partition in (A, one):
        assert cluster.archived(partition) == {0: values(0), 1: values(1)}
        assert cluster.local(partition) == [2]
    cluster.delete_topic("topicA")
    delete_archived_topic(cluster, "topicA")
    with pytest.raises(NotFound):
        Tiers(None, cluster.store).partitions("topicA")
    for partition in (A, one):
        assert cluster.archived(partition) == {}
        assert cluster.objects(partition) == 4
    cluster.later(DELAY_MS)
    delete_archived_topic(cluster, "topicA")
    assert [cluster.objects(partition) for partition in (A, one)] == [0, 0]


def test_a_topic_that_is_tiered_no_more_is_read_from_what_its_broker_has(tmp_path: Path) -> None:
    """DisableRemoteLogOnTopicTest: remote.log.copy.disable, off and on again, then remote.log.delete.on.disable."""
    cluster = Cluster.of(tmp_path, brokers=2)
    cluster.create_topic("topicA", {0: [0, 1]}, batches_per_segment=1)
    cluster.produce(A, 0, 1, 2)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {0: values(0), 1: values(1)}
    no_copies = {"remote_log_copy_disable": "true", "local_retention_bytes": "-2", "local_retention_ms": "-2"}
    cluster.configure("topicA", tiered_topic(1, **no_copies))
    cluster.offload_until_idle()
    assert cluster.consume(A, 0) == Consumed(values(0, 1, 2), segments=[0, 1])
    cluster.configure("topicA", tiered_topic(1))
    cluster.produce(A, 3)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {n: values(n) for n in range(3)}
    assert cluster.local(A) == [3]
    cluster.configure("topicA", tiered_topic(1, **no_copies))
    assert cluster.consume(A, 0) == Consumed(values(0, 1, 2, 3), segments=[0, 1, 2])
    cluster.delete_records(A, 1)
    assert retain(cluster, A) == [0]
    assert_objects_go(cluster, A, 2)
    cluster.configure("topicA", tiered_topic(1, remote_storage_enable="false"))
    assert retain(cluster, A, start=cluster.log(A).local_log_start_offset) == [1, 2]
    assert_objects_go(cluster, A, 0)
    assert cluster.consume(A, 3) == Consumed(values(3), segments=[])
    assert_starts_at(cluster, A, 3, epoch=0)
    cluster.configure("topicA", tiered_topic(1))
    cluster.produce(A, 4)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {3: values(3)}
    assert cluster.consume(A, 3) == Consumed(values(3, 4), segments=[3])


def test_list_offsets_answers_over_both_tiers_while_the_archive_grows_and_shrinks(tmp_path: Path) -> None:
    """ListOffsetsTest."""
    cluster = Cluster.of(tmp_path, brokers=2)
    t = cluster.clock.now
    times = {n: t + n for n in range(6)}
    cluster.create_topic("topicA", {0: [0, 1]}, batches_per_segment=2)
    cluster.produce(A, 0, 1, 2, times=times)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {0: values(0, 1)}
    assert cluster.local(A) == [2]
    cluster.lead(A, 1)
    cluster.produce(A, 3, 4, 5, times=times)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {0: values(0, 1), 2: values(2, 3)}
    assert cluster.local(A) == [4]
    named = {EARLIEST: (0, 0), EARLIEST_LOCAL: (4, 1), LATEST_TIERED: (3, 1), EARLIEST_PENDING_UPLOAD: (4, 1), LATEST: (6, 1)}
    assert listed(cluster, *named) == named
    local = {t + 6: (UNKNOWN_OFFSET, -1), t + 5: (5, 1), t + 4: (4, 1)}
    assert listed(cluster, *local) == local
    archived = {t - 1: (0, 0), t: (0, 0), t + 1: (1, 0), t + 2: (2, 0), t + 3: (3, 1)}
    assert listed(cluster, *archived) == archived
    cluster.delete_records(A, 3)
    assert retain(cluster, A) == [0]
    assert listed(cluster, *named) == named | {EARLIEST: (3, 1)}
    assert listed(cluster, t, t + 3, t + 4) == {t: (3, 1), t + 3: (3, 1), t + 4: (4, 1)}
    cluster.delete_records(A, 4)
    assert retain(cluster, A) == [2]
    # Kafka's broker remembers the last offset that it ever copied, here 3, until it starts anew. What is archived is nothing.
    assert listed(cluster, *named) == named | {EARLIEST: (4, 1), LATEST_TIERED: (UNKNOWN_OFFSET, -1)}
    assert listed(cluster, t, t + 4) == {t: (4, 1), t + 4: (4, 1)}


def listed(cluster: Cluster, *asked: int) -> dict[int, tuple[int, int]]:
    """Offset and leader epoch for each timestamp or number that is asked for."""
    log = cluster.tiered(A)
    answers = {timestamp: log.list_offsets(timestamp) for timestamp in asked}
    return {asked: (found.offset, found.leader_epoch) if found else (UNKNOWN_OFFSET, -1) for asked, found in answers.items()}
