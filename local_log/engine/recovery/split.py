"""Replaces segments, such as one with an offset overflow by those that it is split into (LocalLog.splitOverflowedSegment)."""

from collections.abc import Callable, Iterable

from local_log.engine.folder import LogFolder
from local_log.engine.index_file import is_relative
from local_log.engine.memory_records import BatchFacts
from local_log.engine.segment import Segment
from local_log.engine.segments import Segments
from local_log.errors import Corrupt, Invalid, LogError
from local_log.formats.filenames import CLEANED, SEGMENT_SUFFIXES, SWAP, offset_file

_CHUNK_BYTES = 1 << 20


def split_overflowed(
    folder: LogFolder, segments: Segments, segment: Segment, on_removed: Callable[[], None] = lambda: None
) -> list[Segment]:
    """Splits a segment whose offsets overflow; returns the deleted segments whose base offset no new one has.

    `on_removed` as in `replace_segments`. Raises Invalid if there is no overflow.
    """
    if not segment.has_overflow():
        raise Invalid(f"{segment.log_file}: all offsets are within 2^31-1 of the base offset, and there is nothing to split")
    parts: list[Segment] = []
    try:
        position = 0
        while position < segment.size:
            first = next(segment.scan(position), None)
            if first is None:
                raise Corrupt("no batch there to split off", file=segment.log_file, position=position)
            part = new_cleaned(folder, first.base_offset(0))
            parts.append(part)
            position = _append_from(part, segment, position)
        modified = folder.disk.modified_ms(segment.log_file)
        for part in parts:
            part.become_inactive()
            part.sync()
            for file in (part.path(of) for of in SEGMENT_SUFFIXES[:3]):
                folder.disk.set_modified_ms(file, modified)
        if sum(p.size for p in parts) != segment.size:
            raise Invalid(f"{segment.log_file}: {segment.size} bytes were split into {sum(p.size for p in parts)}")
    except LogError:
        for part in parts:
            part.close()
            part.delete()
        raise
    return replace_segments(folder, segments, parts, [segment], on_removed)


def new_cleaned(folder: LogFolder, base_offset: int) -> Segment:
    """An empty segment with the file suffix .cleaned, which a start after a crash deletes."""
    for of in SEGMENT_SUFFIXES:
        folder.disk.delete(f"{folder.path}/{offset_file(base_offset, of)}{CLEANED}")
    return folder.segment(base_offset, CLEANED)


def _append_from(part: Segment, source: Segment, position: int) -> int:
    """Appends batches from `position` on as long as their offsets fit; returns the position after them."""
    start = position
    while position < source.size:
        first, last_offset = position, -1
        facts: list[BatchFacts] = []
        for scanned in source.scan(position, window=_CHUNK_BYTES):
            b = scanned.batches
            for row in range(len(b)):
                size, last = int(b.size[row]), int(b.last_offset[row])
                if not is_relative(last, part.base_offset) or (facts and position - first + size >= _CHUNK_BYTES):
                    break
                facts.append(BatchFacts(last, int(b.max_timestamp[row]), size))
                position, last_offset = position + size, last
            break
        if not facts:
            break
        part.append(last_offset, source.read(first, position - first), facts)
    if position == start:
        raise Invalid(f"{source.log_file}: no batch from byte {start} on fits into a segment of offset {part.base_offset}")
    return position


def replace_segments(
    folder: LogFolder,
    segments: Segments,
    new: Iterable[Segment],
    old: Iterable[Segment],
    on_removed: Callable[[], None] = lambda: None,
) -> list[Segment]:
    """Replaces segments atomically: after a crash the next start deletes .cleaned files and completes the swap of .swap files.

    The new segments' files have the suffix .cleaned. `on_removed` is called when no new query finds the old segments any more,
    before their files are renamed. Returns the old segments whose base offset no new one has.
    """
    new = sorted(new, key=lambda s: s.base_offset)
    old = sorted((s for s in old if s.base_offset in segments), key=lambda s: s.base_offset)
    for segment in reversed(new):
        segment.rename(SWAP)
    for segment in new:
        segments.add(segment)
    starts = {s.base_offset for s in new}
    gone = [segment for segment in old if segment.base_offset not in starts]
    segments.remove(*(segment.base_offset for segment in gone))
    on_removed()
    for segment in old:
        folder.delete_later([segment])
    for segment in new:
        segment.rename("")
    folder.disk.sync_folder(folder.path)
    return gone
