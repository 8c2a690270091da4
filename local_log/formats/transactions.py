"""Tracks transactions through a log's batches, as Kafka's ProducerStateManager does: the open ones, and the end of each."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from local_log.errors import Corrupt
from local_log.formats.chunks import Chunk
from local_log.formats.control import ControlType, read_control_type
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.record_batch.projection import Projection

_KEYS_ONLY = Projection(value=False, headers=False)


class EndedTxn(NamedTuple):
    """A transaction that a marker has ended: `txn` is its entry in a transaction index, if it was aborted.

    `has_records` is False if compaction has emptied all of its tracked batches.
    """

    txn: AbortedTxn
    is_aborted: bool
    has_records: bool


class Transactions:
    """The open transactions at the current position: `open` has the first offset of each by producer id."""

    def __init__(self, open_at_start: Mapping[int, int] | None = None) -> None:
        self.open: dict[int, int] = dict(open_at_start or {})
        self._with_records = set(self.open)

    def follow(self, chunk: Chunk, marker_types: Mapping[int, int] | None = None) -> Iterator[EndedTxn]:
        """Processes the chunk's batches; yields each transaction that ends in it. Raises Corrupt.

        A marker that compaction has emptied has no content, so it ends no transaction. `marker_types` are the chunk's
        `control_types`, if they are known.
        """
        transactional = chunk.where(chunk.batches.is_transactional)
        types = control_types(transactional.where(transactional.batches.is_control)) if marker_types is None else marker_types
        b = transactional.batches
        columns = (b.header["producer_id"], b.is_control, b.base_offset, b.count)
        for producer, is_marker, offset, count in zip(*(column.tolist() for column in columns), strict=True):
            if not is_marker:
                self.open.setdefault(producer, offset)
                if count:
                    self._with_records.add(producer)
            elif producer in self.open and offset in types:
                first, has_records = self.open.pop(producer), producer in self._with_records
                self._with_records.discard(producer)
                last_stable = min(self.open.values(), default=offset + 1)
                txn = AbortedTxn(first, offset, producer, last_stable)
                yield EndedTxn(txn, types[offset] == ControlType.ABORT, has_records)


def control_types(markers: Chunk) -> dict[int, int]:
    """The type of each control record by offset, to compare with ControlType; all batches are control batches. Raises Corrupt."""
    types: dict[int, int] = {}
    if not len(markers.batches):
        return types
    for _, records in markers.records(_KEYS_ONLY):
        for offset, key in zip(records.column("offset").to_pylist(), records.column("key").to_pylist(), strict=True):
            try:
                types[offset] = read_control_type(key or b"")
            except Corrupt as e:
                raise Corrupt(
                    f"control record of offset {offset}: {e.problem}", file=markers.file, position=markers.position
                ) from e
    return types
