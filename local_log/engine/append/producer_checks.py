"""Checks an append's producers before it is written (UnifiedLog.analyzeAndValidateProducerState)."""

from dataclasses import dataclass

from local_log.engine.errors import InvalidProducerEpoch, InvalidRecord, InvalidTxnState
from local_log.engine.memory_records import MemoryBatch
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.producers.replay import marker_of
from local_log.engine.producers.state import (
    BatchMetadata,
    CompletedTxn,
    DataBatch,
    Marker,
    Origin,
    Producer,
    ProducerUpdate,
    Verification,
)
from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer


@dataclass(frozen=True, slots=True)
class ProducerChanges:
    """The producer updates and ended transactions to apply after the batches are written; or the batch that they duplicate."""

    updates: list[ProducerUpdate]
    completed: list[CompletedTxn]
    duplicate: BatchMetadata | None = None


def judge(
    producers: ProducerStateManager,
    records: Buffer,
    batches: list[MemoryBatch],
    origin: Origin,
    transaction_version: int,
    verification: Verification | None,
) -> ProducerChanges:
    """The changes that the batches make. If transactions are verified, a transaction's first batch needs its `verification`.

    Raises Refused: OutOfOrderSequenceNumber, InvalidProducerEpoch, InvalidTxnState, TransactionCoordinatorFenced; InvalidRecord
    for a control batch without a marker.
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
            _check_transaction(producers, batch, verification)
        update = updates.get(producer_id)
        if update is None:
            update = updates[producer_id] = producers.prepare(producer_id, origin)
        if batch.is_control:
            marker = _marker(batch, records)
            txn = None if marker is None else update.end(marker, transaction_version)
            if txn is not None:
                completed.append(txn)
        else:
            update.append(_data(batch))
        if batch.is_transactional:
            producers.verified(producer_id, batch.producer_epoch, is_marker=batch.is_control)
    return ProducerChanges(list(updates.values()), completed)


def _marker(batch: MemoryBatch, records: Buffer) -> Marker | None:
    try:
        return marker_of(batch, records)
    except Corrupt as e:
        raise InvalidRecord(f"a control batch of producer {batch.producer_id}: {e.problem}") from e


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


def ask_verification(
    producers: ProducerStateManager, producer_id: int, sequence: int, epoch: int, *, supports_epoch_bump: bool
) -> Verification | None:
    """The verification that a transaction's first batch needs; None if the transaction has already begun.

    A marker invalidates it as well: a confirmation that arrives after the transaction's end is not valid for the next one.
    Raises InvalidProducerEpoch. (UnifiedLog.maybeStartTransactionVerification)
    """
    known = producers.producers.get(producer_id)
    _check_epoch(known, producer_id, epoch)
    return None if _is_open(known, epoch) else producers.verification(producer_id, sequence, epoch, supports_epoch_bump)


def _check_transaction(producers: ProducerStateManager, batch: MemoryBatch, verification: Verification | None) -> None:
    known = producers.producers.get(batch.producer_id)
    if _is_open(known, batch.producer_epoch):
        return
    _check_epoch(known, batch.producer_id, batch.producer_epoch)
    if batch.is_control or not producers.verifies_transactions:
        return
    if verification is None or producers.verifications.get(batch.producer_id) is not verification:
        raise InvalidTxnState(f"producer {batch.producer_id} writes to a transaction that its coordinator has not confirmed")


def _is_open(known: Producer | None, epoch: int) -> bool:
    return known is not None and known.txn_first_offset is not None and known.epoch == epoch


def _check_epoch(known: Producer | None, producer_id: int, epoch: int) -> None:
    if known is not None and epoch < known.epoch:
        raise InvalidProducerEpoch(f"producer {producer_id} writes with epoch {epoch}; {known.epoch} has been seen")
