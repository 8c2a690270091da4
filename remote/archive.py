"""The archive as a whole: its format, and which topics and partitions it holds."""

import json
from collections.abc import Collection, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from math import inf

from local_log.errors import Corrupt, listed
from remote.clock import Clock, Ids
from remote.errors import AlreadyExists, Newer, NotFound, Unavailable
from remote.manifest import writes
from remote.manifest.codec import MAJOR, MINOR, check_format, read_json
from remote.manifest.decisions import as_decided
from remote.manifest.model import Manifest
from remote.manifest.store import load_newest
from remote.manifest.transitions import refuse_deleted
from remote.manifest.writes import was_never_there
from remote.object_keys import ARCHIVE, PROBE_PREFIX, PartitionPath, is_topic, is_topic_id, parse_partition
from remote.object_store import ObjectReader, ObjectStore
from remote.parallel import in_order
from remote.stores import probe

MOMENT_ATTEMPTS_MAX = 8

Damaged = Corrupt | Newer
"""What keeps one manifest from being read and says nothing of the others: its bytes, or a format newer than ours."""


def open_archive(store: ObjectStore) -> None:
    """Checks that there is an archive of a format that we know. Raises NotFound, Newer, Corrupt, Invalid (the store refuses)."""
    if not is_archive(store):
        raise NotFound(f"{store.url}: no archive there ({ARCHIVE} is missing); check the address, or offload to it first")


def create_archive(store: ObjectStore, clock: Clock, ids: Ids) -> bool:
    """Makes the archive where there is none, and says whether it did; first proves that the store honours put-if-absent.

    Raises Invalid.
    """
    if is_archive(store):
        return False
    probe(store, f"{PROBE_PREFIX}{ids.new_id()}")
    body = {"format": {"major": MAJOR, "minor": MINOR}, "created_at_ms": clock.now_ms()}
    try:
        store.put_if_absent(ARCHIVE, json.dumps(body, sort_keys=True).encode() + b"\n")
    except AlreadyExists:
        is_archive(store)
        return False
    return True


def is_archive(store: ObjectReader) -> bool:
    """Whether there is an archive. Raises Newer, Corrupt, Unavailable, Invalid (the store refuses)."""
    try:
        body = store.get(ARCHIVE)
    except NotFound:
        return False
    check_format(read_json(body, ARCHIVE), ARCHIVE)
    return True


def topics(store: ObjectStore) -> tuple[str, ...]:
    """The names that may be archived topics, in order: a folder is made before its first manifest."""
    return tuple(sorted(name for name in store.list_folders("") if is_topic(name)))


def topics_like(store: ObjectStore, globs: Collection[str]) -> tuple[str, ...]:
    """Those of `topics` that match one of the globs, all where none is given. Raises NotFound where there is no such topic."""
    known = topics(store)
    found = tuple(name for name in known if not globs or any(fnmatchcase(name, glob) for glob in globs))
    if not found and globs:
        raise NotFound(f"no topic in the archive {store.url} matches {' or '.join(globs)}; there are: {listed(known)}")
    return found


def manifests(store: ObjectStore, topic: str, *, threads: int = 1) -> tuple[Manifest, ...]:
    """The newest manifest of each partition of a topic, in order of partitions. Raises NotFound where there is none."""
    newest = newest_manifests(store, topic, threads=threads)
    if not newest:
        raise NotFound(f"topic {topic} is not in the archive {store.url}; there are: {listed(topics(store))}")
    return newest


def newest_manifests(store: ObjectStore, topic: str, *, threads: int = 1) -> tuple[Manifest, ...]:
    """The newest manifest of each partition of a topic, in order of partitions; empty where there is none.

    Of topics that had the same name one after the other, the one whose newest commit is the latest counts. `threads` ask the
    store for partitions. Raises Corrupt, Newer, Unavailable.
    """
    return tuple(_sound(m) for m in newest_partitions(store, topic, threads=threads).values())


