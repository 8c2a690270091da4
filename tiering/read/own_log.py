"""A log that this process writes at one moment, as all that read both tiers know a log; see LiveLog.

Its offsets stay as they were. What has left the local log since is read from the archive, whose manifest is loaded only then: no
read of a local record waits for a store.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from local_log.batch_file import BatchFile
from local_log.engine.offsets import LogOffsets
from local_log.errors import OffsetOutOfRange
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.list_offsets import TimestampOffset
from remote.read.log import ArchivedLog
from tiering.read.engine_log import EngineLog
from tiering.read.fetched import OwnRange
from tiering.read.live_log import ISOLATIONS, LiveLog
from tiering.read.readable_log import ReadableLog
from tiering.read.tiered_log import Isolation, TieredLog


@dataclass(frozen=True, slots=True)
class OwnLog(TieredLog):
    """`live` with its offsets `now`. `archived` is None, whatever the archive has; `whole` has it."""

    live: LiveLog = field(kw_only=True)
    now: LogOffsets = field(kw_only=True)

    @classmethod
    def of(cls, live: LiveLog) -> "OwnLog":
        """The log at this moment."""
        now = live.log.offsets
        return cls(EngineLog(live.log, live.partition, now), None, now.log_start, live=live, now=now)

    def end_offset(self, isolation: Isolation = Isolation.read_uncommitted) -> int:
        """See TieredLog."""
        return self.now.last_stable if isolation is Isolation.read_committed else self.now.high_watermark.offset

    @property
    def log_end_offset(self) -> int:
        """See TieredLog."""
        return self.now.end.offset

    def whole(self) -> TieredLog:
        """See TieredLog."""
        return self.live.current()

    def is_archived_alone(self, offset: int) -> bool:
        """See TieredLog: as it is by now."""
        now = self.live.log.offsets
        return now.log_start <= offset < now.local_log_start

    def is_at_hand(self, offset: int) -> bool:
        """See TieredLog."""
        return not self.is_archived_alone(offset)

    def batch_file(self, offset: int, isolation: Isolation) -> BatchFile | None:
        """See TieredLog: of what only the archive has; `own_range` gives the rest."""
        return self.whole().batch_file(offset, isolation) if self.is_archived_alone(offset) else None

    def own_range(self, offset: int, max_bytes: int, isolation: Isolation, *, one_at_least: bool) -> OwnRange | None:
        """See TieredLog. Raises OffsetOutOfRange if retention or a truncation has taken the offset meanwhile, Unreadable."""
        if self.now.log_start <= offset < self.now.local_log_start:
            return None
        log = self.live.log
        try:
            start, found, is_cut, aborted = log.fetch(offset, max_bytes, ISOLATIONS[isolation], one_batch_at_least=one_at_least)
        except OffsetOutOfRange:
            if self.live.is_outside(offset):
                raise
            return None
        if found is None or (is_cut and not one_at_least):
            return OwnRange(None, offset, aborted)
        end = log.published.up_to(self.now, ISOLATIONS[isolation])
        is_all = (start.segment_base, start.position + found.size) >= end[1:]
        return OwnRange(found, end.offset if is_all else offset, aborted)

    def aborted(self, start: int, end: int, isolation: Isolation) -> tuple[AbortedTxn, ...]:
        """See TieredLog: as both tiers are by now. Raises OffsetOutOfRange if some of the range was deleted from both.

        What was read of the range may have left the local log since, and its transaction indexes with it.
        """

        def query(now: LogOffsets) -> tuple[AbortedTxn, ...]:
            log = OwnLog.of(self.live)
            whole = log.whole() if log.is_archived_alone(start) else log
            if start < whole.log_start_offset:
                raise OffsetOutOfRange(self.name, start, whole.log_start_offset, now.end.offset)
            return TieredLog.aborted(whole, start, end, isolation)

        return self.live.log.published.undisturbed(query)

    def committed_part(self, offset: int, end: int) -> tuple[int, tuple[AbortedTxn, ...]]:
        """See TieredLog: of what only the archive has; `own_range` gives the rest with its aborted transactions."""
        now = self.live.log.offsets
        return (min(end, now.local_log_start) if offset < now.local_log_start else end), ()

    def fetch_older(
        self,
        offset: int,
        max_bytes: int,
        to_magic: int,
        isolation: Isolation = Isolation.read_uncommitted,
        *,
        min_one_message: bool = True,
    ) -> Iterator[bytes]:
        """See TieredLog. All of it is read at once, so that no cleaner or retention changes the files meanwhile."""

        def query(now: LogOffsets) -> tuple[bytes, ...]:
            log = OwnLog.of(self.live)
            return tuple(TieredLog.fetch_older(log, offset, max_bytes, to_magic, isolation, min_one_message=min_one_message))

        return iter(self.live.log.published.undisturbed(query))

    def list_offsets(self, timestamp: int, isolation: Isolation = Isolation.read_uncommitted) -> TimestampOffset | None:
        """See TieredLog."""
        return self.live.list_offsets(timestamp, isolation)

    def end_offset_for(self, epoch: int) -> EpochEntry | None:
        """See TieredLog."""
        return self.live.end_offset_for(epoch)

    def _split(self, start: int, end: int, isolation: Isolation) -> Iterator[tuple[ReadableLog | ArchivedLog, int, int]]:
        now = self.live.log.offsets
        if start < now.log_start:
            raise OffsetOutOfRange(self.name, start, now.log_start, now.end.offset)
        if self.is_archived_alone(start):
            return self.whole()._split(start, end, isolation)
        return TieredLog._split(self, start, end, isolation)
