"""What a walk along an archive comes to: findings, and segments that a deep scrub reads, here or on another machine."""

from dataclasses import dataclass

from remote.keys import PartitionPath
from remote.manifest.model import Manifest, SegmentEntry
from remote.scrub.finding import Finding


@dataclass(frozen=True, slots=True)
class SegmentToRead:
    """A segment whose objects are there, and that is to be read. `before` is the one that ends where it starts, if that is read.

    `manifest` says where the segment is, and knows no entries: all segments of a partition share it.
    """

    manifest: Manifest
    entry: SegmentEntry
    before: SegmentEntry | None


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """All segments of a partition have been come to."""

    path: PartitionPath


ScrubStep = Finding | SegmentToRead | PartitionEnd
