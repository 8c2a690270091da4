"""What an append makes of its producers, judged before anything is written (UnifiedLog.analyzeAndValidateProducerState)."""

from dataclasses import dataclass

from local_log.engine.errors import InvalidProducerEpoch, InvalidTxnState
from local_log.engine.memory_records import MemoryBatch
from local_log.engine.producer_state_manager import ProducerStateManager
from local_log.engine.producers import BatchMetadata, CompletedTxn, DataBatch, Origin, ProducerUpdate
from local_log.engine.replay import marker_of
from local_log.formats.primitives import Buffer


@dataclass(frozen=True, slots=True)
class ProducerChanges:
    """Updates and ended transactions that the log takes over once the batches are written; or what they are a duplicate of."""

    updates: list[ProducerUpdate]
    completed: list[CompletedTxn]
    duplicate: BatchMetadata | None = None


def judge(
    producers: ProducerStateManager,
    records: Buffer,
    batches: list[MemoryBatch],
    origin: Origin,
    transaction_version: int,
    *,
    verifies: bool,
) -> ProducerChanges:
    """What the batches do. `verifies`: a transaction's first batch has to be confirmed by the coordinator.

    Raises Refused: OutOfOrderSequenceNumber, InvalidProducerEpoch, InvalidTxnState, TransactionCoordinatorFenced.
    """
    updates: dict[int, ProducerUpdate] = {}
    completed: list[CompletedTxn] = []
    is_leader = origin in (Origin.CLIENT, Origin.COORDINATOR)
    for batch in batches:
        producer_id = batch.producer_id
        if producer_id < 0:
            continue
        known = producers.producers.get(producer_id)
        if origin is Origin.CLIENT and known is not None:
            duplicate = known.duplicate_of(batch.producer_epoch, batch.base_sequence, batch.last_sequence)
            if duplicate is not None:
                return ProducerChanges(list(updates.values()), completed, duplicate)
        if is_leader and batch.is_transactional:
            _check_transaction(producers, batch, verifies=verifies)
        update = updates.get(producer_id)
        if update is None:
            update = updates[producer_id] = producers.prepare(producer_id, origin)
        if batch.is_control:
            marker = marker_of(batch, records)
            txn = None if marker is None else update.end(marker, transaction_version)
            if txn is not None:
                completed.append(txn)
        else:
            update.append(_data(batch))
        if batch.is_transactional:
            producers.verified(producer_id, batch.producer_epoch, is_marker=batch.is_control)
    return ProducerChanges(list(updates.values()), completed)


def _data(batch: MemoryBatch) -> DataBatch:
    return DataBatch(
        batch.producer_epoch,
        batch.base_sequence,
        batch.last_sequence,
        batch.base_offset,
        batch.last_offset,
        batch.max_timestamp,
        batch.is_transactional,
    )


def _check_transaction(producers: ProducerStateManager, batch: MemoryBatch, *, verifies: bool) -> None:
    known = producers.producers.get(batch.producer_id)
    if known is not None and known.txn_first_offset is not None and known.epoch == batch.producer_epoch:
        return
    if known is not None and batch.producer_epoch < known.epoch:
        raise InvalidProducerEpoch(
            f"producer {batch.producer_id} writes with epoch {batch.producer_epoch}; {known.epoch} has been seen"
        )
    if verifies and not batch.is_control and batch.producer_id not in producers.verifications:
        raise InvalidTxnState(f"producer {batch.producer_id} writes to a transaction that its coordinator has not confirmed")
