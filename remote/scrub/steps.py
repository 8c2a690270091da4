"""The steps of a scrub's pass: findings, and segments that a deep scrub reads, locally or in a Spark task."""

from dataclasses import dataclass

from remote.keys import PartitionPath
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import SegmentEntry
from remote.scrub.finding import Finding
from remote.scrub.segment_transactions import SegmentTransactions


@dataclass(frozen=True, slots=True)
class SegmentToRead:
    """A segment for the deep scrub.

    `manifest` has no entries; all segments of a partition share it.
    """

    manifest: Manifest
    entry: SegmentEntry


@dataclass(frozen=True, slots=True)
class ScrubbedSegment:
    """The findings about a segment alone, and its transactions, to be compared with other segments; None if it is damaged."""

    findings: tuple[Finding, ...] = ()
    transactions: SegmentTransactions | None = None


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The end of a partition's segments."""

    path: PartitionPath


ScrubStep = Finding | SegmentToRead | PartitionEnd
