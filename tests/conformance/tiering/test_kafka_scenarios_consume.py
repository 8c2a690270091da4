"""Kafka's tiered storage scenarios about what is offloaded, what stays, and who is read from: see KAFKA_CASES.md.

Each test is one of Kafka's integration test classes, step by step, with our engine as the broker and our sidecar beside it.
"""

from pathlib import Path

import pytest
from archive_fakes import Door
from small_brokers import HOUR_MS, A, B, tiered_topic, values
from small_clusters import Cluster, Consumed

from local_log.formats.filenames import TopicPartition
from remote.read.context import ReadContext
from remote.read.index_cache import IndexCache
from tiering.read.tiered_log import Isolation


def test_inactive_segments_move_to_the_archive_and_are_consumed_from_there_after_a_restart(tmp_path: Path) -> None:
    """OffloadAndConsumeFromLeaderTest."""
    cluster = Cluster.of(tmp_path)
    cluster.create_topic("topicA", batches_per_segment=1)
    cluster.produce(A, 0, 1, 2)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {0: values(0), 1: values(1)}
    assert cluster.local(A) == [2]
    cluster.create_topic("topicB", batches_per_segment=2)
    cluster.produce(B, 0, 1, 2, 3, 4)
    cluster.offload_until_idle()
    assert cluster.archived(B) == {0: values(0, 1), 2: values(2, 3)}
    assert cluster.local(B) == [4]
    cluster.restart(0)
    assert cluster.consume(A, 1) == Consumed(values(1, 2), segments=[1])
    assert cluster.consume(B, 1) == Consumed(values(1, 2, 3, 4), segments=[0, 2])
    assert cluster.consume(B, 4) == Consumed(values(4), segments=[])


def test_archived_segments_are_the_bytes_that_the_broker_had(tmp_path: Path) -> None:
    """The same, byte for byte: what is fetched is what lay in the local log before anything of it was archived."""
    cluster = Cluster.of(tmp_path)
    cluster.create_topic("topicA", batches_per_segment=2)
    cluster.produce(A, *range(9))
    folder = cluster.brokers[0].folder_of(A)
    assert folder is not None
    whole = b"".join(file.read_bytes() for file in sorted((folder / str(A)).glob("*.log")))
    assert cluster.tiered(A).fetch(0, 1 << 20).records == whole
    cluster.offload_until_idle()
    assert cluster.local(A) == [8]
    fetched = cluster.tiered(A).fetch(0, 1 << 20)
    assert (fetched.records, fetched.next_offset) == (whole, 9)


def test_committed_reads_of_segments_without_aborted_transactions_ask_for_each_of_them_once(tmp_path: Path) -> None:
    """OffloadAndTxnConsumeFromLeaderTest, with its index cache that keeps nothing."""
    cluster = Cluster.of(tmp_path)
    cluster.create_topic("topicA", batches_per_segment=1)
    cluster.produce(A, *range(7))
    cluster.offload_until_idle()
    assert cluster.archived(A) == {n: values(n) for n in range(6)}
    assert cluster.local(A) == [6]
    keeps_nothing = ReadContext(indexes=IndexCache(memory_bytes_max=0))
    consumed = cluster.consume(A, 0, Isolation.read_committed, reading=keeps_nothing)
    assert consumed == Consumed(values(*range(7)), segments=[*range(6)])
    door = Door(cluster.store)
    list(cluster.tiered(A, reading=keeps_nothing, door=door).read(0, isolation=Isolation.read_committed))
    assert [call for call in door.calls if call[1].endswith(".aux")] == []


def test_the_active_segment_is_rolled_and_offloaded_when_local_retention_takes_it(tmp_path: Path) -> None:
    """RollAndOffloadActiveSegmentTest."""
    cluster = Cluster.of(tmp_path)
    cluster.create_topic("topicA", batches_per_segment=1)
    cluster.change("topicA", local_retention_ms=1)
    cluster.produce(A, 0, 1, 2, 3)
    assert cluster.local(A) == [0, 1, 2, 3]
    cluster.offload_until_idle()
    assert cluster.archived(A) == {n: values(n) for n in range(4)}
    assert cluster.local(A) == [4]
    assert cluster.consume(A, 0) == Consumed(values(0, 1, 2, 3), segments=[0, 1, 2, 3])
    assert cluster.consume(A, 4) == Consumed([], segments=[])
    cluster.produce(A, 4)
    assert cluster.consume(A, 3) == Consumed(values(3, 4), segments=[3])


