"""Which segments are cleaned together into one, so that segments do not become ever smaller (Cleaner.groupSegmentsBySize)."""

from local_log.engine.config import LogConfig
from local_log.engine.index_file import is_relative
from local_log.engine.segment import Segment


def group_segments(segments: list[Segment], config: LogConfig, first_uncleanable_offset: int) -> list[list[Segment]]:
    """The segments in consecutive groups: the sizes of logs and of indexes and the range of offsets fit into one segment each."""
    groups: list[list[Segment]] = []
    sizes = (0, 0, 0)
    maxima = (config.segment_bytes, config.segment_index_bytes, config.segment_index_bytes)
    for at, segment in enumerate(segments):
        of_segment = _sizes(segment)
        total = (sizes[0] + of_segment[0], sizes[1] + of_segment[1], sizes[2] + of_segment[2])
        # The next segment's base offset bounds the last offset of this one, which costs a scan to find.
        end = segments[at + 1].base_offset if at + 1 < len(segments) else first_uncleanable_offset
        fits = groups and all(size <= size_max for size, size_max in zip(total, maxima, strict=True))
        if fits and (segment.size == 0 or is_relative(end - 1, groups[-1][0].base_offset)):
            groups[-1].append(segment)
            sizes = total
        else:
            groups.append([segment])
            sizes = of_segment
    return groups


def _sizes(segment: Segment) -> tuple[int, int, int]:
    offsets, times = segment.offset_index, segment.time_index
    return segment.size, len(offsets) * offsets.ENTRY.size, len(times) * times.ENTRY.size
