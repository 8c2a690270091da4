"""Commits a write to many partitions atomically and exactly once; `manifest.writes` describes the protocol.

The segments are uploaded first, under unique ids. Where another write has committed in between, they get the offsets after it
and are committed then. A write that is retried under its id, or runs twice concurrently, is committed once.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from local_log.errors import Conflict, LogError, NotOurs
from remote.clock import Clock, Ids
from remote.direct_write.topic import WrittenPartition, WrittenTopic, partition_of
from remote.keys import PartitionPath, WritePath, is_topic_id
from remote.manifest.model import Manifest, PendingWrite, WriteMark, never_archived
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.write_record import Decision, WrittenRange, as_decided, decide, decisions, read_decision, record_of
from remote.manifest.writes import intended
from remote.parallel import in_order
from remote.store.api import ObjectStore

T = TypeVar("T")

COMMIT_ATTEMPTS_MAX = 10
WAIT_SECONDS_MAX = 30.0
WAIT_SECONDS = 0.5
THREADS = 8

PartitionEntries = Mapping[PartitionPath, tuple[SegmentEntry, ...]]
PlaceEntries = Callable[[Mapping[PartitionPath, WrittenPartition]], PartitionEntries]
"""Returns each partition's entries, with offsets from the partition's end on; called again after that end has moved."""


@dataclass(frozen=True, slots=True)
class Write:
    """A write to some topics, with its id and writer. The partitions have the writer epochs of before the upload."""

    write_id: str
    topics: tuple[WrittenTopic, ...]
    by: str

    @property
    def home(self) -> WritePath:
        """The path of the write's outcome records."""
        first = min(self.topics, key=lambda topic: topic.name)
        return WritePath(first.name, first.topic_id, self.write_id)

    @property
    def partitions(self) -> dict[PartitionPath, WrittenPartition]:
        """All partitions of its topics, including those without rows, because a write is visible in all partitions of a topic
        or in none.
        """
        return {p.path: p for topic in self.topics for p in topic.partitions}


def committed_before(store: ObjectStore, write: WritePath) -> Decision | None:
    """The committed outcome of a write, None if it is not committed. Raises Corrupt, Unavailable."""
    return next((decision for decision in decisions(store, write) if decision.committed), None)


def _committed_before(store: ObjectStore, write: Write) -> Decision | None:
    """Like `committed_before`, but also finds the record if the first topic was deleted since and another one was not."""
    home = write.home
    done = committed_before(store, home)
    if done is not None or not home.is_repeatable or len(write.topics) == 1:
        return done
    left = {(topic.name, topic.topic_id) for topic in write.topics}
    for topic_id in store.list_folders(f"{home.topic}/"):
        if is_topic_id(topic_id) and topic_id != home.topic_id:
            done = committed_before(store, WritePath(home.topic, topic_id, home.write_id))
            if done is not None and left & done.topics:
                return done
    return None


def commit_write(
    store: ObjectStore, clock: Clock, ids: Ids, write: Write, place: PlaceEntries, *, threads: int = THREADS
) -> Decision:
    """Commits the write, or finds that it is committed already; returns the outcome with the added offsets.

    Raises Conflict (other writers always came first), Fenced (a sweep may have deleted the uploaded segments), NotOurs and
    Invalid (a topic that was deleted), Unknown (retry with the same id), Unavailable, Corrupt.
    """
    commit = _Commit(store, clock, ids, write, write.partitions, threads)
    for _ in range(COMMIT_ATTEMPTS_MAX):
        seen = commit.manifests()
        done = _committed_before(store, write)  # after the manifests: what is committed from now on changes them
        if done is not None:
            commit.finish()
            return done
        now = {path: partition_of(manifest) for path, manifest in seen.items()}
        decision = commit.attempt(seen, place(now), ids.new_id())
        if decision is not None:
            return decision
    raise Conflict(
        f"write {write.write_id}: {COMMIT_ATTEMPTS_MAX} times other writers were faster; run fewer concurrent writes to one topic"
    )


@dataclass(frozen=True, slots=True)
class _Commit:
    store: ObjectStore
    clock: Clock
    ids: Ids
    write: Write
    partitions: Mapping[PartitionPath, WrittenPartition]
    threads: int

    def manifests(self) -> dict[PartitionPath, Manifest]:
        """The manifests as readers see them. Waits a bounded time for other writes that are being committed."""
        waited = 0.0
        while True:
            loaded = dict(zip(self.partitions, self._each(self._newest), strict=True))
            pending = {record_of(m.pending) for m in loaded.values() if m.pending is not None}
            if waited >= WAIT_SECONDS_MAX or all(read_decision(self.store, key) for key in pending):
                return {path: as_decided(self.store, manifest) for path, manifest in loaded.items()}
            self.clock.sleep(WAIT_SECONDS)
            waited += WAIT_SECONDS

    def attempt(self, seen: Mapping[PartitionPath, Manifest], entries: PartitionEntries, attempt_id: str) -> Decision | None:
        """The outcome, or None if another writer has committed in between."""
        for path, manifest in seen.items():
            if manifest.local_log_start_offsets:
                raise NotOurs(path.topic)
        key = self.write.home.attempt(attempt_id)
        try:
            intents = self._each(lambda path: self._intend(seen[path], entries.get(path, ()), attempt_id))
        except LogError as e:
            with suppress(LogError):  # otherwise the next writer aborts it
                decide(self.store, self.clock, key, Decision(False, self.clock.now_ms(), self.write.by))
                self.finish()
            if isinstance(e, Conflict):
                return None
            raise
        added = ((path, of) for path, of in sorted(entries.items()) if of)
        ranges = tuple(WrittenRange(path, of[0].base_offset, of[-1].end_offset) for path, of in added)
        # No earlier than any of its intents, so that a time-travel read finds the write in all partitions or in none.
        decided_at_ms = max(self.clock.now_ms(), *(manifest.committed_at_ms for manifest in intents))
        decision = decide(self.store, self.clock, key, Decision(True, decided_at_ms, self.write.by, ranges))
        self.finish()
        return decision if decision.committed else None

    def finish(self) -> None:
        """Completes the pending write in the partitions. Failures are ignored: the next writer or reader completes it."""
        self._each(self._finish)

    def _intend(self, seen: Manifest, entries: tuple[SegmentEntry, ...], attempt_id: str) -> Manifest:
        home, path = self.write.home, seen.path
        counts = {topic.topic_id: len(topic.partitions) for topic in self.write.topics}
        mark = WriteMark(self.write.write_id, attempt_id, counts[path.topic_id])
        pending = PendingWrite(home.topic, home.topic_id, mark, entries, partition_of(seen).lineage)
        return self._writer(path).commit(_first(path), partial(intended, pending=pending, expected=seen))

    def _finish(self, path: PartitionPath) -> None:
        with suppress(LogError):
            self._writer(path).commit(_first(path), lambda manifest: manifest)

    def _writer(self, path: PartitionPath) -> ManifestWriter:
        epoch = self.partitions[path].writer_epoch
        return ManifestWriter(self.store, path, self.clock, self.ids, self.write.by, epoch)

    def _newest(self, path: PartitionPath) -> Manifest:
        stored = load_newest(self.store, path)
        return stored.manifest if stored else _first(path)

    def _each(self, act: Callable[[PartitionPath], T]) -> list[T]:
        with in_order(act, self.partitions, self.threads) as results:
            return [*results]


def _first(path: PartitionPath) -> Manifest:
    return never_archived(path.topic, path.topic_id, path.partition, 0)
