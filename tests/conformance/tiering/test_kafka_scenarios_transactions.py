"""Kafka's scenarios about transactions over tiers (TransactionsWithTieredStoreTest): see KAFKA_CASES.md.

Clients and coordinator are Kafka's affair; what they write into a log is written here as they would, records and markers. Where
a segment takes one batch, a transaction, its marker and the list of what was aborted lie in as many segments, in both tiers.
"""

from pathlib import Path
from zlib import crc32

import pytest
from small_brokers import A, B, Producer, values
from small_clusters import Cluster, Consumed

from local_log.engine.errors import InvalidProducerEpoch
from local_log.formats.filenames import TopicPartition
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.list_offsets import LATEST, TimestampOffset
from tiering.read.tiered_log import Isolation

COMMITTED = Isolation.read_committed
ONE, OTHER = Producer(1_000), Producer(2_000)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """Three brokers with two topics, which they lead in turn."""
    cluster = Cluster.of(tmp_path, brokers=3)
    cluster.create_topic("topicA", {0: [0, 1, 2]})
    cluster.create_topic("topicB", {0: [1, 2, 0]})
    return cluster


def starts(cluster: Cluster, partition: TopicPartition) -> set[tuple[int, int]]:
    """Log start offset and local log start offset of every replica."""
    logs = [cluster.log(partition, broker) for broker in cluster.replicas[partition]]
    return {(log.log_start_offset, log.local_log_start_offset) for log in logs}


def test_only_what_is_decided_is_archived_and_committed_readers_see_only_what_was_committed(cluster: Cluster) -> None:
    """testBasicTransactions."""
    cluster.produce(B, 2, by=ONE)
    cluster.produce(A, 4, by=ONE)
    cluster.offload_until_idle()
    for partition in (A, B):
        assert starts(cluster, partition) == {(0, 0)}
        assert cluster.archived(partition) == {}
    cluster.end_transaction(ONE, A, B, commits=False)
    cluster.offload_until_idle()
    for partition in (A, B):
        assert starts(cluster, partition) == {(0, 1)}
    assert (cluster.archived(A), cluster.archived(B)) == ({0: values(4)}, {0: values(2)})
    cluster.produce(A, 1, by=ONE)
    cluster.produce(B, 3, by=ONE)
    cluster.offload_until_idle()
    for partition, aborted, undecided in ((A, 4, 1), (B, 2, 3)):
        assert cluster.log(partition).last_stable_offset == 2
        # The marker is decided, too: Kafka's test looks before local retention does.
        assert cluster.archived(partition) == {0: values(aborted), 1: []}
        assert cluster.consume(partition, 0).values == values(aborted, undecided)
        assert cluster.consume(partition, 0, COMMITTED).values == []
    cluster.end_transaction(ONE, A, B, commits=True)
    cluster.offload_until_idle()
    for partition, aborted, committed in ((A, 4, 1), (B, 2, 3)):
        assert starts(cluster, partition) == {(0, 3)}
        assert cluster.archived(partition) == {0: values(aborted), 1: [], 2: values(committed)}
        assert cluster.consume(partition, 0) == Consumed(values(aborted, committed), segments=[0, 1, 2])
        assert cluster.consume(partition, 0, COMMITTED) == Consumed(values(committed), segments=[0, 1, 2])


def test_committed_readers_see_nothing_of_what_is_undecided_not_even_its_time(cluster: Cluster) -> None:
    """testReadCommittedConsumerShouldNotSeeUndecidedData."""
    visible = cluster.clock.now
    written = visible + 1
    for partition in (A, B):
        cluster.produce(partition, 1, by=OTHER, times={1: visible})
        cluster.produce(partition, 10, 11, by=ONE, times={10: written, 11: written})
        cluster.produce(partition, 2, by=OTHER, times={2: written})
    cluster.end_transaction(OTHER, A, B, commits=True)
    cluster.offload_until_idle()
    for partition in (A, B):
        assert cluster.archived(partition) == {0: values(1)}
        assert starts(cluster, partition) == {(0, 1)}
        assert cluster.consume(partition, 0) == Consumed(values(1, 10, 11, 2), segments=[0])
        assert cluster.consume(partition, 0, COMMITTED) == Consumed(values(1), segments=[0])
        log = cluster.tiered(partition)
        assert log.list_offsets(written) == TimestampOffset(1, written, 0)
        assert log.list_offsets(written, COMMITTED) is None
        assert log.list_offsets(visible, COMMITTED) == TimestampOffset(0, visible, 0)
        latest = log.list_offsets(LATEST, COMMITTED)
        assert latest is not None
        assert latest.offset == 1
        fetched = log.fetch(0, 1 << 20, COMMITTED)
        assert (fetched.next_offset, fetched.aborted) == (1, ())


