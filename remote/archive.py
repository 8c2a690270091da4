"""The archive: its format version, its topics and its partitions."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import inf

from local_log.errors import AlreadyExists, Corrupt, Newer, NoKey, NotFound, Unavailable, WrongKey, listed
from remote.clock import Clock, Ids
from remote.keys import ARCHIVE, PartitionPath, is_topic, is_topic_id, parse_partition
from remote.manifest import writes
from remote.manifest.model import Manifest, refuse_deleted
from remote.manifest.stamped_json import MAJOR, MINOR, check_format, read_json
from remote.manifest.store import load_newest
from remote.manifest.transitions import last_data_ms
from remote.manifest.write_record import as_decided
from remote.manifest.writes import was_never_there
from remote.parallel import in_order
from remote.store.api import ObjectReader, ObjectStore
from remote.store.proof import prove

SNAPSHOT_ATTEMPTS_MAX = 8

UnreadableManifest = Corrupt | Newer | NoKey | WrongKey
"""An error that affects a single manifest: damaged bytes, a newer format, a missing key."""


def open_archive(store: ObjectStore) -> None:
    """Checks that there is an archive in a known format. Raises NotFound, Newer, Corrupt, Invalid (the store denies access)."""
    if not is_archive(store):
        raise NotFound(f"{store.url}: no archive there ({ARCHIVE} is missing); check the address, or offload to it first")


def open_to_write(store: ObjectStore, ids: Ids) -> None:
    """Like `open_archive`, for writers: also probes the store, once per process (see `remote.store.proof`)."""
    open_archive(store)
    prove(store, ids)


def create_archive(store: ObjectStore, clock: Clock, ids: Ids) -> bool:
    """Creates the archive if there is none; returns whether it did. Probes the store first, like `open_to_write`.

    Raises Invalid.
    """
    is_there = is_archive(store)
    prove(store, ids)
    if is_there:
        return False
    body = {"format": {"major": MAJOR, "minor": MINOR}, "created_at_ms": clock.now_ms()}
    try:
        store.put_if_absent(ARCHIVE, json.dumps(body, sort_keys=True).encode() + b"\n")
    except AlreadyExists:
        is_archive(store)
        return False
    return True


def is_archive(store: ObjectReader) -> bool:
    """Whether there is an archive. Raises Newer, Corrupt, Unavailable, Invalid (the store denies access)."""
    try:
        body = store.get(ARCHIVE)
    except NotFound:
        return False
    check_format(read_json(body, ARCHIVE), ARCHIVE)
    return True


def topics(store: ObjectStore) -> tuple[str, ...]:
    """The names of folders that may be archived topics, sorted. A folder exists before its first manifest."""
    return tuple(sorted(name for name in store.list_folders("") if is_topic(name)))


def topic_ids(store: ObjectStore, topic: str) -> tuple[str, ...]:
    """The ids of all topics with this name, including deleted ones."""
    return tuple(folder for folder in store.list_folders(f"{topic}/") if is_topic_id(folder))


def matching_topics(store: ObjectStore, globs: Collection[str]) -> tuple[str, ...]:
    """The topics that match one of the globs, all without globs. Raises NotFound if none matches."""
    known = topics(store)
    found = tuple(name for name in known if not globs or any(fnmatchcase(name, glob) for glob in globs))
    if not found and globs:
        raise NotFound(f"no topic in the archive {store.url} matches {' or '.join(globs)}; there are: {listed(known)}")
    return found


@dataclass(frozen=True, slots=True)
class ArchivedTopic:
    """The partitions of a topic, by number: the newest manifest, or the error why it cannot be read.

    `others` are the ids of other topics of the same name that have partitions, those with the latest data first; they are listed
    only if no id was asked for. `topic_id` is "" if there is no such topic.
    """

    name: str
    topic_id: str
    partitions: dict[int, Manifest | UnreadableManifest]
    others: tuple[str, ...] = ()

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """The manifests in order of partitions. Raises the first error among them."""
        return tuple(map(_readable, self.partitions.values()))

    @property
    def warning(self) -> str | None:
        """A warning if the archive has several topics of this name."""
        if not self.others:
            return None
        return (
            f"{1 + len(self.others)} topics named {self.name} are archived, since it was deleted and created again or its "
            f"history diverged: this is the one with id {self.topic_id}, which received records last; to read another one, give "
            f"its topic id: {', '.join(self.others)}"
        )


def select_folders(store: ObjectStore, globs: Collection[str], topic_ids: Mapping[str, str]) -> tuple[str, ...] | None:
    """The folders to process: matching topics, and of those in `topic_ids` the one with that id. None stands for all topics.

    Raises NotFound for a glob or an id without a topic.
    """
    if not (globs or topic_ids):
        return None
    names = matching_topics(store, globs or topic_ids)
    for topic, topic_id in topic_ids.items():
        if topic not in names or topic_id not in set(store.list_folders(f"{topic}/")):
            raise NotFound(f"topic {topic} with id {topic_id} is not in the archive {store.url}, or not among those asked for")
    return tuple(f"{name}/{topic_ids[name]}" if name in topic_ids else name for name in names)


def manifests(store: ObjectStore, topic: str, *, threads: int = 1) -> tuple[Manifest, ...]:
    """The newest manifest of each partition of a topic, in order of partitions. Raises NotFound if there is none."""
    return require_partitions(store, find_topic(store, topic, threads=threads)).manifests


def require_partitions(store: ObjectStore, topic: ArchivedTopic) -> ArchivedTopic:
    """The topic if it has partitions. Raises NotFound with the reason and the existing topics."""
    if not topic.partitions and topic.topic_id:
        known = listed([t for t in store.list_folders(f"{topic.name}/") if is_topic_id(t)])
        raise NotFound(
            f"topic {topic.name} with id {topic.topic_id} is not in the archive {store.url}; of this name there are: {known}"
        )
    if not topic.partitions:
        names = topics(store)
        if topic.name in names:
            raise NotFound(f"nothing of topic {topic.name} is in the archive {store.url} yet: it had no inactive segment so far")
        raise NotFound(f"topic {topic.name} is not in the archive {store.url}; there are: {listed(names)}")
    return topic


def newest_manifests(store: ObjectStore, topic: str, *, threads: int = 1) -> tuple[Manifest, ...]:
    """The newest manifest of each partition of a topic, in order of partitions; empty where there is none.

    If several topics have had the name, `find_topic` says which one is read. `threads` load manifests concurrently.
    Raises Corrupt, Newer, Unavailable.
    """
    return find_topic(store, topic, threads=threads).manifests


def newest_partitions(store: ObjectStore, topic: str, *, threads: int = 1) -> dict[int, Manifest | UnreadableManifest]:
    """Like `newest_manifests`, by number, with the error in the place of a manifest that cannot be read.

    Raises Unavailable.
    """
    return find_topic(store, topic, threads=threads).partitions


def find_topic(
    store: ObjectStore, topic: str, topic_id: str | None = None, *, only: int | None = None, threads: int = 1
) -> ArchivedTopic:
    """The topic with this id; without an id, of all topics with this name the one that got offsets last.

    Maintenance (retention, sweeps, key rotation) adds no offsets and does not count. A topic without a readable manifest counts
    as the newest. With `only` just that partition. Raises Unavailable.
    """
    if topic_id is not None:
        return ArchivedTopic(topic, topic_id, partitions_of(store, topic, topic_id, only, threads=threads))
    ids = topic_ids(store, topic)
    if len(ids) == 1:
        found = partitions_of(store, topic, ids[0], only, threads=threads)
        return ArchivedTopic(topic, ids[0] if found else "", found)
    by_id = {i: found for i in ids if (found := partitions_of(store, topic, i, threads=threads))}
    newest, *others = sorted(by_id, key=lambda i: _last_data_ms(by_id[i]), reverse=True) or [""]
    partitions = by_id.get(newest, {})
    chosen = partitions if only is None else {n: found for n, found in partitions.items() if n == only}
    return ArchivedTopic(topic, newest, chosen, tuple(others))


def partition_paths(store: ObjectStore, topic: str) -> Iterator[PartitionPath]:
    """The paths of the partitions of all topics with this name, including deleted ones and those without a manifest."""
    for topic_id in topic_ids(store, topic):
        yield from partition_paths_of(store, topic, topic_id)


def partition_paths_of(store: ObjectStore, topic: str, topic_id: str) -> tuple[PartitionPath, ...]:
    """The paths of the partitions of the topic with this id."""
    numbers = (parse_partition(folder) for folder in store.list_folders(f"{topic}/{topic_id}/"))
    return tuple(PartitionPath(topic, topic_id, n) for n in sorted(n for n in numbers if n is not None))


def refuse_deleted_topic(store: ObjectStore, topic: str, topic_id: str) -> None:
    """Raises Invalid if the topic with this id was deleted, which its first readable manifest says as well as all others."""
    for folder in store.list_folders(f"{topic}/{topic_id}/"):
        number = parse_partition(folder)
        with suppress(Corrupt):
            stored = None if number is None else load_newest(store, PartitionPath(topic, topic_id, number))
            if stored is not None:
                return refuse_deleted(stored.manifest)
    return None


def newest_partition(store: ObjectStore, topic: str, number: int) -> dict[int, Manifest | UnreadableManifest]:
    """Like `newest_partitions`, for one partition; the others are read only if several topics have had the name."""
    return find_topic(store, topic, only=number).partitions


def partitions_of(
    store: ObjectStore, topic: str, topic_id: str, only: int | None = None, *, threads: int = 1
) -> dict[int, Manifest | UnreadableManifest]:
    """The partitions of the topic with this id, or only one; none if the topic was deleted. Raises Unavailable.

    A consistent snapshot: a write to several partitions is visible in all of them or in none.
    """
    for _ in range(SNAPSHOT_ATTEMPTS_MAX):
        found_there = {parse_partition(f) for f in store.list_folders(f"{topic}/{topic_id}/")} if only is None else {only}
        numbers = sorted(n for n in found_there if n is not None)
        with in_order(lambda n: _loaded(store, PartitionPath(topic, topic_id, n)), numbers, threads) as each:
            loaded = dict(zip(numbers, each, strict=True))
        # The outcome of a pending write is read after all manifests, so that every partition shows the same one.
        found = {n: _as_decided(store, m) if isinstance(m, Manifest) else m for n, m in loaded.items() if m is not None}
        readable = {n: m for n, m in found.items() if isinstance(m, Manifest)}
        if only is not None or writes.are_of_one_moment(readable, found.keys() - readable.keys()):
            return {n: m for n, m in found.items() if not isinstance(m, Manifest) or not (m.is_deleted or was_never_there(m))}
    raise Unavailable(f"{topic}: writes are being committed to it continuously, and its partitions do not agree; try again")


def _loaded(store: ObjectStore, path: PartitionPath) -> Manifest | UnreadableManifest | None:
    try:
        stored = load_newest(store, path)
    except (Corrupt, Newer, NoKey, WrongKey) as e:
        return e
    return stored.manifest if stored else None


def _as_decided(store: ObjectStore, manifest: Manifest) -> Manifest | UnreadableManifest:
    try:
        return as_decided(store, manifest)
    except (Corrupt, Newer, NoKey, WrongKey) as e:
        return e


def _last_data_ms(partitions: dict[int, Manifest | UnreadableManifest]) -> tuple[float, int]:
    """The time of the last new offsets of a topic, and of its last commit, for topics without offsets."""
    readable = [m for m in partitions.values() if isinstance(m, Manifest)]
    if not readable:
        return inf, 0
    return max(map(last_data_ms, readable)), max(m.committed_at_ms for m in readable)


def _readable(manifest: Manifest | UnreadableManifest) -> Manifest:
    if not isinstance(manifest, Manifest):
        raise manifest
    return manifest
