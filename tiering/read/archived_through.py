"""The time up to which each partition of a topic is archived; sensors and triggers wait for it.

A partition is archived through time T if the archive has a record with timestamp T or later. Then the first offset at or after
T is archived, and an interval that ends at T does not change any more. The archive does not know about active segments, so a
partition without new records holds its topic back until the broker rolls the segment. So does a partition that an offload has
recorded and of which nothing is archived yet, also if its log was empty then: that it has grown since is not recorded.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from local_log.formats.record import NO_TIMESTAMP
from remote import archive
from remote.manifest.losses import gone_since_ms
from remote.manifest.model import Manifest
from remote.manifest.store import load_newest
from remote.manifest.writes import was_never_there
from remote.store.api import ObjectStore


@dataclass(frozen=True, slots=True)
class ArchivedThrough:
    """A partition that is archived up to `end_offset`, exclusive; `through_ms` is its largest timestamp, -1 without one.

    They are 0 and -1 if nothing of it was archived yet.
    """

    partition: int
    end_offset: int
    through_ms: int


def archived_through(store: ObjectStore, topic: str) -> tuple[ArchivedThrough, ...]:
    """Each partition of a topic that is archived or may still be, in order; empty if the archive does not know the topic.

    Of several topics of this name it is the one that is read. Only if nothing of any is archived, it is all of them.
    Raises NotFound if there is no archive, Corrupt, Newer, Unavailable.
    """
    archive.open_archive(store)
    read = archive.find_topic(store, topic)
    found = {m.partition: archived_through_of(m) for m in read.manifests if not m.only_seen}
    for topic_id in (read.topic_id,) if found else archive.topic_ids(store, topic):
        for path in archive.partition_paths_of(store, topic, topic_id):
            stored = None if path.partition in found else load_newest(store, path)
            if stored is not None and _is_waited_for(stored.manifest):
                found[path.partition] = archived_through_of(stored.manifest)
    return tuple(found[partition] for partition in sorted(found))


def archived_through_of(manifest: Manifest) -> ArchivedThrough:
    """How far the partition of this manifest is archived."""
    if manifest.only_seen:
        return ArchivedThrough(manifest.partition, 0, NO_TIMESTAMP)
    latest = max((item.max_timestamp_ms for item in manifest.items), default=NO_TIMESTAMP)
    return ArchivedThrough(manifest.partition, manifest.end_offset, latest)


def _is_waited_for(manifest: Manifest) -> bool:
    """Whether a partition that readers did not see is archived meanwhile, or a log directory still has it."""
    if manifest.is_deleted:
        return False
    return gone_since_ms(manifest) is None if manifest.only_seen else not was_never_there(manifest)


def partitions_behind(found: Iterable[ArchivedThrough], through_ms: int, partitions: Collection[int] = ()) -> tuple[int, ...]:
    """The partitions that are not archived through a time: of `partitions`, or of all that were found if none are named."""
    latest = {through.partition: through.through_ms for through in found}
    return tuple(sorted(p for p in partitions or latest if latest.get(p, NO_TIMESTAMP) < through_ms))
