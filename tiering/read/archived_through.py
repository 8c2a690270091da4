"""The time up to which each partition of a topic is archived; sensors and triggers wait for it.

A partition is archived through time T if the archive has a record with timestamp T or later. Then the first offset at or after
T is archived, and an interval that ends at T does not change any more. The archive does not know about active segments, so a
partition without new records holds its topic back until the broker rolls the segment.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from local_log.formats.record import NO_TIMESTAMP
from remote import archive
from remote.manifest.model import Manifest
from remote.store.api import ObjectStore


@dataclass(frozen=True, slots=True)
class ArchivedThrough:
    """A partition that is archived up to `end_offset`, exclusive; `through_ms` is its largest timestamp, -1 without one."""

    partition: int
    end_offset: int
    through_ms: int


def archived_through(store: ObjectStore, topic: str) -> tuple[ArchivedThrough, ...]:
    """Each archived partition of a topic, in order; empty if the topic is not archived yet.

    Raises NotFound if there is no archive, Corrupt, Newer, Unavailable.
    """
    archive.open_archive(store)
    return tuple(archived_through_of(manifest) for manifest in archive.newest_manifests(store, topic) if not manifest.only_seen)


def archived_through_of(manifest: Manifest) -> ArchivedThrough:
    """How far the partition of this manifest is archived."""
    latest = max((item.max_timestamp_ms for item in manifest.items), default=NO_TIMESTAMP)
    return ArchivedThrough(manifest.partition, manifest.end_offset, latest)


def partitions_behind(found: Iterable[ArchivedThrough], through_ms: int, partitions: Collection[int] = ()) -> tuple[int, ...]:
    """The partitions that are not archived through a time: of `partitions`, or of all archived ones if none are named."""
    latest = {through.partition: through.through_ms for through in found}
    return tuple(sorted(p for p in partitions or latest if latest.get(p, NO_TIMESTAMP) < through_ms))
