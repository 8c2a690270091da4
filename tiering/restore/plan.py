"""Plans a restore: for each partition the segments to write, from its manifest and the offset limit. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from local_log.errors import Corrupt
from local_log.formats.checkpoints import EpochEntry, epochs_before, epochs_from
from local_log.formats.filenames import TopicPartition
from local_log.formats.primitives import INT32_MAX, INT64_MAX
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.manifest.stamped_json import REMEDY
from remote.segment.stitch import DivergedSegment, Link, MissingOffsets, chain

END_MAX: Final = INT64_MAX - INT32_MAX
"""A log that ends above this has no offsets left for another segment; only a wrong manifest says so."""

RestoreStep = Link | MissingOffsets | DivergedSegment


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The restore of one partition up to `limit`, exclusive; `topic_id` is written to its partition.metadata."""

    entries: Entries
    limit: int
    topic_id: str

    @property
    def manifest(self) -> Manifest:
        """The manifest version that is restored."""
        return self.entries.manifest

    @property
    def partition(self) -> TopicPartition:
        """The partition; its text is the name of the folder."""
        return TopicPartition(self.manifest.topic, self.manifest.partition)

    @property
    def is_cut(self) -> bool:
        """Whether the limit is below the archive's end, so that transactions may be ongoing there."""
        return self.limit < self.manifest.end_offset

    def steps(self) -> Iterator[RestoreStep]:
        """The segments of the log in order, and what is missing or left out. Computed anew at each call.

        Raises the errors of reading a page: Corrupt, Invalid, Unavailable.
        """
        m, start = self.manifest, self.manifest.log_start_offset
        return chain(self.entries.overlapping(start, self.limit), m.gaps, m.leader_epochs, start, self.limit)

    def links(self) -> Iterator[Link]:
        """The segments alone, as ranges of a continuous log."""
        return (step for step in self.steps() if isinstance(step, Link))


def plan_restore(entries: Entries, until_offset: int | None, topic_ids: Mapping[str, str]) -> RestorePlan:
    """Plans a partition: all of it, or the offsets below `until_offset`. `topic_ids` maps topics to new ids.

    Raises Corrupt if the log would end above `END_MAX`.
    """
    manifest = entries.manifest
    end = manifest.end_offset
    limit = end if until_offset is None else max(manifest.log_start_offset, min(until_offset, end))
    if limit > END_MAX:
        problem = f"it says that the log ends at offset {limit}, and none gets there; {REMEDY}, or give --until-offset"
        raise Corrupt(problem, file=manifest.path.manifest(manifest.version))
    return RestorePlan(entries, limit, topic_ids.get(manifest.topic, manifest.topic_id))


def restored_epochs(manifest: Manifest, end_offset: int) -> tuple[EpochEntry, ...]:
    """The leader epochs of a log with the archive's start and this end, cut as Kafka truncates them."""
    return epochs_from(epochs_before(manifest.leader_epochs, end_offset), manifest.log_start_offset)
