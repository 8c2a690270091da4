"""Which archived segments the log cleaner has made obsolete: pure, but for pages of the manifest that have to be read.

    archive   |---100---|---100---|---100---|---100---|      bytes of the archived segments
    log       |--------120--------|---100---|    0    |      bytes of the local ones, by their sizes alone
              `--- cleaned -------´         `-cleaned-´

A cleaner keeps offsets, takes records away, and makes one segment of several. So the local log was cleaned where it has fewer
bytes than the archive, between two offsets at which a segment begins on both sides. If it has more, a replica whose cleaner was
faster has been archived. Nothing is read for this; of a page of the manifest its count and bytes are enough if they are equal.

An entry that begins below the first local segment stays: what only the archive has is never superseded.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from local_log.disk import parent_of
from local_log.errors import Corrupt
from local_log.formats.filenames import CLEANER_OFFSET_CHECKPOINT
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from local_log.ranges import Range
from remote.manifest.entries import Pages
from remote.manifest.model import Item, Manifest, PageRef, lacks_nothing
from remote.manifest.paging import ReadPage
from remote.manifest.segment_entry import SegmentEntry
from remote.store.api import ObjectReader
from tiering.offload.local_segment import LocalSegment


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Local segments, one after the other, that were cleaned since `entries` were archived: all of the offsets `[start, end)`."""

    segments: tuple[LocalSegment, ...]
    entries: tuple[SegmentEntry, ...]

    @property
    def start(self) -> int:
        """The first segment's base offset."""
        return self.segments[0].base_offset

    @property
    def end(self) -> int:
        """Where the last one ends."""
        return ends(self.segments[-1])

    @property
    def bytes(self) -> int:
        """The bytes of the local segments."""
        return sum(s.size for s in self.segments)

    @property
    def archived_bytes(self) -> int:
        """The bytes of the archived ones."""
        return sum(e.log_size for e in self.entries)

    @property
    def copies(self) -> tuple[LocalSegment, ...]:
        """The segments that have batches, each with the empty ones after it."""
        found: list[LocalSegment] = []
        for segment in self.segments:
            if not segment.is_empty:
                found.append(segment)
            elif found:
                found[-1] = replace(found[-1], end_offset=segment.end_offset)
        return tuple(found)


def cleaned_up_to(log: LogReader) -> int:
    """The offset that the log's cleaner has come to, 0 where it has not run: no segment from there on was ever cleaned.

    A checkpoint that cannot be read counts as none: nothing is superseded then, and copies go on.
    """
    try:
        return LogDir(log.disk, parent_of(log.folder)).checkpoint(CLEANER_OFFSET_CHECKPOINT).get(log.partition, 0)
    except Corrupt:
        return 0


def cleaned_segments(
    log: LogReader, segments: Iterable[LocalSegment], last_stable_offset: int, manifest: Manifest, store: ObjectReader
) -> tuple[Cleaned, ...]:
    """The segments of a log that were cleaned since they were archived, below the last stable offset.

    None of a topic without an id, which another topic may have had. Raises what reading a page raises.
    """
    closed = [s for s in segments if s.end_offset is not None and s.end_offset <= last_stable_offset]
    if not closed or manifest.topic_id == ZERO_TOPIC_ID:
        return ()
    return find_cleaned(closed, manifest, Pages(store, manifest.path).read, cleaned_up_to(log))


def find_cleaned(closed: Sequence[LocalSegment], manifest: Manifest, read: ReadPage, up_to: int) -> tuple[Cleaned, ...]:
    """The segments that were cleaned since they were archived, in order. `closed` are those that may be archived.

    The cleaner has come up to the offset `up_to`. Raises what `read` raises.
    """
    local = [s for s in closed if s.base_offset < up_to and ends(s) > manifest.log_start_offset]
    if not local:
        return ()
    start, end = local[0].base_offset, ends(local[-1])
    quiet, entries = _entries(manifest, read, closed, (start, end))
    known = [e for e in entries if start <= e.base_offset < end]
    known = [e for e in known if e.end_offset > manifest.log_start_offset and not _lies_in(quiet, e.base_offset)]
    groups = _groups([s for s in local if not _lies_in(quiet, s.base_offset)], known)
    return tuple(group for group in groups if group.entries and _is_cleaned(group, manifest))


def ends(segment: LocalSegment) -> int:
    """The end of an inactive segment."""
    if segment.end_offset is None:
        raise AssertionError("the active segment is never archived")
    return segment.end_offset


def _entries(
    manifest: Manifest, read: ReadPage, closed: Sequence[LocalSegment], within: Range
) -> tuple[list[Range], list[SegmentEntry]]:
    """The ranges of the pages that are as the log is, which are not read, and the entries of the others that overlap `within`."""
    quiet: list[Range] = []
    entries = list(manifest.entries)

    def look(items: Iterable[Item]) -> None:
        for item in items:
            if not isinstance(item, PageRef):
                entries.append(item)
            elif item.base_offset < within[1] and item.end_offset > within[0]:
                if _is_as(item, manifest.entries, closed):
                    quiet.append((item.base_offset, item.last_base_offset + 1))
                else:
                    look(read(item))

    look(manifest.pages)
    return quiet, entries


def _is_as(ref: PageRef, inline: Iterable[SegmentEntry], local: Iterable[LocalSegment]) -> bool:
    """Whether there are as many segments with as many bytes as a page has, and the entries that came into it late."""
    first, last = ref.base_offset, ref.last_base_offset
    sizes = [s.size for s in local if first <= s.base_offset <= last and not s.is_empty]
    late = [e.log_size for e in inline if first <= e.base_offset <= last]
    return len(sizes) == ref.count + len(late) and sum(sizes) == ref.log_bytes + sum(late)


def _lies_in(ranges: Iterable[Range], offset: int) -> bool:
    return any(start <= offset < end for start, end in ranges)


def _groups(local: Iterable[LocalSegment], entries: Iterable[SegmentEntry]) -> Iterator[Cleaned]:
    """The segments of both sides, cut wherever no segment of either side reaches over."""
    both = [(s.base_offset, ends(s), s) for s in local] + [(e.base_offset, e.end_offset, e) for e in entries]
    group: list[LocalSegment | SegmentEntry] = []
    reach = 0
    for base, end, one in sorted(both, key=lambda found: found[:2]):
        if group and base >= reach:
            yield from _as_group(group)
            group = []
        group.append(one)
        reach = max(reach, end)
    yield from _as_group(group)


def _as_group(items: Sequence[LocalSegment | SegmentEntry]) -> Iterator[Cleaned]:
    """One group, unless it has no local segment or entries that begin before it or reach past it."""
    segments = tuple(i for i in items if isinstance(i, LocalSegment))
    entries = tuple(i for i in items if isinstance(i, SegmentEntry))
    if segments and all(segments[0].base_offset <= e.base_offset and e.end_offset <= ends(segments[-1]) for e in entries):
        yield Cleaned(segments, entries)


def _is_cleaned(group: Cleaned, manifest: Manifest) -> bool:
    """Whether the log has less there than the archive, and the archive stays as long as it is without it.

    A segment with offsets that the archive lacks is copied as any other first. What was emptied beside offsets that are missing
    waits: who reads could not tell the two apart.
    """
    if group.bytes >= group.archived_bytes or not lacks_nothing(manifest, group.start, group.end):
        return False
    first = group.copies[0].base_offset if group.copies else group.end
    if first == group.start:
        return True
    return group.end < manifest.end_offset and not any(g.start <= first and g.end >= group.start for g in manifest.holes)
