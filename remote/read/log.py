"""One archived partition as a log to read: the same questions as to a local log, answered from objects by ranged reads.

It answers from the manifest version that it was given, whatever is committed meanwhile.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from local_log.errors import Corrupt
from local_log.formats.checkpoints import epoch_of
from local_log.formats.chunks import FIRST_CHUNK_BYTES, Chunk, join_chunks
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.list_offsets import TimestampOffset, first_at_or_after, latest_timestamp
from local_log.formats.record import NO_EPOCH, NO_TIMESTAMP
from local_log.formats.record_batch.columns import EVERYTHING, Projection
from local_log.formats.visible_records import record_batches
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest, SegmentEntry
from remote.read.context import ReadContext
from remote.read.index_cache import SegmentIndexes
from remote.read.plan import Span, check_start_offset, fetch_plan, first_missing, spans_and_gaps
from remote.read.read_ahead import ReadAhead, ReadRange
from remote.segment_bytes import SegmentBytes
from remote.store.api import Body, ObjectReader

_BEFORE_BYTES = 16 << 10
"""What may come before a batch whose offset the index leads to: mostly a few KB, as the index has an entry for every 4."""

SpanChunks = tuple[Span, Iterator[Chunk]]


@dataclass(frozen=True, slots=True)
class ArchivedLog:
    """The partition that `manifest` describes, in `store`. `first_bytes` is about what the first request of a read is for."""

    store: ObjectReader
    manifest: Manifest
    first_bytes: int = FIRST_CHUNK_BYTES
    reading: ReadContext = field(default_factory=ReadContext, compare=False)
    entries: Entries = field(init=False, repr=False, compare=False)
    _source: SegmentBytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", Entries.of(self.store, self.manifest))
        object.__setattr__(self, "_source", self.reading.source(self.store))

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
        spans = self._spans(start_offset, end_offset, fail_on_data_loss)
        for _, chunks in self._read(spans, self.reading.ahead, self.first_bytes):
            yield from chunks

    def first_chunks(self, start_offset: int, end_offset: int, wanted_bytes: int) -> Iterator[Chunk]:
        """As `chunks`, for who will stop after about `wanted_bytes`: the first request is for as many, and none goes ahead."""
        spans = self._spans(start_offset, end_offset, fail_on_data_loss=True)
        first_bytes = max(self.first_bytes, wanted_bytes + _BEFORE_BYTES)
        for _, chunks in self._read(spans, replace(self.reading.ahead, pool=None), first_bytes):
            yield from chunks

    def span_chunks(self, span: Span) -> Iterator[Chunk]:
        """The batches of a span of one segment."""
        for _, chunks in self._read([span], self.reading.ahead, self.first_bytes):
            yield from chunks

    def records(
        self, start_offset: int, end_offset: int, *, committed: bool = False, want: Projection = EVERYTHING
    ) -> Iterator[pa.RecordBatch]:
        """The records of `[start_offset, end_offset)` for an application, as Arrow (see `columns.decode`).

        With `committed` without those of aborted transactions. Raises as `chunks`.
        """
        spans = self._spans(start_offset, end_offset, fail_on_data_loss=True)
        for span, chunks in self._read(spans, self.reading.ahead, self.first_bytes):
            with self._evict_if_corrupt(span.entry):
                aborted = self._aborted_in(span.entry) if committed else ()
                yield from record_batches(chunks, span.start, span.end, aborted, want)

    def aborted(self, start_offset: int, end_offset: int) -> tuple[AbortedTxn, ...]:
        """The aborted transactions with records in `[start_offset, end_offset)`."""
        entries = self.entries.overlapping(start_offset, end_offset)
        spans = fetch_plan(self.manifest, entries, start_offset, end_offset, fail_on_data_loss=False)
        found = {t for span in spans for t in self._aborted_in(span.entry)}
        return tuple(sorted(t for t in found if t.first_offset < end_offset and t.last_offset >= start_offset))

    def offset_for_time(
        self, timestamp_ms: int, start_offset: int, end_offset: int, *, fail_on_data_loss: bool = True
    ) -> TimestampOffset | None:
        """The first record of `[start_offset, end_offset)` that is as late as `timestamp_ms`.

        Raises MissingRange where offsets before it are missing, since the record could be one of those.
        """
        check_start_offset(self.manifest, start_offset)
        end_offset = min(end_offset, self.end_offset)
        for span in self._spans_at_or_after(timestamp_ms, start_offset, end_offset):
            if fail_on_data_loss:
                self._refuse_missing(start_offset, span.start)
            found = self._in_segment(span, timestamp_ms)
            if found is not None:
                return found
        if fail_on_data_loss:
            self._refuse_missing(start_offset, end_offset)
        return None

    def latest_timestamp(self) -> TimestampOffset | None:
        """The record with the greatest timestamp, of the first segment that has it."""
        latest = self.entries.latest()
        if latest is None:
            return None
        whole = Span(latest, latest.base_offset, latest.end_offset)
        if latest.max_timestamp_ms > NO_TIMESTAMP:
            return self._in_segment(whole, latest.max_timestamp_ms)
        return latest_timestamp(self.span_chunks(whole))

    def at(self, offset: int) -> TimestampOffset:
        """`offset` with its leader epoch, as ListOffsets answers questions that are not about time."""
        epoch = epoch_of(self.manifest.leader_epochs, offset)
        return TimestampOffset(offset, NO_TIMESTAMP, NO_EPOCH if epoch is None else epoch)

    def _spans(self, start_offset: int, end_offset: int, fail_on_data_loss: bool) -> Iterator[Span]:
        entries = self.entries.overlapping(start_offset, end_offset)
        for piece in spans_and_gaps(self.manifest, entries, start_offset, end_offset):
            if isinstance(piece, Span):
                yield piece
            elif fail_on_data_loss:
                raise piece

    def _refuse_missing(self, start: int, end: int) -> None:
        missing = first_missing(self.manifest, start, end)
        if missing is not None:
            raise missing

    def _spans_at_or_after(self, timestamp_ms: int, start: int, end: int) -> Iterator[Span]:
        """The spans of `[start, end)` whose segments have a record at or after the timestamp, as `spans_and_gaps` gives them."""
        for entry in self.entries.as_late_as(timestamp_ms, start, end):
            first, last = max(start, entry.base_offset), min(end, entry.end_offset)
            for piece in spans_and_gaps(self.manifest, self.entries.overlapping(first, last), first, last):
                if isinstance(piece, Span) and piece.entry.segment_id == entry.segment_id:
                    yield piece

    def _read(self, spans: Iterable[Span], ahead: ReadAhead, first_bytes: int) -> Iterator[SpanChunks]:
        """Each span with its batches; these have to be taken before the next span is asked for."""
        path = self.manifest.path

        def read(span: Span, start: int, end: int) -> Body:
            return self._source.log(path, span.entry, start, end)

        ranges = (ReadRange(span, *self._bytes_of(span), self._source.align(span.entry)) for span in spans)
        for one, windows in groupby(ahead.read(ranges, read, first_bytes), key=lambda window: window[0]):
            buffers = (data for _, data in windows)
            chunks = join_chunks(buffers, path.segment(one.target.entry.log_name), one.start, one.end)
            yield one.target, _inside(chunks, one.target)

    def _in_segment(self, span: Span, timestamp_ms: int) -> TimestampOffset | None:
        """The first record of the span that is as late, by the indexes: mostly with one request behind theirs."""
        indexes = self._indexes(span.entry)
        times, offsets, entry = indexes.times(), indexes.offsets(), span.entry
        reached = times.lookup(timestamp_ms, entry.base_offset)
        start = min(max(span.start, reached), span.end)
        later = Span(entry, start, span.end)
        first, _ = self._bytes_of(later)
        late = int(np.searchsorted(times.timestamps, timestamp_ms, side="left"))
        by = int(times.offsets[late]) + 1 if late < len(times.offsets) else span.end
        enough = max(offsets.end_position(max(by, start + 1), entry.log_size) - first, _BEFORE_BYTES)
        for _, chunks in self._read([later], replace(self.reading.ahead, pool=None), enough):
            return first_at_or_after(chunks, timestamp_ms, span.start, span.end)
        return None

    def _bytes_of(self, span: Span) -> tuple[int, int]:
        """The bytes of the segment that hold the span, as near as the offset index says."""
        entry = span.entry
        if span.start <= entry.base_offset and span.end >= entry.end_offset:
            return 0, entry.log_size
        index = self._indexes(entry).offsets()
        return index.lookup(span.start), index.end_position(span.end, entry.log_size)

    def _aborted_in(self, entry: SegmentEntry) -> tuple[AbortedTxn, ...]:
        return () if entry.txn_index_empty else self._indexes(entry).aborted()

    def _indexes(self, entry: SegmentEntry) -> SegmentIndexes:
        return self.reading.indexes.get(self._source, self.manifest.path, entry)

    @contextmanager
    def _evict_if_corrupt(self, entry: SegmentEntry) -> Iterator[None]:
        """What came damaged over the wire and was kept is fetched again by who asks next."""
        try:
            yield
        except Corrupt:
            if self.reading.chunks is not None:
                self.reading.chunks.forget(entry, 0, entry.log_size)
            raise


def _inside(chunks: Iterable[Chunk], span: Span) -> Iterator[Chunk]:
    for chunk in chunks:
        inside = (chunk.batches.last_offset >= span.start) & (chunk.batches.base_offset < span.end)
        if inside.any():
            yield chunk.where(inside)
