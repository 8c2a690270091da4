"""Where the segments of all tasks come to stand, one after the other: pure, a plan for each partition.

A segment that stands where it should already stays, which is so for all where each partition is written by one task. The others
are moved: their batches get other offsets, and as many as fit become one segment.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from remote.direct_write.topic import WrittenPartition
from remote.keys import PartitionPath
from remote.manifest.segment_entry import SegmentEntry
from spark_jobs.sink.task import Part


@dataclass(frozen=True, slots=True)
class Move:
    """Segments whose records are to follow each other from `base_offset` on, as one segment."""

    partition: WrittenPartition
    base_offset: int
    entries: tuple[SegmentEntry, ...]

    @property
    def end_offset(self) -> int:
        """Where the segment that they become ends."""
        return self.base_offset + sum(map(_offsets, self.entries))


Step = SegmentEntry | Move


def placement(
    parts: Iterable[Part], partitions: Mapping[PartitionPath, WrittenPartition], segment_bytes: int
) -> dict[PartitionPath, tuple[Step, ...]]:
    """What becomes of the parts, which come in the order of their tasks, behind each partition's end."""
    staged: dict[PartitionPath, list[SegmentEntry]] = defaultdict(list)
    for part in parts:
        staged[part.path] += part.entries
    return {path: tuple(_steps(partitions[path], entries, segment_bytes)) for path, entries in staged.items()}


def _steps(partition: WrittenPartition, entries: list[SegmentEntry], segment_bytes: int) -> Iterator[Step]:
    at = start = partition.end_offset
    moving: list[SegmentEntry] = []
    for entry in entries:
        stays = entry.base_offset == at
        if moving and (stays or sum(e.log_size for e in moving) + entry.log_size > segment_bytes):
            yield Move(partition, start, tuple(moving))
            moving = []
        if stays:
            yield entry
        else:
            start = start if moving else at
            moving.append(entry)
        at += _offsets(entry)
    if moving:
        yield Move(partition, start, tuple(moving))


def _offsets(entry: SegmentEntry) -> int:
    return entry.end_offset - entry.base_offset
