"""A topic that is written directly, without a broker: its id, and the end offset of each partition."""

from dataclasses import dataclass
from itertools import count

from local_log.errors import Invalid, NotOurs
from local_log.formats.checkpoints import EpochEntry
from remote.archive import newest_partitions, partition_paths_of
from remote.keys import ARCHIVE, PartitionPath, topic_id_from
from remote.manifest.model import Manifest, never_archived
from remote.manifest.store import load_newest
from remote.manifest.write_record import as_decided
from remote.store.api import ObjectStore

PARTITIONS_MAX = 10_000
FIRST_EPOCH = 0
"""The leader epoch of a log without a broker."""


@dataclass(frozen=True, slots=True)
class WrittenPartition:
    """A partition at the start of a write: its end offset, and the writer epoch for the commit."""

    path: PartitionPath
    end_offset: int
    writer_epoch: int
    lineage: tuple[EpochEntry, ...]

    @property
    def leader_epoch(self) -> int:
        """The leader epoch of new batches."""
        return self.lineage[-1].epoch


@dataclass(frozen=True, slots=True)
class WrittenTopic:
    """A topic and its partitions, in order of their numbers."""

    name: str
    topic_id: str
    partitions: tuple[WrittenPartition, ...]


def written_topic(store: ObjectStore, name: str, partitions: int | None = None) -> WrittenTopic:
    """The topic to write to. A topic that does not exist yet gets `partitions`, 1 by default.

    Raises NotOurs for a topic that is archived from a broker, Invalid for another number of partitions than it has, Corrupt,
    Newer, Unavailable.
    """
    found = newest_partitions(store, name)
    if not found:
        return _new_topic(store, name, partitions or 1)
    known: list[WrittenPartition] = []
    for manifest in found.values():
        if not isinstance(manifest, Manifest):
            raise manifest
        if manifest.written is None or manifest.local_log_start_offsets:
            raise NotOurs(name)
        known.append(partition_of(manifest))
    if partitions not in (None, len(known)):
        raise Invalid(f"topic {name} has {len(known)} partitions, not {partitions}; leave the option partitions out")
    return WrittenTopic(name, known[0].path.topic_id, tuple(known))


def partition_of(manifest: Manifest) -> WrittenPartition:
    """The partition of a manifest, with the effect of a decided pending write."""
    lineage = manifest.leader_epochs or (EpochEntry(FIRST_EPOCH, manifest.end_offset),)
    return WrittenPartition(manifest.path, manifest.end_offset, manifest.writer_epoch, lineage)


def _new_topic(store: ObjectStore, name: str, partitions: int) -> WrittenTopic:
    """A topic that readers do not see yet. Concurrent writers derive the same id; a deleted topic's successor gets another one.

    Its partitions may have manifests already: of an aborted first write, or of a sweep that has claimed them. The next writer
    then uses their writer epoch.
    """
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise Invalid(f"a topic of {partitions} partitions; it may have 1 to {PARTITIONS_MAX}")
    origin = store.get(ARCHIVE)
    for topic_id in filter(None, (_topic_id(origin, name, generation) for generation in count())):
        there = _newest_of(store, name, topic_id)
        if not any(manifest.is_deleted for manifest in there.values()):
            break
    newest = (there.get(n) or never_archived(name, topic_id, n, 0) for n in range(partitions))
    return WrittenTopic(name, topic_id, tuple(map(partition_of, newest)))


def _newest_of(store: ObjectStore, name: str, topic_id: str) -> dict[int, Manifest]:
    """The newest manifest of every partition that has one, by number, visible to readers or not."""
    stored = ((path.partition, load_newest(store, path)) for path in partition_paths_of(store, name, topic_id))
    return {number: as_decided(store, found.manifest) for number, found in stored if found is not None}


def _topic_id(origin: bytes, name: str, generation: int) -> str | None:
    """The id of the topic's n-th incarnation in this archive; None if there is none (see `topic_id_from`)."""
    return topic_id_from(b"\0".join((origin, name.encode(), b"%d" % generation)))
