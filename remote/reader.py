"""One archived partition as a log to read: the same questions as to a local log, answered from objects by ranged reads.

It answers from the manifest version that it was given, whatever is committed meanwhile.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from local_log.errors import Corrupt, placed
from local_log.formats.checkpoints import epoch_of
from local_log.formats.checksum import crc32c
from local_log.formats.chunks import FIRST_CHUNK_BYTES, Chunk, read_chunks
from local_log.formats.offset_index import OffsetIndex, read_offset_index
from local_log.formats.record import NO_EPOCH, NO_TIMESTAMP
from local_log.formats.search import TimestampOffset, first_at_or_after, latest_timestamp
from local_log.formats.time_index import read_time_index
from local_log.formats.txn_index import AbortedTxn, read_txn_index
from remote.errors import Invalid, NotFound
from remote.fetch_plan import Span, first_missing, pieces, plan, refuse_outside
from remote.manifest.entries import Entries
from remote.manifest.model import (
    ABORTED_LATER,
    IDENTITY,
    OFFSET_INDEX,
    TIME_INDEX,
    TRANSACTION_INDEX,
    Manifest,
    SegmentEntry,
)
from remote.object_store import ObjectReader

INDEXES_MAX = 64

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ArchivedLog:
    """The partition that `manifest` describes. Keeps the offset indexes of the last segments that it was asked about."""

    store: ObjectReader
    manifest: Manifest
    first_bytes: int = FIRST_CHUNK_BYTES
    entries: Entries = field(init=False, repr=False, compare=False)
    _indexes: dict[str, OffsetIndex] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", Entries.of(self.store, self.manifest))

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""
        return self.manifest.log_start_offset

    @property
    def end_offset(self) -> int:
        """The offset after the last archived one; every transaction below it is decided."""
        return self.manifest.end_offset

    def chunks(self, start_offset: int, end_offset: int, *, fail_on_data_loss: bool = True) -> Iterator[Chunk]:
        """The batches of `[start_offset, end_offset)`, each once.

        Raises OffsetOutOfRange, Corrupt, Unavailable; MissingRange when it comes to offsets that are missing.
        """
        for piece in pieces(self.manifest, self.entries.overlapping(start_offset, end_offset), start_offset, end_offset):
            if isinstance(piece, Span):
                yield from self.span_chunks(piece)
            elif fail_on_data_loss:
                raise piece

    def span_chunks(self, span: Span) -> Iterator[Chunk]:
        """The batches of a span of one segment."""
        start, end = self._bytes_of(span)
        for chunk in self._read(span.entry, start, end):
            inside = (chunk.batches.last_offset >= span.start) & (chunk.batches.base_offset < span.end)
            if inside.any():
                yield chunk.where(inside)

    def aborted(self, start_offset: int, end_offset: int) -> tuple[AbortedTxn, ...]:
        """The aborted transactions with records in `[start_offset, end_offset)`."""
        entries = self.entries.overlapping(start_offset, end_offset)
        spans = plan(self.manifest, entries, start_offset, end_offset, fail_on_data_loss=False)
        found = {t for span in spans for t in self._aborted_in(span.entry)}
        return tuple(sorted(t for t in found if t.first_offset < end_offset and t.last_offset >= start_offset))

    def offset_for_time(
        self, timestamp_ms: int, start_offset: int, end_offset: int, *, fail_on_data_loss: bool = True
    ) -> TimestampOffset | None:
        """The first record of `[start_offset, end_offset)` that is as late as `timestamp_ms`.

        Raises MissingRange where offsets before it are missing, since the record could be one of those.
        """
        refuse_outside(self.manifest, start_offset)
        end_offset = min(end_offset, self.end_offset)
        for span in self._spans_as_late_as(timestamp_ms, start_offset, end_offset):
            if fail_on_data_loss:
                self._refuse_missing(start_offset, span.start)
            offset = self._time_lookup(span.entry, timestamp_ms)
            later = Span(span.entry, min(max(span.start, offset), span.end), span.end)
            found = first_at_or_after(self.span_chunks(later), timestamp_ms, span.start, span.end)
            if found is not None:
                return found
        if fail_on_data_loss:
            self._refuse_missing(start_offset, end_offset)
        return None

    def latest_timestamp(self) -> TimestampOffset | None:
        """The record with the greatest timestamp, of the first segment that has it."""
        latest = self.entries.latest()
        return None if latest is None else latest_timestamp(self._read(latest, 0, latest.log_size))

    def at(self, offset: int) -> TimestampOffset:
        """`offset` with its leader epoch, as ListOffsets answers questions that are not about time."""
        epoch = epoch_of(self.manifest.leader_epochs, offset)
        return TimestampOffset(offset, NO_TIMESTAMP, NO_EPOCH if epoch is None else epoch)

    def _refuse_missing(self, start: int, end: int) -> None:
        missing = first_missing(self.manifest, start, end)
        if missing is not None:
            raise missing

    def _spans_as_late_as(self, timestamp_ms: int, start: int, end: int) -> Iterator[Span]:
        """The spans of `[start, end)` whose segments have so late a record, as `pieces` would give them among all others."""
        for entry in self.entries.as_late_as(timestamp_ms, start, end):
            first, last = max(start, entry.base_offset), min(end, entry.end_offset)
            for piece in pieces(self.manifest, self.entries.overlapping(first, last), first, last):
                if isinstance(piece, Span) and piece.entry.segment_id == entry.segment_id:
                    yield piece

    def _read(self, entry: SegmentEntry, start: int, end: int) -> Iterator[Chunk]:
        key = self.manifest.path.segment(entry.log_name)
        if entry.encoding != IDENTITY:
            raise Invalid(f"{key} is encoded as {entry.encoding!r}, which this version does not read: upgrade kafka-tiering")
        reached = start
        for chunk in read_chunks(lambda a, b: self._get(key, a, b), key, start, end, first_bytes=self.first_bytes):
            reached = chunk.end
            yield chunk
        if reached < end:
            raise Corrupt(f"no whole batch where {end - reached} bytes of them should be", file=key, position=reached)

    def _bytes_of(self, span: Span) -> tuple[int, int]:
        """The bytes of the segment that hold the span, as near as the offset index says."""
        entry = span.entry
        if span.start <= entry.base_offset and span.end >= entry.end_offset:
            return 0, entry.log_size
        index = self._offset_index(entry)
        return index.lookup(span.start), index.end_position(span.end, entry.log_size)

    def _offset_index(self, entry: SegmentEntry) -> OffsetIndex:
        if entry.segment_id not in self._indexes:
            while len(self._indexes) >= INDEXES_MAX:
                del self._indexes[next(iter(self._indexes))]
            index = self._aux(entry, OFFSET_INDEX, lambda body: read_offset_index(body, entry.base_offset))
            self._indexes[entry.segment_id] = index
        return self._indexes[entry.segment_id]

    def _time_lookup(self, entry: SegmentEntry, timestamp_ms: int) -> int:
        index = self._aux(entry, TIME_INDEX, lambda body: read_time_index(body, entry.base_offset))
        return index.lookup(timestamp_ms, entry.base_offset)

    def _aborted_in(self, entry: SegmentEntry) -> tuple[AbortedTxn, ...]:
        if entry.txn_index_empty:
            return ()
        return self._aux(entry, TRANSACTION_INDEX, read_txn_index) + self._aux(entry, ABORTED_LATER, read_txn_index)

    def _aux(self, entry: SegmentEntry, part: str, read: Callable[[bytes], T]) -> T:
        """One part of the aux object, read; of a part that the segment does not have, what no bytes at all are."""
        where = entry.aux_ranges.get(part)
        if where is None:
            return read(b"")
        key = self.manifest.path.segment(entry.aux_name)
        body = self._get(key, where.start, where.end)
        found = crc32c(body)
        if found != where.crc32c:
            problem = f"the {part} has CRC-32C {found:08x} where the manifest states {where.crc32c:08x}"
            raise Corrupt(problem, file=key, position=where.start)
        with placed(key, where.start):
            return read(body)

    def _get(self, key: str, start: int, end: int) -> bytes:
        """Bytes of an object that the manifest names: that it is missing or short is damage. Raises Corrupt, Unavailable."""
        try:
            return self.store.get_range(key, start, end)
        except (NotFound, Invalid) as e:
            problem = f"the manifest names it, and bytes [{start}, {end}) are not there: restore the object from a copy ({e})"
            raise Corrupt(problem, file=key, position=start) from e
