"""An endpoint with log directories of its own and a transaction coordinator, on a simulated disk."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
from archive_fakes import CountingIds
from local_tiers import Host
from logs_at_work import batch_of
from writing_endpoint import WritingEndpoint

from local_log.engine.offsets import Isolation
from local_log.formats.batches import decode, scan
from local_log.formats.record_batch.batch_v2 import Batches
from local_log.formats.record_batch.columns import per_record
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.offsets_topic import OffsetsTopic
from tiering.endpoint.own_logs import OwnLogs
from tiering.endpoint.protocol.api_keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    OFFSET_FETCH,
    TXN_OFFSET_COMMIT,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tiering.endpoint.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tiering.endpoint.protocol.messages.end_txn import EndTxnRequest
from tiering.endpoint.protocol.messages.init_producer_id import InitProducerIdRequest
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tiering.endpoint.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.opening import open_transactions
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.reads import TierReads

OWN_ID = "shop"
SMALL = {"segment.index.bytes": "4096"}
V1, V2 = 11, 12
"""The versions of Produce of clients that add partitions before they write, and of those that do not."""


class TransactingEndpoint(WritingEndpoint):
    """One with few partitions of its own topics. Without a simulated host of its own it begins anew."""

    group_config = GroupCoordinatorConfig(offsets_topic_partitions=2, offsets_topic_segment_bytes=1 << 20)
    config = TransactionConfig(state_partitions=2, state_segment_bytes=1 << 20)

    def __init__(self, host: Host | None = None, *, more_topics: int = 0) -> None:
        super().__init__(host or Host(dirs=("/a",), settings=SMALL))
        self.clock.now = self.host.now
        for number in range(more_topics):
            self.tier.create_topic(f"more-{number}")

    def own(self, tier: LocalTier) -> None:
        """With coordinators on what the tier has."""
        groups = GroupCoordinator(
            self.group_config, OffsetsTopic.of(tier, self.group_config), self.clock, CountingIds(), self.said.append
        )
        groups.load()
        transactions = open_transactions(tier, self.config, groups, self.clock, self.said.append)
        logs = OwnLogs(TierReads(tier, None), self.host.disk)
        self.context = replace(self.context, local_tier=tier, groups=groups, transactions=transactions, logs=logs)

    def restart(self) -> None:
        """A clean one."""
        self.tier.stop()
        self.own(self.host.started())

    def init(self, own_id: str | None = OWN_ID, *, version: int = 5, timeout_ms: int = 60_000, **more: int) -> Any:
        """(producer id, epoch), or the error code."""
        found = self.ask(INIT_PRODUCER_ID, version, InitProducerIdRequest(own_id, timeout_ms, **more))
        return ErrorCode(found.error_code) if found.error_code else (found.producer_id, found.producer_epoch)

    def add(self, producer: tuple[int, int], *topics: str, own_id: str = OWN_ID, version: int = 3) -> dict[str, ErrorCode]:
        """The error code by topic, of partition 0 of each."""
        named = tuple(AddPartitionsToTxnTopic(topic, (0,)) for topic in topics or ("orders",))
        request = AddPartitionsToTxnRequest((), own_id, *producer, named)
        found = self.ask(ADD_PARTITIONS_TO_TXN, version, request).results_by_topic_v3_and_below
        return {topic.name: ErrorCode(topic.results_by_partition[0].partition_error_code) for topic in found}

    def write(self, producer: tuple[int, int], sequence: int, *, topic: str = "orders", version: int = V2) -> ErrorCode:
        """Of a batch of one record, with the text of its sequence number."""
        sent = batch_of(str(sequence), producer=producer[0], epoch=producer[1], sequence=sequence, transactional=True)
        return ErrorCode(self.produce(sent, topic, version=version, transactional_id=OWN_ID).error_code)

    def end(self, producer: tuple[int, int], *, commit: bool, own_id: str = OWN_ID, version: int = 5) -> Any:
        """(producer id, epoch), or the error code."""
        found = self.ask(END_TXN, version, EndTxnRequest(own_id, *producer, commit))
        return ErrorCode(found.error_code) if found.error_code else (found.producer_id, found.producer_epoch)

    def add_group(self, producer: tuple[int, int], group: str = "readers", *, version: int = 4) -> ErrorCode:
        """Whether the transaction has the group."""
        request = AddOffsetsToTxnRequest(OWN_ID, *producer, group)
        return ErrorCode(self.ask(ADD_OFFSETS_TO_TXN, version, request).error_code)

    def commit_offset(
        self,
        producer: tuple[int, int],
        offset: int,
        group: str = "readers",
        *,
        topic: str = "orders",
        version: int = 5,
        **more: Any,
    ) -> ErrorCode:
        """Of partition 0."""
        one = TxnOffsetCommitRequestTopic(topic, (TxnOffsetCommitRequestPartition(0, offset),))
        request = TxnOffsetCommitRequest(OWN_ID, group, *producer, topics=(one,), **more)
        return ErrorCode(self.ask(TXN_OFFSET_COMMIT, version, request).topics[0].partitions[0].error_code)

    def committed(self, group: str = "readers", *, topic: str = "orders", stable: bool = False) -> int | ErrorCode:
        """The group's offset in partition 0, -1 for none."""
        topics = (OffsetFetchRequestTopics(topic, partition_indexes=(0,)),)
        request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group, topics=topics),), require_stable=stable)
        found = self.ask(OFFSET_FETCH, 9, request).groups[0].topics[0].partitions[0]
        return ErrorCode(found.error_code) if found.error_code else found.committed_offset

    def seen(self, topic: str = "orders") -> list[str]:
        """The texts that a reader of committed records is given, in order."""
        log = self.log(topic)
        fetched = log.read(log.log_start_offset, 1 << 20, Isolation.TXN_COMMITTED)
        starts = sorted((one.first_offset, one.producer_id) for one in fetched.aborted or ())
        found: list[str] = []
        aborted: set[int] = set()
        batches, _ = scan(fetched.records)
        rows = [row for of, records in decode(fetched.records, batches) for row in _rows(of, records)]
        for producer_id, is_control, offset, value in rows:
            while starts and starts[0][0] <= offset:
                aborted.add(starts.pop(0)[1])
            if is_control:
                aborted.discard(producer_id)
            elif producer_id not in aborted:
                found.append(value.decode())
        return found


def _rows(of: Batches, records: pa.RecordBatch) -> Iterator[tuple[int, bool, int, bytes]]:
    columns: tuple[Any, ...] = (
        per_record(of, of.header["producer_id"]).tolist(),
        per_record(of, of.is_control).tolist(),
        records.column("offset").to_pylist(),
        records.column("value").to_pylist(),
    )
    return zip(*columns, strict=True)
