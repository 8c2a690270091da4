"""Deletes records of writes over many partitions that are no longer needed: see `tiering.sweep.plan.is_forgettable`.

Runs after the sweep of the topic's partitions, which deletes old manifest versions that refer to a record.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from remote import archive
from remote.keys import PartitionPath, is_topic_id, write_of, writes_prefix
from remote.manifest.chain import listed_versions
from remote.manifest.model import CLOCK_DIFFERENCE_MS_MAX
from remote.manifest.store import load_newest, load_version
from remote.manifest.write_record import Decision, read_decision, record_of
from remote.store.api import ObjectMeta, ObjectStore
from tiering.sweep.collect import GARBAGE_MAX, VERSIONS_READ_MAX
from tiering.sweep.plan import Garbage, Kind, garbage, is_forgettable, is_old


@dataclass(frozen=True, slots=True)
class _Record:
    """The record of a write, as listed and as read."""

    meta: ObjectMeta
    decision: Decision


def topic_ids(store: ObjectStore, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The topics with these names, and their ids, including topics that only have records left."""
    for name in names:
        yield from ((name, topic_id) for topic_id in store.list_folders(f"{name}/") if is_topic_id(topic_id))


def plan(store: ObjectStore, topic: str, topic_id: str, now_ms: int, grace_ms: int) -> tuple[Garbage, ...]:
    """The records that go of those that lie with a topic; only reads. Raises Corrupt, Newer, Unavailable."""
    # By so much older than the grace time that the stored versions of their time are few, or none.
    before_ms = now_ms - grace_ms - min(grace_ms, CLOCK_DIFFERENCE_MS_MAX)
    old = [(w, m) for m in store.list(writes_prefix(topic, topic_id)) if (w := write_of(m.key)) and is_old(m, before_ms)]
    if not old:
        return ()
    paths = archive.partition_paths_of(store, topic, topic_id)
    is_gone = all(_is_gone(store, path) for path in paths)
    some = islice((m for w, m in old if is_gone or not w.is_repeatable), GARBAGE_MAX)
    records = [_Record(m, decision) for m in some if (decision := read_decision(store, m.key))]
    pending = _waited_for(store, paths, records) if records else set()
    if pending is None:
        return ()
    left = _left(store, records) if is_gone else frozenset()
    return tuple(
        garbage(Kind.write, r.meta)
        for r in records
        if is_forgettable(
            r.meta.key, pending, committed=r.decision.committed, topics_are_gone=is_gone and not left & r.decision.topics
        )
    )


def sweep(due: Iterable[Garbage], store: ObjectStore) -> Iterator[Garbage]:
    """Deletes what the plan says, and gives each as it is gone. Raises Unavailable: the same command continues from there."""
    for piece in due:
        store.delete(piece.key)
        yield piece


def _is_gone(store: ObjectStore, path: PartitionPath) -> bool:
    stored = load_newest(store, path)
    return stored is None or stored.manifest.is_deleted


def _left(store: ObjectStore, records: list[_Record]) -> frozenset[tuple[str, str]]:
    """The topics of these writes that were not deleted."""
    topics = sorted({topic for record in records for topic in record.decision.topics})
    paths = {topic: (p for p in archive.partition_paths(store, topic[0]) if p.topic_id == topic[1]) for topic in topics}
    return frozenset(topic for topic, of in paths.items() if not all(_is_gone(store, path) for path in of))


def _waited_for(store: ObjectStore, own: tuple[PartitionPath, ...], records: list[_Record]) -> set[str] | None:
    """The keys that stored manifests wait for, of all partitions of these writes; None where there are too many to be read."""
    youngest_ms = max(r.meta.modified_ms or 0 for r in records) + CLOCK_DIFFERENCE_MS_MAX
    others = {topic for record in records for topic in record.decision.topics}
    paths = {*own, *(path for of in others for path in archive.partition_paths_of(store, *of))}
    found: set[str] = set()
    for path in sorted(paths):
        # A manifest waits for a record from before that is put until the next commit takes it in: so only old ones do.
        early = [v for v in listed_versions(store, path) if not v.meta.modified_ms or v.meta.modified_ms <= youngest_ms]
        if len(early) > VERSIONS_READ_MAX:
            return None
        manifests = (load_version(store, path, v.version).manifest for v in early)
        found.update(record_of(m.pending) for m in manifests if m.pending is not None)
    return found
