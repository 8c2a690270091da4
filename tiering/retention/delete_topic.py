"""Deletes a topic from the archive, by its id as Kafka does: a topic of the same name that is made anew has another one.

1  every partition's manifest says that the topic is deleted: writers from before are fenced, those who come later are refused,
   readers find nothing, and everything waits to be deleted
2  after the delay, and where no live pin covers them, the objects go, as in any retention: by this command again or by retain.
   The topic may have been made anew meanwhile, so where several topics have had the name, only the id says which one is meant
3  pages and old versions go by the sweep. The last version of each partition stays for ever, some hundred bytes: it keeps out who
   comes late, however long they slept, and a broker that was away and still has the log
"""

from dataclasses import replace

from local_log.errors import Fenced, Invalid, LogError, NotFound, listed
from remote import archive
from remote.manifest.model import Manifest, never_archived
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import topic_deleted
from remote.store.api import ObjectStore
from remote.store.store_time import StoreRun
from tiering.retention.expire import Expired, advance_log_start_offset, newest_manifest


def partitions(store: ObjectStore, topic: str, topic_id: str | None) -> tuple[Manifest, ...]:
    """The newest manifests of the topic with this id, or of the only one that ever had the name; it may be deleted already.

    Raises NotFound, Invalid where several have had the name, and Corrupt, Invalid for a manifest that cannot be read: then
    nothing of the topic is to be deleted.
    """
    found = {path: stored.manifest for path in archive.partition_paths(store, topic) if (stored := load_newest(store, path))}
    wanted = {path: m for path, m in found.items() if topic_id in (None, path.topic_id)}
    if not wanted:
        which = f"topic {topic}" + (f" with id {topic_id}" if topic_id else "")
        raise NotFound(f"{which} is not in the archive {store.url}; there are: {listed(archive.topics(store))}")
    alive = {path.topic_id for path, m in wanted.items() if not m.is_deleted}
    ids = sorted({path.topic_id for path in wanted})
    if len(ids) > 1:
        choice = ", ".join(one if one in alive else f"{one} (deleted)" for one in ids)
        raise Invalid(f"{len(ids)} topics in the archive have had the name {topic}; choose one with --topic-id: {choice}")
    return tuple(m for _, m in sorted(wanted.items()))


def delete_partition(manifest: Manifest, run: StoreRun, writer: str) -> Expired:
    """Step 1 for one partition; one that is deleted already stays as it is. Every error is in the result."""
    try:
        clock = run.agreed()
        after = _delete(manifest, ManifestWriter(run.store, manifest.path, clock, run.ids, writer, 0), clock.now_ms())
    except LogError as e:
        return Expired(0, manifest.log_start_offset, e)
    return Expired(0, after.log_start_offset)


def _delete(manifest: Manifest, own: ManifestWriter, now_ms: int) -> Manifest:
    path = own.path
    first = never_archived(path.topic, path.topic_id, path.partition, manifest.log_start_offset)
    newest = manifest
    while not newest.is_deleted:
        try:
            newest = replace(own, writer_epoch=newest.writer_epoch).commit(first, lambda m: topic_deleted(m, now_ms))
        except Fenced:
            newest = newest_manifest(own.store, path)  # another claim came first, perhaps of another who deletes
    return advance_log_start_offset(replace(own, writer_epoch=newest.writer_epoch), newest.log_start_offset, now_ms)
