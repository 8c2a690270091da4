"""What the batches of one archived segment say about its transactions, beside what the archive tells its readers of them.

Readers with read_committed leave out a batch if an aborted transaction of its segment has its producer and its offset. Whether
it was aborted is what the next marker of its producer says (Kafka's ProducerStateManager). A log cleaner removes markers whose
transactions have no records left, and with them goes their offset: what comes after a missing offset says nothing about batches
before it, whose own marker may be what is missing. So these are not compared, nor are those before a marker that was emptied.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

import numpy as np

from local_log.formats.chunks import Chunk
from local_log.formats.control import ControlType
from local_log.formats.indexes.transaction import AbortedTxn

EMPTIED: Final = -1
"""The type of a marker without content, which ended a transaction in one way or the other."""

MISREAD_MAX: Final = 100
"""Findings about transactions that begin and end in one segment."""

_DATA: Final = -2


@dataclass(frozen=True, slots=True)
class TransactionBatches:
    """Batches of a producer, no marker in between, with base offsets from `first` to `last`; whether readers leave them out."""

    producer_id: int
    first: int
    last: int
    is_left_out: bool


@dataclass(frozen=True, slots=True)
class Markers:
    """Markers of producers, one each: arrays of the producers' ids, ascending, of offsets and of types (ControlType, EMPTIED)."""

    producers: Any
    offsets: Any
    types: Any

    def find(self, producer_id: int) -> tuple[int, int] | None:
        """The offset and the type of a producer's marker."""
        at = int(np.searchsorted(self.producers, producer_id))
        if at == len(self.producers) or self.producers[at] != producer_id:
            return None
        return int(self.offsets[at]), int(self.types[at])


@dataclass(frozen=True, slots=True)
class Misread:
    """Batches of which readers with read_committed get the opposite of what the marker says; see `is_misread`."""

    batches: TransactionBatches
    marker: int


@dataclass(frozen=True, slots=True)
class SegmentTransactions:
    """The transactions of a segment's batches.

    `misread` are batches whose marker is in the segment, too, MISREAD_MAX at most. `open` are those without a marker up to the
    segment's end. `markers` are the first ones of producers that have one before the first missing offset;
    `is_complete` says that no offset is missing.
    """

    misread: tuple[Misread, ...]
    markers: Markers
    open: tuple[TransactionBatches, ...]
    is_complete: bool


def is_misread(batches: TransactionBatches, marker_type: int) -> bool:
    """Whether readers get records that were aborted, or do not get records that were committed."""
    return marker_type == (ControlType.COMMIT if batches.is_left_out else ControlType.ABORT)


