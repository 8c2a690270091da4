"""Reads one archived partition like a log: the questions that a local log answers, answered by ranged reads of objects.

The answers come from the manifest version that the log was opened with, whatever is committed later.
"""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from local_log.batch_file import BatchFile
from local_log.errors import Corrupt
from local_log.formats.checkpoints import epoch_of
from local_log.formats.chunks import FIRST_CHUNK_BYTES, Chunk, join_chunks
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.list_offsets import TimestampOffset, first_at_or_after, latest_timestamp
from local_log.formats.record import NO_EPOCH, NO_TIMESTAMP
from local_log.formats.record_batch.projection import EVERYTHING, Projection
from local_log.formats.visible_records import record_batches
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import SegmentEntry
from remote.read.context import ReadContext
from remote.read.index_cache import SegmentIndexes
from remote.read.plan import Span, check_start_offset, fetch_plan, first_missing, spans_and_gaps
from remote.read.read_ahead import ReadAhead, ReadRange
from remote.read.segment_files import SegmentFile, SegmentFiles
from remote.segment_bytes import SegmentBytes
from remote.store.api import Body, ObjectReader

if TYPE_CHECKING:
    import pyarrow as pa

    from remote.read.window_cache import CachedSegment

_BEFORE_BYTES = 16 << 10
"""Bytes that may precede the wanted batch after an index look-up; the index has an entry every 4 KB or so."""

SpanChunks = tuple[Span, Iterator[Chunk]]


