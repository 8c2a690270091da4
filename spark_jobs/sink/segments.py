"""Rows of one partition to record batches, batches to segments, segments into the archive: as a broker would have rolled them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from local_log.formats.filenames import LOG, SNAPSHOT, offset_file
from local_log.formats.primitives import INT32_MAX
from local_log.formats.producer_snapshot import write_producer_snapshot
from local_log.formats.record import Codec
from local_log.formats.record_batch.writer import RECORDS, NewBatch, write_batch
from remote.clock import Clock, Ids
from remote.direct_write.topic import WrittenPartition
from remote.manifest.segment_entry import SegmentEntry
from remote.segment.check import LogSegmentData, SegmentFile
from remote.segment.repair import checked_copy
from remote.segment.upload import copy_segment
from remote.store.api import ObjectStore
from remote.transforms.encoder import Transforms
from spark_jobs.sink.columns import row_bytes
from spark_jobs.sink.spool import Spool


@dataclass(frozen=True, slots=True)
class Upload:
    """What it takes to bring a segment into the archive."""

    store: ObjectStore
    clock: Clock
    ids: Ids
    transforms: Transforms

    def segment(self, partition: WrittenPartition, base_offset: int, end_offset: int, spool: Spool) -> SegmentEntry:
        """Uploads a spooled segment with the indexes that a broker's recovery would make of it, and no producers.

        Raises what `uploader.copy_segment` raises.
        """
        path = f"{partition.path}/{offset_file(base_offset, LOG)}"
        snapshot = SegmentFile(f"{partition.path}/{offset_file(end_offset, SNAPSHOT)}", write_producer_snapshot(()))
        data = LogSegmentData(
            path, base_offset, end_offset, spool.size, spool.read, None, None, None, snapshot, partition.lineage
        )
        return copy_segment(self.store, partition.path, checked_copy(data), self.clock, self.ids, self.transforms)


@dataclass(frozen=True, slots=True)
class Shape:
    """How rows become batches and batches segments."""

    codec: Codec
    level: int | None
    batch_bytes: int
    segment_bytes: int


class PartitionRows:
    """What one task writes to one partition, from where the partition ends on; `entries` are the segments uploaded so far."""

    def __init__(self, partition: WrittenPartition, shape: Shape, upload: Upload) -> None:
        self.partition = partition
        self.entries: list[SegmentEntry] = []
        self.held_bytes = 0
        self.spool: Spool | None = None
        self._shape = shape
        self._upload = upload
        self._held: list[pa.RecordBatch] = []
        self._base_offset = self._next_offset = partition.end_offset

    def add(self, rows: pa.RecordBatch) -> None:
        """Takes rows, in their order, and writes the batches that are full. A record larger than a batch has one of its own."""
        ends = np.cumsum(row_bytes(rows))
        start, before = 0, 0
        while start < rows.num_rows:
            free_bytes = self._shape.batch_bytes - self.held_bytes
            end = int(np.searchsorted(ends, before + free_bytes, side="right"))
            if end == start and not self._held:
                end += 1
            if end > start:
                self._held.append(rows.slice(start, end - start))
                self.held_bytes += int(ends[end - 1]) - before
                start, before = end, int(ends[end - 1])
            if start < rows.num_rows or self.held_bytes >= self._shape.batch_bytes:
                self.flush()

    def flush(self) -> None:
        """Makes a batch of what is held."""
        if not self._held:
            return
        rows = self._held[0] if len(self._held) == 1 else pa.Table.from_batches(self._held).combine_chunks().to_batches()[0]
        self._held, self.held_bytes = [], 0
        base, shape = self._next_offset, self._shape
        records = pa.RecordBatch.from_arrays([_offsets(base, rows.num_rows), *rows.columns], schema=RECORDS)
        batch = write_batch(NewBatch(base, shape.codec, shape.level, partition_leader_epoch=self.partition.leader_epoch), records)
        is_full = self.spool is not None and self.spool.size + len(batch) > shape.segment_bytes
        if is_full or base + rows.num_rows - self._base_offset > INT32_MAX:
            self.roll()
        if self.spool is None:
            self.spool = Spool()
        self.spool.append(batch)
        self._next_offset += rows.num_rows

    def roll(self) -> None:
        """Uploads what has been made of the segment; what is held is of the next one."""
        if self.spool is not None:
            try:
                entry = self._upload.segment(self.partition, self._base_offset, self._next_offset, self.spool)
            finally:
                self.close()
            self.entries.append(entry)
        self._base_offset = self._next_offset

    def close(self) -> None:
        """Gives up what is not uploaded."""
        if self.spool is not None:
            self.spool.close()
            self.spool = None


def _offsets(base_offset: int, count: int) -> Any:
    return pa.array(np.arange(base_offset, base_offset + count, dtype=np.int64))
