"""Kafka's ListOffsets version 0 over both tiers: the base offsets of segments, by when they were last written."""

from local_log.formats.filenames import LOG
from local_log.formats.list_offsets import offsets_before
from tiering.read.tiered_log import TieredLog


def segments_before(log: TieredLog, timestamp: int, now_ms: int) -> list[int]:
    """The base offsets of the segments last written at or before `timestamp`, newest first; see `offsets_before`.

    The archive's segments below the local log come first, each as old as its greatest timestamp. As for Kafka's consumers, the
    end offset stands for what is above it.
    """
    starts: list[tuple[int, int]] = []
    local = log.local.segments if log.local else ()
    if log.archived is not None:
        local_start = local[0].base_offset if local else log.archived.end_offset
        below = log.archived.entries.overlapping(log.log_start_offset, local_start)
        starts += [(entry.base_offset, entry.written_ms) for entry in below]
    starts += [(segment.base_offset, segment.disk.modified_ms(segment.path(LOG))) for segment in local]
    if (local and local[-1].size()) or (not local and starts):
        starts.append((log.local.log_end_offset if log.local else log.end_offset(), now_ms))
    start, end = log.log_start_offset, log.end_offset()
    found = offsets_before([(max(offset, start), written_ms) for offset, written_ms in starts], timestamp)
    inside = [offset for offset in found if offset <= end]
    return inside if len(inside) == len(found) else [end, *inside]
