"""Kafka's tiered storage scenarios about replicas that come, go, move and lose their checkpoints: see KAFKA_CASES.md.

What a replica finds in the archive was offloaded beside another one, from another directory and in an earlier leader epoch.
"""

from itertools import pairwise
from pathlib import Path

import pytest
from small_brokers import A, B, values
from small_clusters import Cluster, Consumed

from local_log.formats.checkpoints import EpochEntry
from local_log.formats.filenames import CLEAN_SHUTDOWN, HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, TopicPartition
from remote.manifest.model import Manifest


def newest(cluster: Cluster, partition: TopicPartition) -> Manifest:
    """The manifest, without gaps and without an offset that is archived twice."""
    manifest = cluster.manifest(partition)
    assert manifest is not None
    assert manifest.gaps == ()
    assert all(before.end_offset == after.base_offset for before, after in pairwise(manifest.entries))
    return manifest


@pytest.mark.parametrize("stays", [True, False])
def test_a_new_replica_goes_on_from_what_another_has_archived(tmp_path: Path, stays: bool) -> None:
    """ReassignReplicaExpandTest, where the former replica stays, and ReassignReplicaMoveTest, where it goes."""
    cluster = Cluster.of(tmp_path, brokers=2)
    cluster.create_topic("topicB", {0: [0]}, batches_per_segment=1)
    cluster.produce(B, 0, 1, 2)
    cluster.offload_until_idle()
    assert cluster.archived(B) == {0: values(0), 1: values(1)}
    cluster.add_replica(B, 1)
    assert cluster.local(B, 1) == [2]
    cluster.lead(B, 1)
    if not stays:
        cluster.drop_replica(B, 0)
    cluster.produce(B, 3)
    cluster.offload_until_idle()
    assert cluster.archived(B) == {0: values(0), 1: values(1), 2: values(2)}
    assert [cluster.local(B, broker) for broker in cluster.replicas[B]] == [[3]] * (2 if stays else 1)
    assert cluster.consume(B, 0) == Consumed(values(0, 1, 2, 3), segments=[0, 1, 2])
    assert newest(cluster, B).leader_epochs == (EpochEntry(0, 0),)
    cluster.produce(B, 4)
    cluster.offload_until_idle()
    assert newest(cluster, B).leader_epochs == (EpochEntry(0, 0), EpochEntry(1, 3))
    assert cluster.consume(B, 0) == Consumed(values(*range(5)), segments=[0, 1, 2, 3])


def test_replicas_that_roll_at_other_offsets_are_archived_together_and_read_as_one_log(tmp_path: Path) -> None:
    """As ReassignReplicaExpandTest, but every replica's sidecar offloads, as ours know nothing of leaders."""
    cluster = Cluster.of(tmp_path, brokers=2)
    cluster.create_topic("topicB", {0: [0]}, batches_per_segment=2)
    cluster.produce(B, 0, 1, 2)
    cluster.add_replica(B, 1)
    cluster.log(B, 1).roll()
    cluster.produce(B, 3, 4, 5, 6)
    assert (cluster.local(B, 0), cluster.local(B, 1)) == ([0, 2, 4, 6], [0, 2, 3, 5])
    for broker in (1, 0, 1):
        assert [done.error for done in cluster.offload(broker) if done.error] == []
    assert cluster.archived(B) == {0: values(0, 1), 2: values(2), 3: values(3, 4), 4: values(4, 5)}
    assert cluster.objects(B) == 2 * 4
    cluster.offload_until_idle()
    assert [cluster.local(B, broker) for broker in (0, 1)] == [[6], [5]]
    assert cluster.consume(B, 0) == Consumed(values(*range(7)), segments=[0, 2, 3, 4])


def test_where_replicas_go_the_archive_stays_and_whoever_is_left_goes_on(tmp_path: Path) -> None:
    """ReassignReplicaShrinkTest."""
    cluster = Cluster.of(tmp_path, brokers=2)
    one = TopicPartition("topicA", 1)
    cluster.create_topic("topicA", {0: [0, 1], 1: [1, 0]}, batches_per_segment=1)
    for partition in (A, one):
        cluster.produce(partition, 0, 1, 2)
    cluster.offload_until_idle()
    for partition, leaves, leads in ((A, 0, 1), (one, 1, 0)):
        assert cluster.archived(partition) == {0: values(0), 1: values(1)}
        assert [cluster.local(partition, broker) for broker in (0, 1)] == [[2], [2]]
        cluster.lead(partition, leads)
        cluster.drop_replica(partition, leaves)
        cluster.produce(partition, 3)
    cluster.offload_until_idle()
    for partition in (A, one):
        assert cluster.local(partition) == [3]
        assert cluster.consume(partition, 0) == Consumed(values(0, 1, 2, 3), segments=[0, 1, 2])
        assert len(newest(cluster, partition).local_log_start_offsets) == 2  # each broker's sidecar has told its own


def test_a_replica_that_moved_to_another_directory_goes_on_in_the_same_archive(tmp_path: Path) -> None:
    """AlterLogDirTest."""
    cluster = Cluster.of(tmp_path, brokers=2, log_dirs=2)
    cluster.create_topic("topicB", {0: [1, 0]}, batches_per_segment=1)
    cluster.produce(B, 0, 1, 2)
    cluster.offload_until_idle()
    assert cluster.archived(B) == {0: values(0), 1: values(1)}
    assert [cluster.local(B, broker) for broker in (0, 1)] == [[2], [2]]
    before = cluster.brokers[0].folder_of(B)
    cluster.alter_log_dir(B, 0)
    assert cluster.brokers[0].folder_of(B) not in (before, None)
    cluster.lead(B, 0)
    cluster.produce(B, 3)
    cluster.offload_until_idle()
    assert [cluster.local(B, broker) for broker in (0, 1)] == [[3], [3]]
    assert cluster.archived(B) == {n: values(n) for n in range(3)}
    assert cluster.consume(B, 0) == Consumed(values(0, 1, 2, 3), segments=[0, 1, 2])
    newest(cluster, B)


def test_a_broker_without_its_checkpoints_goes_on_where_its_log_and_the_archive_are(tmp_path: Path) -> None:
    """FetchFromLeaderWithCorruptedCheckpointTest."""
    cluster = Cluster.of(tmp_path, brokers=2)
    cluster.create_topic("topicA", {0: [0, 1]}, batches_per_segment=1)
    cluster.produce(A, 0, 1, 2)
    cluster.offload_until_idle()
    assert cluster.consume(A, 0) == Consumed(values(0, 1, 2), segments=[0, 1])
    cluster.restart(0, without=[HIGH_WATERMARK_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, CLEAN_SHUTDOWN])
    cluster.restart(1)
    cluster.produce(A, 3, 4)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {n: values(n) for n in range(4)}
    assert [cluster.local(A, broker) for broker in (0, 1)] == [[4], [4]]
    assert cluster.consume(A, 0) == Consumed(values(*range(5)), segments=[0, 1, 2, 3])
    assert cluster.log(A).log_start_offset == 0
    newest(cluster, A)
