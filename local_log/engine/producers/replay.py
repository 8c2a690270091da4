"""Rebuilds the producers' state from a log's batches: at startup, in recovery and after a truncation.

Batches come as columns. Between two markers the producers are independent, so each producer's batches are processed together.
Of a run of similar batches only the first (it may start a transaction) and the last few (they detect duplicates) matter.
"""

from collections.abc import Iterator

import numpy as np

from local_log.engine.memory_records import MemoryBatch, batch_at
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.producers.state import BATCHES_KEPT, CompletedTxn, DataBatch, Marker, Origin, ProducerUpdate
from local_log.engine.scan import Scanned
from local_log.errors import Corrupt
from local_log.formats.compression import inflate
from local_log.formats.control import ControlType, read_end_txn_marker
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec
from local_log.formats.record_batch.batch_v2 import Batches

_MAGIC_2 = 2

Step = tuple[int, "list[DataBatch] | Marker"]
"""A producer id, and some consecutive batches of it or the marker that ends its transaction."""


def of_producers(batches: Batches) -> np.ndarray:
    """The rows of the batches that have a producer id."""
    header = batches.header
    rows: np.ndarray = ((header["producer_id"] > -1) & (header["magic"] >= _MAGIC_2)).nonzero()[0]
    return rows


def steps(scanned: Scanned) -> Iterator[Step]:
    """The producers' batches and markers, in an order that gives the same state. Raises Corrupt for an invalid marker."""
    rows = of_producers(scanned.batches)
    control = scanned.batches.is_control[rows].nonzero()[0]
    start = 0
    for at in control.tolist():
        yield from _runs(scanned.batches, rows[start:at])
        marker = read_marker(scanned, int(rows[at]))
        if marker is not None:
            yield int(scanned.batches.header["producer_id"][rows[at]]), marker
        start = at + 1
    yield from _runs(scanned.batches, rows[start:])


def _runs(batches: Batches, rows: np.ndarray) -> Iterator[Step]:
    if not len(rows):
        return
    header = batches.header
    ids = header["producer_id"][rows]
    if (ids != ids[0]).any():
        order = np.argsort(ids, kind="stable")
        rows, ids = rows[order], ids[order]
    epochs, transactional = header["producer_epoch"][rows], batches.is_transactional[rows]
    changes = (ids[1:] != ids[:-1]) | (epochs[1:] != epochs[:-1]) | (transactional[1:] != transactional[:-1])
    starts = [0, *(changes.nonzero()[0] + 1).tolist(), len(rows)]
    for i, start in enumerate(starts[:-1]):
        end = starts[i + 1]
        kept = rows[[start, *range(max(start + 1, end - BATCHES_KEPT), end)]]
        yield int(ids[start]), data_batches(batches[kept])


def data_batches(batches: Batches) -> list[DataBatch]:
    """The batches of these rows as values."""
    header = batches.header
    columns = (
        header["producer_epoch"],
        header["base_sequence"],
        batches.last_sequence,
        header["base_offset"],
        batches.last_offset,
        header["max_timestamp"],
        batches.is_transactional,
    )
    return [DataBatch(*values) for values in zip(*(c.tolist() for c in columns), strict=True)]


def read_marker(scanned: Scanned, row: int) -> Marker | None:
    """A control batch's marker; None if compaction has emptied it. Raises Corrupt with the position, without the file."""
    try:
        return marker_of(batch_at(scanned.buffer, int(scanned.batches.positions[row])), scanned.buffer)
    except Corrupt as e:
        raise Corrupt(e.problem, position=int(scanned.starts[row])) from e


def marker_of(batch: MemoryBatch, records: Buffer) -> Marker | None:
    """A control batch's marker; None if compaction has emptied it. Raises Corrupt."""
    if not batch.records_count:
        return None
    payload = memoryview(records)[batch.position + BATCH_HEADER_BYTES : batch.position + batch.size]
    found = read_end_txn_marker(payload if batch.codec == Codec.none else inflate(batch.codec, payload))
    timestamp = batch.max_timestamp if batch.is_append_time else batch.base_timestamp + found.timestamp_delta
    is_abort = found.control_type is ControlType.ABORT
    return Marker(batch.producer_epoch, found.coordinator_epoch, is_abort, batch.base_offset, timestamp)


def replay_each(producers: ProducerStateManager, scanned: Scanned) -> Iterator[tuple[CompletedTxn, int]]:
    """Updates the producers batch by batch; yields each ended transaction with the last stable offset after it.

    Raises Corrupt; Refused if a producer writes outside of its open transaction.
    """
    for producer_id, step in steps(scanned):
        update = producers.prepare(producer_id, Origin.REPLICATION)
        completed = _apply(update, step)
        producers.update(update)
        if completed is not None:
            yield completed, producers.last_stable_offset(completed)
            producers.complete(completed)


class Replay:
    """Replays batches of several segments as one append: the producers change only in `finish`."""

    def __init__(self, producers: ProducerStateManager) -> None:
        self._producers = producers
        self._updates: dict[int, ProducerUpdate] = {}
        self._completed: list[CompletedTxn] = []

    def add(self, scanned: Scanned) -> None:
        """Adds batches. Raises as `replay_each` does."""
        for producer_id, step in steps(scanned):
            update = self._updates.get(producer_id)
            if update is None:
                update = self._updates[producer_id] = self._producers.prepare(producer_id, Origin.REPLICATION)
            completed = _apply(update, step)
            if completed is not None:
                self._completed.append(completed)

    def finish(self) -> None:
        """Applies the changes to the producers."""
        for update in self._updates.values():
            self._producers.update(update)
        for completed in self._completed:
            self._producers.complete(completed)


def _apply(update: ProducerUpdate, step: "list[DataBatch] | Marker") -> CompletedTxn | None:
    if isinstance(step, Marker):
        return update.end(step)
    for batch in step:
        update.append(batch)
    return None
