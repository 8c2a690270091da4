"""The stream reader: reads segments in micro-batches as they are committed, and can resume after any crash.

Spark stores the offsets in its checkpoint. It calls `initialOffset` until the first micro-batch is committed (`offsets` says why
that is no new start), `latestOffset` for each micro-batch, and `partitions` for the offsets of a micro-batch, again after a
crash. The driver has one reader for as long as the query runs, which caches manifests; each task makes its own.

A stream puts no pins. A micro-batch is read soon after it was planned, and the objects of segments that retention removes are
kept for the delete delay, by default a day. Segments that a stream has not reached are not protected: a query that is never
restarted would keep them for ever, and in Kafka too retention does not wait for readers. If retention deletes unread offsets, the
query ends with an error that names the partition and the offsets, or skips them if failOnDataLoss is false.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from remote.clock import Clock, SystemClock
from remote.read.plan import check_start_offset
from remote.signed_store import trusted
from remote.store.api import ObjectStore
from remote.store.open import open_store
from spark_jobs.plain_errors import told_plainly
from spark_jobs.source.batch_reader import BatchReader, input_partitions
from spark_jobs.source.partitions import splits
from spark_jobs.source.ranges import resolve
from spark_jobs.source.stream.cached_manifests import cached_manifests
from spark_jobs.source.stream.offsets import (
    StreamOffsets,
    decode,
    decode_histories,
    decode_start,
    encode,
    encode_end,
    encode_initial,
    rate_limited,
)
from spark_jobs.source.stream.options import StreamOptions
from spark_jobs.source.stream.plan import Manifests, begin, ends, histories, newest, ranges, stops, unseen


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads `columns` of what the options ask for. Nothing is asked of the archive before the first question."""

    def __init__(
        self, options: StreamOptions, columns: tuple[str, ...], clock: Clock | None = None, store: ObjectStore | None = None
    ) -> None:
        self.options = options
        self.columns = columns
        self.clock = clock or SystemClock()
        self._store = None if store is None else cached_manifests(store)
        self._manifests: Manifests = {}
        self._newest: StreamOffsets = {}
        self._target: Manifests | None = None
        self._last_batch_ms = 0

    @told_plainly()
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Where a new query starts; one that has committed a micro-batch is never asked.

        Raises what `resolve` raises, OffsetOutOfRange among it.
        """
        found = resolve(self._open(), self.options.read)
        for r in found:
            check_start_offset(r.manifest, r.start)
        there = {r.manifest.path: r.manifest for r in found}
        starts, limits = {r.manifest.path: r.start for r in found}, stops(there, self.options.stop_at)
        return encode_initial({path: min(starts[path], limit) for path, limit in limits.items()}, histories(there))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802  # Spark's name
        """What the options limit a micro-batch to. Spark cannot pass two limits, so the lesser of them stands for both."""
        if self.options.min_offsets is not None:
            return ReadMinRows(self.options.min_offsets)
        if self.options.max_offsets is not None:
            return ReadMaxRows(self.options.max_offsets)
        return ReadAllAvailable()

    @told_plainly()
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802  # Spark's name
        """Where the next micro-batch ends: `start` where there is nothing new, or too little yet.

        Raises Unavailable, Corrupt, Newer.
        """
        begun = decode(start)
        self._manifests = self._target if self._target is not None else self._newest_manifests(self.options.read.topic_ids)
        there = unseen(self._open(), self._manifests, begun)
        until: StreamOffsets = {**there, **ends(self._manifests, begun, self.options.stop_at)}
        self._newest = until
        going_on = begin(self._manifests, begun, until)
        if isinstance(limit, ReadMinRows) and self._is_too_little(going_on, until, limit.min_rows):
            return encode_end(start, begun, histories(self._manifests))
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else self.options.max_offsets
        if most is not None and isinstance(limit, ReadMaxRows | ReadMinRows):
            until = rate_limited(most, going_on, until)
        return encode_end(start, until, histories(self._manifests))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802  # Spark's name
        """Where the archive ended when it was last asked, for the query's progress."""
        return encode(self._newest) if self._newest else None

    @told_plainly()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802  # Spark's name
        """From now on there is only what there is now. Raises as `latestOffset`."""
        self._target = self._newest_manifests(self.options.read.topic_ids)

    @told_plainly()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One for each task that reads what lies between. Raises DataLoss, MissingRange (unless failOnDataLoss is false).

        The segments of an end that was set long ago may be replaced by now, so then the newest manifests of its topics are used.
        """
        first, last, read = decode_start(start, end), decode(end), self.options.read
        if self._target is not None:
            self._manifests = self._newest_manifests({**read.topic_ids, **{path.topic: path.topic_id for path in last}})
        elif any(path not in self._manifests or self._manifests[path].end_offset < offset for path, offset in last.items()):
            self._manifests = self._newest_manifests(read.topic_ids)
        known = decode_histories(start, end)
        found = ranges(self._manifests, first, last, known, fail_on_data_loss=read.fail_on_data_loss)
        return input_partitions(splits(self._open(), found, read), read)

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one partition, as a batch's."""
        yield from BatchReader(self.options.read, self.columns).read(partition)

    def _newest_manifests(self, topic_ids: Mapping[str, str]) -> Manifests:
        return newest(self._open(), self.options.read.strategy, topic_ids)

    def _open(self) -> ObjectStore:
        if self._store is None:
            self._store = cached_manifests(trusted(open_store(self.options.read.archive), self.options.read.keys))
        return self._store

    def _is_too_little(self, start: StreamOffsets, until: StreamOffsets, least: int) -> bool:
        """Whether to wait for more: not for longer than maxTriggerDelay, and not when there will be no more."""
        now_ms = self.clock.now_ms()
        waited = now_ms - self._last_batch_ms >= self.options.max_delay_ms
        if self._target is None and not waited and sum(until.values()) - sum(start.values()) < least:
            return True
        self._last_batch_ms = now_ms
        return False