def test_a_topic_that_becomes_tiered_is_offloaded_from_its_beginning(tmp_path: Path) -> None:
    """EnableRemoteLogOnTopicTest."""
    cluster = Cluster.of(tmp_path, brokers=2)
    cluster.create_topic("topicA", {0: [0, 1], 1: [1, 0]}, batches_per_segment=1, remote_storage_enable="false")
    both = (A, TopicPartition("topicA", 1))
    for partition in both:
        cluster.produce(partition, 0, 1, 2)
    cluster.offload_until_idle()
    for partition in both:
        assert cluster.archived(partition) == {}
        assert cluster.local(partition) == [0, 1, 2]
    cluster.configure("topicA", tiered_topic(1))
    for partition in both:
        cluster.produce(partition, 3, 4)
    cluster.offload_until_idle()
    for partition in both:
        assert cluster.archived(partition) == {n: values(n) for n in range(4)}
        assert [cluster.local(partition, broker) for broker in (0, 1)] == [[4], [4]]
        assert cluster.consume(partition, 0) == Consumed(values(*range(5)), segments=[0, 1, 2, 3])


def test_partitions_that_a_topic_gets_later_are_archived_each_for_itself(tmp_path: Path) -> None:
    """PartitionsExpandTest."""
    cluster = Cluster.of(tmp_path, brokers=2)
    one, two = TopicPartition("topicA", 1), TopicPartition("topicA", 2)
    cluster.create_topic("topicA", {0: [0, 1]}, batches_per_segment=1)
    cluster.produce(A, 0, 1, 2)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {0: values(0), 1: values(1)}
    cluster.create_partitions("topicA", {1: [0, 1], 2: [1, 0]})
    assert cluster.consume(A, 0) == Consumed(values(0, 1, 2), segments=[0, 1])
    for partition in (one, two):
        assert cluster.archived(partition) == {}
        cluster.produce(partition, 0, 1, 2)
    cluster.produce(A, 3, 4, 5)
    cluster.offload_until_idle()
    for partition in (one, two):
        assert cluster.archived(partition) == {0: values(0), 1: values(1)}
        assert cluster.local(partition) == [2]
    assert cluster.archived(A) == {n: values(n) for n in range(5)}
    assert cluster.local(A) == [5]
    assert cluster.consume(A, 0) == Consumed(values(*range(6)), segments=[0, 1, 2, 3, 4])
    assert cluster.consume(one, 0) == Consumed(values(0, 1, 2), segments=[0, 1])
    assert cluster.consume(two, 1) == Consumed(values(1, 2), segments=[1])


@pytest.mark.parametrize("copies", [True, False])
def test_local_retention_waits_for_the_archive_where_segments_are_copied(tmp_path: Path, copies: bool) -> None:
    """The first half of DisableRemoteLogOnTopicTest: nothing is copied, nothing is lost, and what is archived stays readable."""
    cluster = Cluster.of(tmp_path, brokers=2)
    cluster.create_topic("topicA", {0: [0, 1]}, batches_per_segment=1)
    cluster.produce(A, 0, 1, 2)
    cluster.offload_until_idle()
    if not copies:
        cluster.change("topicA", remote_log_copy_disable=True, local_retention_bytes=-2, local_retention_ms=-2)
    cluster.produce(A, 3, 4)
    cluster.offload_until_idle()
    archived = [0, 1, 2, 3] if copies else [0, 1]
    assert [*cluster.archived(A)] == archived
    assert cluster.local(A) == ([4] if copies else [2, 3, 4])
    assert cluster.consume(A, 0) == Consumed(values(*range(5)), segments=archived)
    if not copies:
        cluster.configure("topicA", tiered_topic(1))
        cluster.later(HOUR_MS)  # local retention alone: it takes nothing that the archive has not
        assert cluster.local(A) == [2, 3, 4]
        cluster.offload_until_idle()
        assert ([*cluster.archived(A)], cluster.local(A)) == ([0, 1, 2, 3], [4])
