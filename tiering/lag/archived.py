"""The part of a manifest that the agent keeps in memory, to compute the lag while the store does not answer."""

from dataclasses import dataclass, replace

from local_log.ranges import Ranges, clipped, uncovered
from remote.manifest.losses import lost_offsets, lost_since_ms
from remote.manifest.model import Manifest, count_of, log_bytes_of
from remote.manifest.segment_entry import SegmentEntry


@dataclass(frozen=True, slots=True)
class Archived:
    """A partition's archived offsets, segments and bytes, those that are being deleted, and the gaps between.

    `lost_offsets` counts unacknowledged losses, `lost_since_ms` is when the first of them was recorded.
    """

    log_start_offset: int
    end_offset: int
    segments: int
    bytes: int
    deleting_segments: int
    deleting_bytes: int
    lost_offsets: int = 0
    lost_since_ms: int | None = None
    gaps: Ranges = ()

    @classmethod
    def of(cls, manifest: Manifest) -> "Archived":
        """The summary of a manifest version."""
        deleting = [d.item for d in manifest.deleting]
        return cls(
            manifest.log_start_offset,
            manifest.end_offset,
            manifest.segment_count,
            manifest.log_bytes,
            sum(map(count_of, deleting)),
            sum(map(log_bytes_of, deleting)),
            lost_offsets(manifest),
            lost_since_ms(manifest),
            tuple((gap.start, gap.end) for gap in manifest.gaps),
        )

    def after(self, copied: SegmentEntry) -> "Archived":
        """The summary after one more segment was copied."""
        start, end = copied.base_offset, copied.end_offset
        gaps = [left for gap in self.gaps for left in uncovered([(start, end)], *gap)]
        if start > self.end_offset:
            gaps.append((self.end_offset, start))
        return replace(
            self,
            end_offset=max(self.end_offset, end),
            segments=self.segments + 1,
            bytes=self.bytes + copied.log_size,
            gaps=tuple(gaps),
        )

    def lacks(self, start: int, end: int) -> Ranges:
        """The parts of `[start, end)` that are not archived and not below the archive's log start offset."""
        start = max(start, self.log_start_offset)
        return clipped((*self.gaps, (self.end_offset, end)), start, end)


NOTHING = Archived(0, 0, 0, 0, 0, 0)
"""The summary of a partition without an archived segment."""