@dataclass(slots=True)
class TransactionsBuilder:
    """Collects the batches of a segment of `[base_offset, end_offset)`, in order, a few columns of each."""

    base_offset: int
    end_offset: int
    _next: int = field(init=False)
    _columns: list[tuple[Any, Any, Any]] = field(default_factory=list, init=False)
    _holes: list[Any] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._next = self.base_offset

    def add(self, chunk: Chunk, types: Mapping[int, int]) -> None:
        """Adds a chunk's batches; `types` are those of its markers by offset (see `transactions.control_types`)."""
        b = chunk.batches
        before = np.concatenate([[self._next], b.last_offset[:-1] + 1])
        self._holes.append(b.base_offset[b.base_offset > before])
        self._next = b.next_offset
        told = b[b.is_transactional & (b.is_control | (b.count > 0))]
        kinds = np.full(len(told), _DATA, np.int16)
        markers = np.flatnonzero(told.is_control)
        kinds[markers] = [types.get(offset, EMPTIED) for offset in told.base_offset[markers].tolist()]
        self._columns.append((told.base_offset.astype(np.int64), told.header["producer_id"].astype(np.int64), kinds))

    def build(self, aborted: Iterable[AbortedTxn], log_start_offset: int) -> SegmentTransactions:
        """The transactions, beside the `aborted` ones that readers of the segment are told of.

        Batches below the log start offset are not compared, since nobody reads them.
        """
        behind = [self.end_offset] if self._next < self.end_offset else []
        holes = np.concatenate([*self._holes, np.array(behind, np.int64)])
        nothing = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int16))
        offsets, producers, kinds = map(np.concatenate, zip(nothing, *self._columns, strict=True))
        seen = (offsets >= log_start_offset) | (kinds != _DATA)
        rows = _Rows.of(offsets[seen], producers[seen], kinds[seen], holes)
        left_out = rows.covered_by(tuple(aborted))
        return SegmentTransactions(
            tuple(islice(rows.misread(left_out), MISREAD_MAX)),
            rows.first_markers(),
            tuple(rows.open(left_out)),
            not len(holes),
        )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The batches of all producers, those of a producer in a row and in the order of the log.

    `following` is the row of the next marker of the same producer, of a batch that is a marker its own; -1 without one. `gone` is
    how many holes lie before a row.
    """

    offsets: Any
    producers: Any
    kinds: Any
    following: Any
    gone: Any
    holes: int
    keys: Any
    by_offset: Any
    known_producers: Any

    @classmethod
    def of(cls, offsets: Any, producers: Any, kinds: Any, holes: Any) -> "_Rows":
        known, ids = np.unique(producers, return_inverse=True)
        order = np.argsort(ids, kind="stable")
        count = len(order)
        markers = np.flatnonzero(kinds[order] != _DATA)
        at = np.searchsorted(markers, np.arange(count))
        following = np.append(markers, -1)[at]
        following[(following >= 0) & (ids[order][following] != ids[order])] = -1
        gone = np.searchsorted(holes, offsets[order], side="right")
        keys = ids[order].astype(np.int64) * (count + 1) + order
        return cls(offsets[order], producers[order], kinds[order], following, gone, len(holes), keys, offsets, known)

    def covered_by(self, aborted: tuple[AbortedTxn, ...]) -> Any:
        """Whether an aborted transaction has the producer and the offset of each row."""
        count = len(self.offsets)
        steps = np.zeros(count + 1, np.int64)
        if aborted and count:
            columns = np.array([(t.producer_id, t.first_offset, t.last_offset) for t in aborted], np.int64)
            ids = np.minimum(np.searchsorted(self.known_producers, columns[:, 0]), len(self.known_producers) - 1)
            known = self.known_producers[ids] == columns[:, 0]
            ids, columns = ids[known] * (count + 1), columns[known]
            starts = np.searchsorted(self.keys, ids + np.searchsorted(self.by_offset, columns[:, 1]))
            ends = np.searchsorted(self.keys, ids + np.searchsorted(self.by_offset, columns[:, 2], side="right"))
            np.add.at(steps, starts, 1)
            np.add.at(steps, ends, -1)
        return np.cumsum(steps)[:-1] > 0

    def misread(self, left_out: Any) -> Iterator[Misread]:
        """The batches whose marker follows and contradicts what readers are told."""
        told = (self.kinds == _DATA) & (self.following >= 0) & (self.gone == self.gone[self.following])
        wrong = np.where(left_out, ControlType.COMMIT, ControlType.ABORT)
        rows = np.flatnonzero(told & (self.kinds[self.following] == wrong))
        for some in _runs(rows, self.following[rows], left_out[rows]):
            yield Misread(self._batches(some, left_out), int(self.offsets[self.following[some[0]]]))

    def open(self, left_out: Any) -> Iterator[TransactionBatches]:
        """The batches behind the last marker of their producer, and behind the last hole."""
        rows = np.flatnonzero((self.kinds == _DATA) & (self.following < 0) & (self.gone == self.holes))
        for some in _runs(rows, self.producers[rows], left_out[rows]):
            yield self._batches(some, left_out)

    def first_markers(self) -> Markers:
        """The first marker of each producer, where no hole lies before it."""
        markers = np.flatnonzero((self.kinds != _DATA) & (self.gone == 0))
        producers, first = np.unique(self.producers[markers], return_index=True)
        return Markers(producers, self.offsets[markers][first], self.kinds[markers][first])

    def _batches(self, rows: Any, left_out: Any) -> TransactionBatches:
        first, last = rows[0], rows[-1]
        return TransactionBatches(
            int(self.producers[first]), int(self.offsets[first]), int(self.offsets[last]), bool(left_out[first])
        )


def _runs(rows: Any, *by: Any) -> Iterator[Any]:
    """The rows, divided where one of the columns changes."""
    if len(rows):
        changes = np.logical_or.reduce([column[1:] != column[:-1] for column in by])
        yield from np.split(rows, np.flatnonzero(changes) + 1)
