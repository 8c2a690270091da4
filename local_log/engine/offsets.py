"""Offsets of an open log as values: with their positions, and as bounds of reads."""

from enum import Enum
from typing import NamedTuple

UNKNOWN = -1


class OffsetMetadata(NamedTuple):
    """An offset with its segment's base offset and its position in the segment, both -1 if unknown."""

    offset: int
    segment_base: int = UNKNOWN
    position: int = UNKNOWN

    @property
    def is_offset_only(self) -> bool:
        """Whether segment and position are unknown."""
        return self.segment_base == UNKNOWN


class Isolation(Enum):
    """The offset up to which a read returns records (Kafka's FetchIsolation)."""

    LOG_END = "log_end"
    """All records: for followers."""
    HIGH_WATERMARK = "high_watermark"
    """Replicated records: read_uncommitted."""
    TXN_COMMITTED = "txn_committed"
    """Replicated records below the last stable offset: read_committed."""


class LogOffsets(NamedTuple):
    """The offsets of a log at one moment, which a reader takes together.

    While `moves` stays the same, no byte below `end` is changed, moved or deleted.
    """

    log_start: int
    local_log_start: int
    high_watermark: OffsetMetadata
    first_unstable: OffsetMetadata | None
    """Where the earliest transaction begins that is open or whose marker is not replicated."""
    end: OffsetMetadata
    moves: int = 0
    """Increases with each step of a truncation or deletion."""
    is_moving: bool = False
    """Whether a truncation or deletion is not finished: only what it leaves can be read."""

    @property
    def last_stable(self) -> int:
        """The offset below which every transaction is ended and replicated."""
        first = self.first_unstable
        return self.high_watermark.offset if first is None else min(first.offset, self.high_watermark.offset)

    def up_to(self, isolation: Isolation) -> OffsetMetadata:
        """The end of what a read returns."""
        if isolation is Isolation.LOG_END:
            return self.end
        first = self.first_unstable
        if isolation is Isolation.HIGH_WATERMARK or first is None or first.offset >= self.high_watermark.offset:
            return self.high_watermark
        return first