@dataclass(frozen=True, slots=True)
class ArchivedLog:
    """The partition that `manifest` describes, in `store`. The first request of a read asks for about `first_bytes`."""

    store: ObjectReader
    manifest: Manifest
    first_bytes: int = FIRST_CHUNK_BYTES
    reading: ReadContext = field(default_factory=ReadContext, compare=False)
    entries: Entries = field(init=False, repr=False, compare=False)
    end_offset: int = field(init=False, repr=False, compare=False)
    """The offset after the last archived one. It is at most the last stable offset: transactions below it are completed."""
    _source: SegmentBytes = field(init=False, repr=False, compare=False)
    _files: SegmentFiles = field(default_factory=SegmentFiles, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "end_offset", self.manifest.end_offset)
        object.__setattr__(self, "entries", Entries.of(self.store, self.manifest))
        object.__setattr__(self, "_source", self.reading.source(self.store))

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read."""
        return self.manifest.log_start_offset

    def chunks(self, start_offset: int, end_offset: int, *, fail_on_data_loss: bool = True) -> Iterator[Chunk]:
        """The batches of `[start_offset, end_offset)`, each once.

        Raises OffsetOutOfRange, Corrupt, Unavailable, and MissingRange on reaching missing offsets.
        """
        spans = self._spans(start_offset, end_offset, fail_on_data_loss)
        for _, chunks in self._read(spans, self.reading.ahead, self.first_bytes):
            yield from chunks

    def first_chunks(self, start_offset: int, end_offset: int, wanted_bytes: int) -> Iterator[Chunk]:
        """Like `chunks`, for a caller that stops after about `wanted_bytes`: one first request of that size, no read-ahead."""
        spans = self._spans(start_offset, end_offset, fail_on_data_loss=True)
        first_bytes = max(self.first_bytes, wanted_bytes + _BEFORE_BYTES)
        for _, chunks in self._read(spans, replace(self.reading.ahead, pool=None), first_bytes):
            yield from chunks

    def batch_file(self, offset: int, end_offset: int) -> BatchFile | None:
        """The file in which the batch with `offset` is; None if it is in no file as it is, or at or above `end_offset`.

        Raises OffsetOutOfRange, Corrupt, Unavailable, and MissingRange for a missing offset.
        """
        found = self._files.find(offset)
        if found is None:
            span = next(self._spans(offset, end_offset, fail_on_data_loss=True), None)
            if span is None:
                return None
            found = self._file_of(span)
            self._files.keep(found)
        return found.batch_file(end_offset, self.position_of) if offset < end_offset else None

    def is_at_hand(self, offset: int) -> bool:
        """Whether `batch_file` knows the segment of an offset without reading a page of the manifest."""
        return not self.manifest.pages or self._files.find(offset) is not None

    def spans(self, start_offset: int, end_offset: int, *, waits: bool = True) -> Iterator[Span]:
        """The spans of segments that hold a range, in order.

        Raises OffsetOutOfRange, Corrupt, Unavailable, MissingRange on reaching missing offsets, and without `waits` PageNotHeld.
        """
        entries = self.entries if waits else self.entries.of_held_pages()
        yield from self._spans(start_offset, end_offset, fail_on_data_loss=True, entries=entries)

    def position_of(self, entry: SegmentEntry, offset: int) -> int:
        """A position in a segment where a batch begins, at or before the batch with an offset."""
        return 0 if offset <= entry.base_offset else self._indexes(entry).offsets().lookup(offset)

    def cached_segment(self, key: Hashable, entry: SegmentEntry, chunk_bytes: int) -> "CachedSegment":
        """A segment's log for a cache of windows, under a key that names it, in chunks of `chunk_bytes` or a little more."""
        from remote.read.window_cache import CachedSegment  # for endpoints: no reader of a process of its own caches windows

        align, path, chunks = max(self._source.align(entry), self.reading.ahead.align), self.manifest.path, self.reading.chunks
        return CachedSegment(
            key,
            entry.log_size,
            partial(self._source.log, path, entry),
            -(-chunk_bytes // align) * align,
            None if chunks is None else partial(chunks.forget, entry),
        )

    def span_chunks(self, span: Span) -> Iterator[Chunk]:
        """The batches of a span of one segment."""
        for _, chunks in self._read([span], self.reading.ahead, self.first_bytes):
            yield from chunks

    def records(
        self, start_offset: int, end_offset: int, *, committed: bool = False, want: Projection = EVERYTHING
    ) -> "Iterator[pa.RecordBatch]":
        """The records of `[start_offset, end_offset)` for an application, as Arrow (see `columns.decode`).

        `committed` leaves out records of aborted transactions. Raises like `chunks`.
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
        """The first record of `[start_offset, end_offset)` with a timestamp at or after `timestamp_ms`, None if there is none.

        Raises MissingRange if offsets before it are missing, because the record could be one of those.
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
        """The record with the largest timestamp, from the first segment that has it; None for an empty archive."""
        latest = self.entries.latest()
        if latest is None:
            return None
        segment = Span(latest, latest.base_offset, latest.end_offset)
        if latest.max_timestamp_ms > NO_TIMESTAMP:
            return self._in_segment(segment, latest.max_timestamp_ms)
        return latest_timestamp(self.span_chunks(segment))

    def at(self, offset: int) -> TimestampOffset:
        """`offset` with its leader epoch and no timestamp, as ListOffsets answers for special timestamps."""
        epoch = epoch_of(self.manifest.leader_epochs, offset)
        return TimestampOffset(offset, NO_TIMESTAMP, NO_EPOCH if epoch is None else epoch)

    def _spans(
        self, start_offset: int, end_offset: int, fail_on_data_loss: bool, entries: Entries | None = None
    ) -> Iterator[Span]:
        overlapping = (entries or self.entries).overlapping(start_offset, end_offset)
        for piece in spans_and_gaps(self.manifest, overlapping, start_offset, end_offset):
            if isinstance(piece, Span):
                yield piece
            elif fail_on_data_loss:
                raise piece

    def _file_of(self, span: Span) -> SegmentFile:
        """The file of a span's segment, for all offsets that a plan takes from it."""
        entry, path = span.entry, self.manifest.path
        from_its_start = self._spans(max(entry.base_offset, self.log_start_offset), span.start + 1, fail_on_data_loss=False)
        start = next(s.start for s in from_its_start if s.entry.segment_id == entry.segment_id)
        opener = self._source.log_file(path, entry)
        return SegmentFile(start, entry.end_offset, path.segment(entry.log_name), opener, entry)

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
        """Each span with its batches. The caller must consume them before it asks for the next span."""
        path = self.manifest.path

        def read(span: Span, start: int, end: int) -> Body:
            return self._source.log(path, span.entry, start, end)

        ranges = (ReadRange(span, *self._bytes_of(span), self._source.align(span.entry)) for span in spans)
        for one, windows in groupby(ahead.read(ranges, read, first_bytes), key=lambda window: window[0]):
            buffers = (data for _, data in windows)
            chunks = join_chunks(buffers, path.segment(one.target.entry.log_name), one.start, one.end)
            yield one.target, _inside(chunks, one.target)

    def _in_segment(self, span: Span, timestamp_ms: int) -> TimestampOffset | None:
        """The first record of the span at or after the timestamp, found with the indexes and usually one more request."""
        indexes = self._indexes(span.entry)
        times, offsets, entry = indexes.times(), indexes.offsets(), span.entry
        reached = times.lookup(timestamp_ms, entry.base_offset)
        start = min(max(span.start, reached), span.end)
        later = Span(entry, start, span.end)
        first, _ = self._bytes_of(later)
        late = int(times.timestamps.searchsorted(timestamp_ms, side="left"))
        by = int(times.offsets[late]) + 1 if late < len(times.offsets) else span.end
        enough = max(offsets.end_position(max(by, start + 1), entry.log_size) - first, _BEFORE_BYTES)
        for _, chunks in self._read([later], replace(self.reading.ahead, pool=None), enough):
            return first_at_or_after(chunks, timestamp_ms, span.start, span.end)
        return None

    def _bytes_of(self, span: Span) -> tuple[int, int]:
        """The byte range of the segment that contains the span, as narrow as the offset index allows."""
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
        """Evicts the segment's cached chunks on Corrupt, so that the next read fetches them again."""
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
