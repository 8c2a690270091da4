"""One log over both tiers: the local log where it has the offset, the archive below. The one seam for whoever reads both.

log start offset        local log start offset              archive's end        high watermark     log end offset
     |---------------- archive ------------------------------------|
                               |------------------------- local log -------------------|-------------------|
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from local_log.errors import OffsetOutOfRange
from local_log.formats.columns import EVERYTHING, Projection
from local_log.formats.records import record_batches
from local_log.formats.search import TimestampOffset
from local_log.log import LocalLog
from remote.fetch_plan import MissingRange
from remote.reader import ArchivedLog


class Isolation(StrEnum):
    """Kafka's `isolation.level`."""

    read_uncommitted = "read_uncommitted"
    read_committed = "read_committed"


@dataclass(frozen=True, slots=True)
class TieredLog:
    """A partition in one tier or both; at least one is there."""

    local: LocalLog | None
    archived: ArchivedLog | None

    @property
    def name(self) -> str:
        """topic-partition."""
        if self.local is not None:
            return str(self.local.partition)
        manifest = self._archive().manifest
        return f"{manifest.topic}-{manifest.partition}"

    @property
    def log_start_offset(self) -> int:
        """The first offset that may be read from either tier."""
        starts = [t.log_start_offset for t in (self.local, self.archived) if t is not None]
        return min(starts)

    def end_offset(self, isolation: Isolation = Isolation.read_uncommitted) -> int:
        """The offset up to which may be read: high watermark or last stable offset, without a local log the archive's end."""
        archived = self.archived.end_offset if self.archived else 0
        if self.local is None:
            return archived
        return max(archived, self._local_end(isolation))

    def read(
        self,
        start_offset: int,
        end_offset: int | None = None,
        isolation: Isolation = Isolation.read_uncommitted,
        want: Projection = EVERYTHING,
    ) -> Iterator[pa.RecordBatch]:
        """The records of `[start_offset, end_offset)` for an application, as Arrow (see `columns.decode`), across the tiers.

        Raises OffsetOutOfRange, Corrupt, Unavailable; MissingRange when it comes to offsets that neither tier has.
        """
        limit = self.end_offset(isolation)
        if not self.log_start_offset <= start_offset <= max(limit, self.end_offset()):
            raise OffsetOutOfRange(self.name, start_offset, self.log_start_offset, limit)
        end_offset = limit if end_offset is None else min(end_offset, limit)
        for tier, start, end in self._split(start_offset, end_offset, isolation):
            aborted = tier.aborted(start, end) if isolation is Isolation.read_committed else ()
            yield from record_batches(tier.chunks(start, end), start, end, aborted, want)

    def offset_for_time(self, timestamp_ms: int) -> TimestampOffset | None:
        """The first record that is as late as `timestamp_ms`, below the end offset (ListOffsets).

        Raises MissingRange where offsets before it are missing, since the record could be one of those.
        """
        for tier, start, end in self._split(self.log_start_offset, self.end_offset(), Isolation.read_uncommitted):
            found = tier.offset_for_time(timestamp_ms, start, end)
            if found is not None:
                return found
        return None

    def latest_timestamp(self) -> TimestampOffset | None:
        """The record with the greatest timestamp (ListOffsets -3)."""
        best: TimestampOffset | None = None
        for tier in (self.archived, self.local):
            found = tier.latest_timestamp() if tier else None
            if found is not None and (best is None or found.timestamp > best.timestamp):
                best = found
        return best

    def earliest(self) -> TimestampOffset:
        """The log start offset (ListOffsets -2)."""
        return self._at(self.log_start_offset)

    def latest(self) -> TimestampOffset:
        """The end offset (ListOffsets -1)."""
        return self._at(self.end_offset())

    def earliest_local(self) -> TimestampOffset | None:
        """The local log start offset (ListOffsets -4), None without a local log."""
        return self._at(self.local.log_start_offset) if self.local else None

    def latest_tiered(self) -> TimestampOffset | None:
        """The last archived offset (ListOffsets -5), None where nothing is archived."""
        has = self.archived is not None and self.archived.end_offset > self.archived.log_start_offset
        return self._at(self.archived.end_offset - 1) if has and self.archived else None

    def _split(self, start: int, end: int, isolation: Isolation) -> Iterator[tuple[LocalLog | ArchivedLog, int, int]]:
        """The range as the tiers answer it, in order: from the local log what it has and knows to be final, else the archive.

        Raises MissingRange when it comes to a hole between the two. A replica that lags behind may hold, above its own high
        watermark, what was never committed.
        """
        local_start, local_end = end, end
        if self.local is not None:
            local_start = self.local.log_start_offset
            local_end = self._local_end(isolation)
        if self.archived is not None and start < min(end, local_start):
            if start <= self.archived.end_offset:
                yield self.archived, start, min(end, local_start)
            self._refuse_hole(start, end)
        if self.local is not None and max(start, local_start) < min(end, local_end):
            yield self.local, max(start, local_start), min(end, local_end)
        if self.archived is not None and self.local is not None and max(start, local_start, local_end) < end:
            yield self.archived, max(start, local_start, local_end), end

    def _local_end(self, isolation: Isolation) -> int:
        if self.local is None:
            raise AssertionError("there is no local log")
        return self.local.last_stable_offset if isolation is Isolation.read_committed else self.local.high_watermark

    def _refuse_hole(self, start: int, end: int) -> None:
        """Raises MissingRange where the local log starts behind the archive's end and the range has offsets in between."""
        if self.archived is not None and self.local is not None:
            hole_start, hole_end = self.archived.end_offset, self.local.log_start_offset
            if hole_start < hole_end and start < hole_end and end > hole_start:
                reason = "they left the local log before they were archived"
                raise MissingRange(self.name, max(start, hole_start), min(end, hole_end), reason)

    def _at(self, offset: int) -> TimestampOffset:
        """The lineage of the local log knows every epoch but those that have left it with the log's start."""
        from_local = self.local.at(offset) if self.local else None
        if from_local is not None and (from_local.leader_epoch >= 0 or self.archived is None):
            return from_local
        return self._archive().at(offset)

    def _archive(self) -> ArchivedLog:
        if self.archived is None:
            raise AssertionError("a tiered log has at least one tier")
        return self.archived
