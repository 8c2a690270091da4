"""What a read over both tiers asks of the local log. `LogReader` and `EngineLog` answer it."""

from collections.abc import Iterator, Sequence
from typing import Protocol

from local_log.formats.checkpoints import EpochEntry
from local_log.formats.chunks import Chunk
from local_log.formats.filenames import TopicPartition
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.formats.list_offsets import TimestampOffset
from local_log.formats.producer_snapshot import ProducerEntry
from local_log.segment_reader import Segment


class ReadableLog(Protocol):
    """A partition's local log at one moment."""

    @property
    def partition(self) -> TopicPartition:
        """Topic and number."""

    @property
    def folder(self) -> str:
        """The path of its folder."""

    @property
    def log_start_offset(self) -> int:
        """The first offset that can be read from this log: its local log start offset, where the archive has older ones."""

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def high_watermark(self) -> int:
        """All offsets below it are replicated."""

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is ended and replicated."""

    @property
    def leader_epochs(self) -> Sequence[EpochEntry]:
        """The leader epochs with their start offsets."""

    @property
    def is_measured(self) -> bool:
        """Whether its end, high watermark and leader epochs are known at once."""

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Its files."""

    @property
    def unproven(self) -> str:
        """Why no record is known to be replicated; empty if the high watermark is known."""

    def chunks(self, start_offset: int, end_offset: int) -> Iterator[Chunk]:
        """The batches of `[start_offset, end_offset)`, possibly with a few before and after."""

    def aborted(self, start_offset: int, end_offset: int) -> tuple[AbortedTxn, ...]:
        """The aborted transactions with records in `[start_offset, end_offset)`."""

    def offset_for_time(self, timestamp_ms: int, start_offset: int, end_offset: int) -> TimestampOffset | None:
        """The first record of `[start_offset, end_offset)` with a timestamp at or after `timestamp_ms`."""

    def latest_timestamp(self) -> TimestampOffset | None:
        """The record with the greatest timestamp."""

    def newest_producers(self) -> tuple[ProducerEntry, ...]:
        """The producers at the end of the log."""

    def at(self, offset: int) -> TimestampOffset:
        """`offset` with its leader epoch."""
