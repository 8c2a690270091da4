"""A segment of a local log as the plan of an offload sees it."""

from dataclasses import dataclass

from local_log.errors import NoSuchFile
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment
from tiering.offload.emptied import emptied_by_cleaner


@dataclass(frozen=True, slots=True)
class LocalSegment:
    """A segment; `end_offset` is None for the active one. In an empty one compaction has left no batch. `size` is in bytes."""

    base_offset: int
    end_offset: int | None
    is_empty: bool = False
    size: int = 0


def local_segments(log: LogReader) -> tuple[LocalSegment, ...]:
    """The segments of a log, by the sizes of their files; of the active one nothing is asked. Raises Unreadable."""
    sizes = {s.base_offset: _size(s) for s in log.segments if s.next_base_offset is not None}
    emptied = emptied_by_cleaner(log, (s for s in log.segments if sizes.get(s.base_offset) == 0))
    return tuple(
        LocalSegment(s.base_offset, s.next_base_offset, s.base_offset in emptied, sizes.get(s.base_offset) or 0)
        for s in log.segments
    )


def _size(segment: Segment) -> int | None:
    try:
        return segment.size()
    except NoSuchFile:
        return None  # the copy will raise