def test_one_fetch_over_all_segments_says_what_was_aborted_in_them(cluster: Cluster) -> None:
    """testDelayedFetchIncludesAbortedTransaction."""
    cluster.produce(A, 1, by=OTHER)
    cluster.produce(A, 10, 11, by=ONE)
    cluster.produce(A, 2, by=OTHER)
    cluster.offload_until_idle()
    assert starts(cluster, A) == {(0, 0)}
    cluster.end_transaction(ONE, A, commits=False)
    cluster.end_transaction(OTHER, A, commits=True)
    cluster.offload_until_idle()
    assert starts(cluster, A) == {(0, 5)}
    assert cluster.archived(A) == {0: values(1), 1: values(10), 2: values(11), 3: values(2), 4: []}
    log = cluster.tiered(A)
    fetched = log.fetch(0, 100_000, COMMITTED)
    assert fetched.next_offset == 6
    assert fetched.aborted == (AbortedTxn(1, 4, ONE.id, 0),)
    assert [b["offset"].to_pylist() for b in log.read(0, isolation=COMMITTED)] == [[0], [3]]
    assert cluster.consume(A, 0, COMMITTED).values == values(1, 2)
    for start in range(7):
        expected = values(*(n for n, offset in ((1, 0), (2, 3)) if offset >= start))
        assert cluster.consume(A, start, COMMITTED).values == expected


@pytest.mark.slow
def test_of_copies_that_were_made_again_until_they_were_committed_each_is_read_once(tmp_path: Path) -> None:
    """testSendOffsetsWithGroupMetadata: 500 records copied in transactions of ten, of which every other one is aborted."""
    cluster = Cluster.of(tmp_path)
    partitions = [TopicPartition("topicB", number) for number in range(4)]
    cluster.create_topic("topicB", {p.partition: [0] for p in partitions}, batches_per_segment=50)
    for first in range(0, 500, 10):
        where = {n: partitions[crc32(b"k%d" % n) % 4] for n in range(first, first + 10)}
        for commits in (False, True):
            for n, partition in where.items():
                cluster.produce(partition, n, by=ONE, replicated=False)
            cluster.end_transaction(ONE, *sorted(set(where.values())), commits=commits)
    cluster.offload_until_idle()
    consumed = [cluster.consume(partition, 0, COMMITTED) for partition in partitions]
    assert all(cluster.local(p)[0] > 0 and len(cluster.archived(p)) > 3 for p in partitions)
    assert sorted(v for one in consumed for v in one.values) == sorted(values(*range(500)))
    assert sum(len(cluster.consume(partition, 0).values) for partition in partitions) == 1_000


def test_what_a_fenced_producer_has_written_is_aborted_and_nothing_more_comes(cluster: Cluster) -> None:
    """testFencingOnCommit, testFencingOnSendOffsets, testFencingOnSend and testFencingOnAddPartitions: a second producer starts
    under the same transactional id, whose first transaction is aborted then."""
    fenced, second = Producer(7), Producer(7, epoch=2)
    cluster.produce(A, 1, by=fenced)
    cluster.produce(B, 3, by=fenced)
    cluster.end_transaction(fenced, A, B, commits=False, epoch=1)
    cluster.offload_until_idle()
    for partition in (A, B):
        cluster.produce(partition, 2, by=second)
        with pytest.raises(InvalidProducerEpoch):
            cluster.produce(partition, 5, by=fenced)
    cluster.end_transaction(second, A, B, commits=True)
    cluster.offload_until_idle()
    for partition, aborted in ((A, 1), (B, 3)):
        assert cluster.archived(partition) == {0: values(aborted), 1: [], 2: values(2)}
        assert cluster.consume(partition, 0, COMMITTED) == Consumed(values(2), segments=[0, 1, 2])
        assert cluster.consume(partition, 0).values == values(aborted, 2)


