"""Losses of former topics: the partition's folder now belongs to a topic with another id, and what was not archived is gone."""

from collections.abc import Iterator
from functools import partial

from local_log.ranges import Range
from remote.clock import Clock, Ids
from remote.keys import PartitionPath, is_topic_id
from remote.manifest.losses import new_losses, source_gone
from remote.manifest.store import ManifestWriter, load_newest
from remote.store.api import ObjectStore


def former_ids(store: ObjectStore, path: PartitionPath) -> tuple[bool, tuple[str, ...]]:
    """Whether the archive has the topic with this id, and the ids of other topics of its name. Raises Unavailable."""
    found = [folder for folder in store.list_folders(f"{path.topic}/") if is_topic_id(folder)]
    return path.topic_id in found, tuple(topic_id for topic_id in found if topic_id != path.topic_id)


def record_former_topic_gone(store: ObjectStore, path: PartitionPath, clock: Clock, ids: Ids, source: str) -> Iterator[Range]:
    """Records that `source` no longer has a former topic's partition; yields the offsets that are lost thereby.

    Raises the errors of a commit.
    """
    stored = load_newest(store, path)
    if stored is None:
        return
    writer = ManifestWriter(store, path, clock, ids, source, stored.manifest.writer_epoch)
    gone = partial(source_gone, source=source, log_end_offset=0, now_ms=clock.now_ms())
    after = writer.commit(stored.manifest, gone)
    yield from new_losses(stored.manifest, after)
