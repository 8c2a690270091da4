"""Records in the manifests that a log directory is gone, for a broker that was taken out of service.

Nobody archives from that directory any more, so without this the offsets that it was last known to have would count as
available for ever. A directory that comes back is recorded again by its next offload.
"""

from collections.abc import Iterable, Iterator

from local_log.errors import NotFound, listed
from remote import archive
from remote.clock import Clock, Ids
from remote.manifest.losses import source_gone
from remote.manifest.model import Manifest
from remote.manifest.store import ManifestWriter, load_newest
from remote.store.api import ObjectStore

WRITER = "source-gone"


def partitions_of_source(store: ObjectStore, topics: Iterable[str], source: str) -> tuple[Manifest, ...]:
    """The newest manifests of these topics' partitions that `source` is recorded to have.

    Raises NotFound if no manifest has ever recorded the source; Corrupt, Newer, Unavailable.
    """
    newest = [*_newest(store, topics)]
    known = {name for manifest in newest for name in manifest.local_log_start_offsets}
    if source not in known:
        raise NotFound(f"nothing was archived from a log directory with the id {source}; there are: {listed(sorted(known))}")
    return tuple(m for m in newest if source in m.local_log_start_offsets and source not in m.gone)


def without_source(manifest: Manifest, source: str, now_ms: int) -> Manifest:
    """The manifest without the source's log. Offsets that only that log had become a recorded loss."""
    return source_gone(manifest, source, 0, now_ms)


def record_gone(manifest: Manifest, store: ObjectStore, clock: Clock, ids: Ids, source: str) -> Manifest:
    """Commits `without_source`. Raises the errors of a commit."""
    own = ManifestWriter(store, manifest.path, clock, ids, WRITER, manifest.writer_epoch)
    return own.commit(manifest, lambda newest: without_source(newest, source, clock.now_ms()))


def _newest(store: ObjectStore, topics: Iterable[str]) -> Iterator[Manifest]:
    for topic in topics:
        for path in archive.partition_paths(store, topic):
            stored = load_newest(store, path)
            if stored is not None and not stored.manifest.is_deleted:
                yield stored.manifest