def test_a_transaction_that_took_too_long_is_aborted_by_its_coordinator(cluster: Cluster) -> None:
    """testFencingOnTransactionExpiration."""
    expiring = Producer(9)
    cluster.produce(A, 1, by=expiring)
    cluster.end_transaction(expiring, A, commits=False, epoch=1)
    cluster.offload_until_idle()
    assert cluster.archived(A) == {0: values(1)}
    with pytest.raises(InvalidProducerEpoch):
        cluster.produce(A, 2, by=expiring)
    assert cluster.consume(A, 0) == Consumed(values(1), segments=[0])
    assert cluster.consume(A, 0, COMMITTED) == Consumed([], segments=[0])


def test_transactions_over_many_partitions_are_decided_in_each_of_them(tmp_path: Path) -> None:
    """testMultipleMarkersOneLeader, with a tenth of its records and a segment for every thirty."""
    cluster = Cluster.of(tmp_path, brokers=2)
    large = [TopicPartition("large", number) for number in range(10)]
    lone = [TopicPartition("lone", number) for number in range(10)]
    cluster.create_topic("large", {p.partition: [0, 1] for p in large}, batches_per_segment=30)
    cluster.create_topic("lone", {p.partition: [1] for p in lone}, batches_per_segment=30)
    spread(cluster, large, range(500), commits=False)
    spread(cluster, lone, range(500, 1_000), commits=False)
    cluster.offload_until_idle()
    spread(cluster, large, range(1_000, 1_100), commits=True)
    cluster.offload_until_idle()
    assert all(cluster.archived(p) for p in (*large, *lone))
    committed = [v for p in (*large, *lone) for v in cluster.consume(p, 0, COMMITTED).values]
    assert sorted(committed) == sorted(values(*range(1_000, 1_100)))
    everything = [v for p in (*large, *lone) for v in cluster.consume(p, 0).values]
    assert sorted(everything) == sorted(values(*range(1_100)))


def spread(cluster: Cluster, partitions: list[TopicPartition], numbers: range, *, commits: bool) -> None:
    """One transaction, its records over all of these partitions."""
    for at, partition in enumerate(partitions):
        cluster.produce(partition, *numbers[at :: len(partitions)], by=ONE)
    cluster.end_transaction(ONE, *partitions, commits=commits)


def test_a_producer_that_has_used_up_its_epochs_goes_on_under_another_id(cluster: Cluster) -> None:
    """testRecoveryFromEpochOverflow."""
    last = Producer(5, epoch=32_766)
    cluster.produce(A, 1, by=Producer(5))
    cluster.end_transaction(Producer(5), A, commits=False)
    cluster.produce(A, 2, by=last)
    cluster.end_transaction(last, A, commits=False, epoch=32_767)
    cluster.offload_until_idle()
    aborted, following = Producer(6), Producer(6, epoch=2)
    cluster.produce(A, 3, by=aborted)
    cluster.end_transaction(aborted, A, commits=False, epoch=1)
    cluster.produce(A, 4, by=following)
    cluster.end_transaction(following, A, commits=True)
    cluster.offload_until_idle()
    assert len(cluster.archived(A)) == 7
    assert cluster.consume(A, 0, COMMITTED) == Consumed(values(4), segments=[*range(7)])
    assert cluster.consume(A, 0).values == values(1, 2, 3, 4)


@pytest.mark.parametrize("raised", [False, True])
def test_transactions_of_one_producer_in_growing_epochs_are_each_decided_by_their_own_marker(
    cluster: Cluster, raised: bool
) -> None:
    """testBumpTransactionalEpochWithTV2Disabled, and …WithTV2Enabled, where every marker raises the epoch."""
    epoch = 0
    for n, commits in ((4, True), (2, False), (1, True), (3, True)):
        by = Producer(3, epoch)
        for partition in (A, B):
            cluster.produce(partition, n, by=by)
        epoch += 1 if raised or not commits else 0
        cluster.end_transaction(by, A, B, commits=commits, epoch=epoch)
        cluster.offload_until_idle()
    for partition in (A, B):
        assert len(cluster.archived(partition)) == 7
        assert cluster.consume(partition, 0, COMMITTED) == Consumed(values(4, 1, 3), segments=[*range(7)])
        assert cluster.consume(partition, 0).values == values(4, 2, 1, 3)
        assert cluster.log(partition).producers.producers[3].epoch == epoch
