"""The batches that compaction must leave to each active producer (UnifiedLog.lastRecordsOfActiveProducers)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from local_log.engine.producers.state import Producer
from local_log.formats.record_batch.batch_v2 import Batches

_NO_DATA = -1


@dataclass(frozen=True, slots=True)
class LastRecords:
    """A row for each active producer, sorted by id: the last offset of its last data batch, -1 for none, and its epoch."""

    producer_ids: Any
    last_offsets: Any
    epochs: Any

    def are_in(self, batches: Batches) -> Any:
        """Whether each batch has its producer's last data or, if no data is known, its last marker, as a mask.

        The last data have the last sequence number, the last marker the epoch that fences earlier ones.
        """
        if not len(self.producer_ids):
            return np.zeros(len(batches), np.bool_)
        at = np.minimum(np.searchsorted(self.producer_ids, batches.header["producer_id"]), len(self.producer_ids) - 1)
        last = self.last_offsets[at]
        is_last_marker = batches.is_control & (batches.header["producer_epoch"] == self.epochs[at])
        is_last = np.where(last != _NO_DATA, batches.last_offset == last, is_last_marker)
        return (self.producer_ids[at] == batches.header["producer_id"]) & is_last


def last_records(producers: Iterable[Producer]) -> LastRecords:
    """The last records of these producers."""
    rows = sorted((p.producer_id, p.batches[-1].last_offset if p.batches else _NO_DATA, p.epoch) for p in producers)
    return LastRecords(*np.array(rows, np.int64).reshape(-1, 3).T)
