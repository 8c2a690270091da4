"""Checks that the entries of a partition cover every offset, in the log's own leader-epoch lineage."""

from collections.abc import Iterator

from remote.manifest.losses import describe_loss, lost_ranges
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import SegmentEntry
from remote.scrub.finding import Finding, Kind
from remote.segment.stitch import first_contradiction


class CoverageCheck:
    """Checks the entries of a manifest in the order of their base offsets for gaps and foreign leader epochs."""

    def __init__(self, manifest: Manifest) -> None:
        self._manifest = manifest
        self._at = manifest.log_start_offset

    def add(self, entry: SegmentEntry) -> Iterator[Finding]:
        """The findings about the next entry and the offsets before it."""
        yield from self._missing(entry.base_offset)
        self._at = max(self._at, entry.end_offset)
        offset = first_contradiction(entry, self._manifest.leader_epochs)
        if offset is not None:
            key = self._manifest.path.segment(entry.log_name)
            problem = f"its leader epoch at offset {offset} is not that of the log's lineage, so these are another log's records"
            yield Finding(Kind.foreign_lineage, key, problem)

    def _missing(self, end: int) -> Iterator[Finding]:
        """The gaps up to `end`, recorded or not; offsets that compaction removed are no gap."""
        at, prefix = self._at, self._manifest.path.prefix
        for gap in sorted(self._manifest.gaps, key=lambda g: g.start):
            if gap.end > at and gap.start < end:
                if gap.start > at:
                    yield _unnamed(prefix, at, gap.start)
                start, at = max(at, gap.start), min(end, gap.end)
                if not gap.is_of_compaction:
                    yield Finding(Kind.gap, prefix, f"offsets [{start}, {at}) are missing: {gap.reason}")
        if at < end:
            yield _unnamed(prefix, at, end)


def losses(manifest: Manifest) -> Iterator[Finding]:
    """Offsets that were lost before they were archived: an anomaly until acknowledged, then a note."""
    prefix = manifest.path.prefix
    for loss in lost_ranges(manifest):
        problem = f"offsets [{loss.start}, {loss.end}) are {describe_loss(loss)}"
        if not loss.acknowledged_at_ms:
            which = f"--topic {manifest.topic} --partition {manifest.partition}"
            yield Finding(Kind.lost, prefix, f"{problem}; acknowledge it with tiering manifest acknowledge {which}")
        elif loss.start >= manifest.end_offset:  # below it is a gap
            yield Finding(Kind.gap, prefix, f"{problem}; acknowledged by {loss.acknowledged_by}")


def _unnamed(prefix: str, start: int, end: int) -> Finding:
    return Finding(Kind.unnamed_gap, prefix, f"offsets [{start}, {end}) are missing, and no gap in the manifest names them")
