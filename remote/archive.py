"""The archive as a whole: its format, and which topics and partitions it holds."""

import json

from remote.clock import Clock, Ids
from remote.errors import AlreadyExists, NotFound
from remote.manifest.codec import MAJOR, MINOR, check_format, read_json
from remote.manifest.model import Manifest
from remote.manifest.store import load_newest
from remote.object_keys import ARCHIVE, PROBE_PREFIX, PartitionPath
from remote.object_store import ObjectReader, ObjectStore
from remote.stores import probe


def open_archive(store: ObjectStore) -> None:
    """Checks that there is an archive of a format that we know. Raises NotFound, Invalid, Corrupt."""
    try:
        _check(store)
    except NotFound as e:
        raise NotFound(f"{store.url}: no archive there ({ARCHIVE} is missing); check the address, or offload to it first") from e


def create_archive(store: ObjectStore, clock: Clock, ids: Ids) -> None:
    """Makes the archive where there is none; first proves that the store honours put-if-absent. Raises Invalid."""
    try:
        _check(store)
    except NotFound:
        probe(store, f"{PROBE_PREFIX}{ids.new_id()}")
    else:
        return
    body = {"format": {"major": MAJOR, "minor": MINOR}, "created_at_ms": clock.now_ms()}
    try:
        store.put_if_absent(ARCHIVE, json.dumps(body, sort_keys=True).encode() + b"\n")
    except AlreadyExists:
        _check(store)


def _check(store: ObjectReader) -> None:
    check_format(read_json(store.get(ARCHIVE), ARCHIVE), ARCHIVE)


def topics(store: ObjectStore) -> tuple[str, ...]:
    """The names of all archived topics, in order."""
    return tuple(sorted(store.list_folders("")))


def manifests(store: ObjectStore, topic: str) -> tuple[Manifest, ...]:
    """The newest manifest of each partition of a topic, in order of partitions; empty for a topic that is not archived.

    Of topics that had the same name one after the other, the one whose newest commit is the latest counts.
    """
    by_id: list[tuple[Manifest, ...]] = []
    for topic_id in store.list_folders(f"{topic}/"):
        numbers = (p for p in store.list_folders(f"{topic}/{topic_id}/") if p.isdigit())
        stored = (load_newest(store, PartitionPath(topic, topic_id, int(n))) for n in numbers)
        by_id.append(tuple(s.manifest for s in stored if s is not None))
    newest = max((m for m in by_id if m), key=lambda ms: max(m.committed_at_ms for m in ms), default=())
    return tuple(sorted(newest, key=lambda m: m.partition))


def path_of(manifest: Manifest) -> PartitionPath:
    """Where a manifest's partition lies."""
    return PartitionPath(manifest.topic, manifest.topic_id, manifest.partition)
