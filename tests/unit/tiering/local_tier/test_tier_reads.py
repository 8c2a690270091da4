"""Reads over both tiers of a LocalTier's logs: one for each partition, as long as its topic is there."""

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from local_tiers import ORDERS, SMALL, Host, produce
from managed import T0

from local_log.formats.filenames import TopicPartition
from local_log.formats.list_offsets import EARLIEST_LOCAL, LATEST_TIERED
from local_log.log_reader import open_log
from remote import archive
from tiering.local_tier.errors import UnknownTopicOrPartition
from tiering.local_tier.local_retention import retain
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.reads import TierReads
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan
from tiering.read.live_log import LiveLog

TIERED = {**SMALL, "remote.storage.enable": "true", "retention.ms": "-1", "local.retention.bytes": "0"}


def offloaded(tier: LocalTier, store: MemoryStore, ids: CountingIds, partition: TopicPartition) -> None:
    """What is inactive goes up, and leaves the disk."""
    archive.create_archive(store, FixedClock(), ids)
    log = tier.log(partition)
    reader = open_log(log.folder.disk, log.folder.path, partition, log.log_start_offset, log.high_watermark)
    done = offload(plan(reader, store), OffloadRun(store, FixedClock(), ids, "source", lambda _: None))
    assert [one.error for one in done if one.error] == []
    assert retain(log, reader, store, T0) > 0


def values(log: LiveLog, start: int = 0) -> list[int]:
    return [offset for batch in log.read(start) for offset in batch.column("offset").to_pylist()]


def test_a_partition_is_read_over_both_tiers_whatever_has_left_the_disk() -> None:
    host, store = Host(settings=TIERED), MemoryStore()
    tier = host.started()
    tier.create_topic("orders", 2)
    reads = TierReads(tier, store)
    log = reads.log(ORDERS)
    for end in (40, 80):
        produce(tier, ORDERS, 40)
        offloaded(tier, store, host.ids, ORDERS)
        reads.committed(ORDERS)
        local, tiered = log.list_offsets(EARLIEST_LOCAL), log.list_offsets(LATEST_TIERED)
        assert local is not None
        assert tiered is not None
        assert end - 40 < local.offset <= tiered.offset + 1 <= end
        assert values(log) == list(range(end))
    assert reads.log(ORDERS) is log
    reads.committed(TopicPartition("orders", 1))  # which nobody has read
    reads.close()
    assert values(reads.log(ORDERS), 79) == [79]


def test_a_topic_that_was_deleted_is_not_read_and_one_that_is_created_again_from_its_own_start() -> None:
    host, store = Host(settings=TIERED), MemoryStore()
    tier = host.started()
    tier.create_topic("orders")
    reads = TierReads(tier, store)
    produce(tier, ORDERS, 40)
    offloaded(tier, store, host.ids, ORDERS)
    former = reads.log(ORDERS)
    assert values(former) == list(range(40))
    tier.delete_topic("orders")
    with pytest.raises(UnknownTopicOrPartition):
        reads.log(ORDERS)
    tier.create_topic("orders")
    produce(tier, ORDERS, 3)
    assert reads.log(ORDERS) is not former
    assert values(reads.log(ORDERS)) == [0, 1, 2]
    assert reads.log(ORDERS).list_offsets(LATEST_TIERED) is None


def test_a_tier_without_an_archive_has_only_its_own_records() -> None:
    tier = Host().started()
    tier.create_topic("orders")
    produce(tier, ORDERS, 5)
    log = TierReads(tier, None).log(ORDERS)
    assert values(log) == list(range(5))
    assert log.list_offsets(LATEST_TIERED) is None
