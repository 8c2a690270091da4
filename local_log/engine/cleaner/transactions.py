"""Which batches the transactions let the cleaner discard, batch by batch through the log (CleanedTransactionMetadata)."""

import heapq
from collections.abc import Iterable
from typing import Any

import numpy as np

from local_log.formats.chunks import Chunk
from local_log.formats.control import ControlType
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.transactions import control_types


class CleanedTransactions:
    """The open transactions at the current position.

    A marker may go once no batch of its transaction is left; an aborted transaction's batches may go at once.
    """

    def __init__(self) -> None:
        self._kept: list[AbortedTxn] = []
        self._waiting: list[AbortedTxn] = []
        self._aborted: dict[int, AbortedTxn] = {}
        self._observed: set[int] = set()
        self._committed: set[int] = set()

    def add(self, aborted: Iterable[AbortedTxn]) -> None:
        """The aborted transactions with records in the part of the log that is read next."""
        for txn in aborted:
            heapq.heappush(self._waiting, txn)

    def discardable(self, chunk: Chunk) -> Any:
        """Whether each batch may be discarded, as a mask: data of an aborted transaction, or a marker of one that is gone.

        Raises Corrupt for a control batch that cannot be read.
        """
        b = chunk.batches
        discardable = np.zeros(len(b), np.bool_)
        rows = np.flatnonzero(b.is_transactional | b.is_control)
        types = control_types(chunk.where(b.is_control))
        columns = (rows, b.header["producer_id"][rows], b.is_control[rows], b.base_offset[rows], b.last_offset[rows])
        for row, producer, is_control, offset, last in zip(*(column.tolist() for column in columns), strict=True):
            self._start_up_to(last)
            discardable[row] = self._end(producer, types.get(offset)) if is_control else self._observe(producer)
        return discardable

    def take_kept(self) -> list[AbortedTxn]:
        """The aborted transactions since the last call that still have batches: they stay in the transaction index."""
        kept, self._kept = self._kept, []
        return kept

    def _start_up_to(self, offset: int) -> None:
        while self._waiting and self._waiting[0].first_offset <= offset:
            txn = heapq.heappop(self._waiting)
            self._aborted.setdefault(txn.producer_id, txn)

    def _observe(self, producer: int) -> bool:
        if producer in self._aborted:
            self._observed.add(producer)
            return True
        self._committed.add(producer)
        return False

    def _end(self, producer: int, control_type: int | None) -> bool:
        if control_type is None:  # the batch has been emptied before
            return True
        if control_type == ControlType.ABORT:
            txn = self._aborted.pop(producer, None)
            if txn is None or producer not in self._observed:
                return True
            self._observed.discard(producer)
            self._kept.append(txn)
            return False
        if control_type == ControlType.COMMIT:
            is_gone = producer not in self._committed
            self._committed.discard(producer)
            return is_gone
        return False