def newest_partitions(store: ObjectStore, topic: str, *, threads: int = 1) -> dict[int, Manifest | Damaged]:
    """As `newest_manifests`, by number, and in place of a manifest that cannot be read the error that says why.

    A topic of which no manifest can be read counts as the newest of its name, since nobody can tell. Raises Unavailable.
    """
    topic_ids = (topic_id for topic_id in store.list_folders(f"{topic}/") if is_topic_id(topic_id))
    by_id = (partitions_of(store, topic, topic_id, threads=threads) for topic_id in topic_ids)
    return max((partitions for partitions in by_id if partitions), key=_last_commit_ms, default={})


def partition_paths(store: ObjectStore, topic: str) -> Iterator[PartitionPath]:
    """Where partitions of all topics of this name lie, also of those that were deleted, and those without a manifest."""
    for topic_id in store.list_folders(f"{topic}/"):
        if is_topic_id(topic_id):
            yield from partition_paths_of(store, topic, topic_id)


def partition_paths_of(store: ObjectStore, topic: str, topic_id: str) -> tuple[PartitionPath, ...]:
    """The same for the topic with this id."""
    numbers = (parse_partition(folder) for folder in store.list_folders(f"{topic}/{topic_id}/"))
    return tuple(PartitionPath(topic, topic_id, n) for n in sorted(n for n in numbers if n is not None))


def refuse_deleted_topic(store: ObjectStore, topic: str, topic_id: str) -> None:
    """Raises Invalid where the first manifest of the topic with this id says that it was deleted: all of them would."""
    for folder in store.list_folders(f"{topic}/{topic_id}/"):
        number = parse_partition(folder)
        with suppress(Corrupt):
            stored = None if number is None else load_newest(store, PartitionPath(topic, topic_id, number))
            if stored is not None:
                return refuse_deleted(stored.manifest)
    return None


def newest_partition(store: ObjectStore, topic: str, number: int) -> dict[int, Manifest | Damaged]:
    """As `newest_partitions`, of one partition; the others are not looked at unless topics of this name followed each other."""
    topic_ids = [topic_id for topic_id in store.list_folders(f"{topic}/") if is_topic_id(topic_id)]
    if len(topic_ids) > 1:
        return {n: found for n, found in newest_partitions(store, topic).items() if n == number}
    return partitions_of(store, topic, topic_ids[0], number) if topic_ids else {}


def partitions_of(
    store: ObjectStore, topic: str, topic_id: str, only: int | None = None, *, threads: int = 1
) -> dict[int, Manifest | Damaged]:
    """The same for the topic with this id, or for one partition of it; of a topic that was deleted, none. Raises Unavailable.

    A write over all partitions is seen in all of them or in none.
    """
    for _ in range(MOMENT_ATTEMPTS_MAX):
        found_there = {parse_partition(f) for f in store.list_folders(f"{topic}/{topic_id}/")} if only is None else {only}
        numbers = sorted(n for n in found_there if n is not None)
        with in_order(lambda n: _loaded(store, PartitionPath(topic, topic_id, n)), numbers, threads) as each:
            loaded = dict(zip(numbers, each, strict=True))
        # Only now, when every manifest has been read, is asked how a write ended that is pending in some of them.
        found = {n: _as_decided(store, m) if isinstance(m, Manifest) else m for n, m in loaded.items() if m is not None}
        sound = {n: m for n, m in found.items() if isinstance(m, Manifest)}
        if only is not None or writes.are_of_one_moment(sound, found.keys() - sound.keys()):
            return {n: m for n, m in found.items() if not isinstance(m, Manifest) or not (m.is_deleted or was_never_there(m))}
    raise Unavailable(f"{topic}: one write after the other is committed to it, and no two partitions show the same; try again")


def _loaded(store: ObjectStore, path: PartitionPath) -> Manifest | Damaged | None:
    try:
        stored = load_newest(store, path)
    except (Corrupt, Newer) as e:
        return e
    return stored.manifest if stored else None


def _as_decided(store: ObjectStore, manifest: Manifest) -> Manifest | Damaged:
    try:
        return as_decided(store, manifest)
    except (Corrupt, Newer) as e:
        return e


def _last_commit_ms(partitions: dict[int, Manifest | Damaged]) -> float:
    return max((m.committed_at_ms for m in partitions.values() if isinstance(m, Manifest)), default=inf)


def _sound(manifest: Manifest | Damaged) -> Manifest:
    if not isinstance(manifest, Manifest):
        raise manifest
    return manifest
