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
