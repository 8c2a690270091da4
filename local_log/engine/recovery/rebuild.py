"""Rebuilds the producers' state at an offset from the newest snapshot and the log after it (UnifiedLog.rebuildProducerState)."""

from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.producers.replay import Replay
from local_log.engine.scan import WINDOW_BYTES
from local_log.engine.segments import Segments
from local_log.errors import Invalid, placed


def rebuild_producers(
    producers: ProducerStateManager, segments: Segments, log_start_offset: int, last_offset: int, *, clean: bool
) -> None:
    """Sets `producers` to their state at `last_offset`; writes snapshots there and at the base offsets of the last segments.

    After a clean shutdown a log without snapshots has no producers: it was written by a version from before idempotence.
    Raises Corrupt for a control batch without a marker.
    """
    boundaries = segments.base_offsets[-2:]
    if not producers.snapshot_offsets and clean:
        for offset in (*boundaries, last_offset):
            producers.map_end_offset = offset
            producers.take_snapshot()
        return
    was_empty = producers.is_empty and producers.map_end_offset >= last_offset
    producers.truncate_and_reload(log_start_offset, last_offset)
    if last_offset > producers.map_end_offset and not was_empty:
        of_last = segments.floor(last_offset)
        for segment in segments.between(producers.map_end_offset, last_offset):
            start = max(segment.base_offset, producers.map_end_offset, log_start_offset)
            producers.map_end_offset = start
            if segment.base_offset in boundaries or segment.base_offset == last_offset:
                producers.take_snapshot()
            end = segment.size
            if segment is of_last and (found := segment.translate(last_offset)) is not None:
                end = found.position
            found = segment.translate(start)
            if found is None:
                continue
            if end < found.position:
                raise Invalid(f"{segment.log_file}: offset {last_offset} lies at byte {end}, before {start} at {found.position}")
            replay = Replay(producers)
            with placed(segment.log_file):
                for scanned in segment.scan(found.position, end, WINDOW_BYTES):
                    replay.add(scanned)
            replay.finish()
    producers.map_end_offset = last_offset
    producers.take_snapshot()
