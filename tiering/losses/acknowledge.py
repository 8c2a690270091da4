"""Acknowledges losses in the manifests: they stay listed, but a scrub no longer reports them as an anomaly."""

from collections.abc import Iterator
from functools import partial

from local_log.errors import NotFound, listed
from remote import archive
from remote.clock import Clock, Ids
from remote.manifest.losses import acknowledged, unacknowledged
from remote.manifest.model import Manifest
from remote.manifest.store import ManifestWriter, load_newest
from remote.store.api import ObjectStore


def with_losses(store: ObjectStore, topic: str, topic_id: str | None, partition: int | None) -> Iterator[Manifest]:
    """The manifests with unacknowledged losses, of all partitions of a topic or of one.

    Without an id, earlier topics of the same name are included.

    Raises NotFound for a topic that is not in the archive, Corrupt, Unavailable.
    """
    paths = [path for path in archive.partition_paths(store, topic) if topic_id in (None, path.topic_id)]
    if not paths:
        raise NotFound(f"topic {topic} is not in the archive {store.url}; there are: {listed(archive.topics(store))}")
    for path in paths:
        stored = load_newest(store, path) if partition in (None, path.partition) else None
        if stored is not None and unacknowledged(stored.manifest):
            yield stored.manifest


def acknowledge(manifest: Manifest, store: ObjectStore, clock: Clock, ids: Ids, by: str) -> Manifest:
    """Acknowledges the losses of this version; later losses stay unacknowledged. Raises the errors of a commit."""
    shown = [(loss.start, loss.end) for loss in unacknowledged(manifest)]
    own = ManifestWriter(store, manifest.path, clock, ids, by, manifest.writer_epoch)
    return own.commit(manifest, partial(acknowledged, shown=shown, by=by, now_ms=clock.now_ms()))
