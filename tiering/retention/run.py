"""Retention for people: which partitions, what their local log holds, and plans as rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol

from local_log.errors import Corrupt, Invalid, LogError, Newer, NoKey, OffsetOutOfRange, Unavailable, WrongKey
from local_log.formats.filenames import TopicPartition
from local_log.log_dir import LogDir, Unopened
from local_log.log_reader import LogReader
from remote import archive
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest.entries import Entries
from remote.manifest.losses import has_nothing_for_readers
from remote.manifest.model import Deleting, Manifest, count_of, log_bytes_of
from remote.manifest.store import load_newest, of_newest
from remote.manifest.write_record import as_decided
from remote.parallel import in_order
from remote.store.api import ObjectStore
from remote.store.store_time import StoreRun
from tiering.cluster import BrokerRetention
from tiering.retention import expire as retention
from tiering.retention.plan import LocalBytes, Policy, Reason, RetentionPlan
from tiering.retention.policy import Given, deleted_policy_of, kept_policy_of, names, policy_of

Row = dict[str, Any]
Found = Manifest | LogError
Planned = tuple[PartitionPath, RetentionPlan | LogError]
COLUMNS = ("topic", "topic_id", "partition", "action", "start", "end", "segments", "bytes", "reason")
WRITER = "retain"
"""The writer's name in manifests, which archives have had from the start."""
COMPACTED = "its brokers have cleanup.policy=compact, and no setting is for exactly this topic"
KEPT = "a history from which the log diverged is kept until it is deleted by its id"
_BY_LIMITS = (Reason.retention_ms, Reason.retention_bytes)


def paths_of(store: ObjectStore, topics: Iterable[str]) -> Iterator[PartitionPath]:
    """Where all partitions of these topics lie, of all of their ids. Raises Unavailable."""
    return (path for topic in topics for path in archive.partition_paths(store, topic))


def manifests_of(
    store: ObjectStore, paths: Iterable[PartitionPath], *, threads: int = 1
) -> Iterator[tuple[PartitionPath, Found]]:
    """The newest manifest of each of these partitions; what is wrong with one in its place. `threads` load them.

    A write that is committed is in it. What was only seen has nothing that could expire, and is left out.

    Raises Unavailable.
    """

    def load(path: PartitionPath) -> tuple[PartitionPath, Found | None]:
        try:
            stored = load_newest(store, path)
            manifest = None if stored is None else as_decided(store, stored.manifest)
        except (Corrupt, Newer, NoKey, WrongKey) as e:
            return path, e
        return path, manifest if manifest is not None and not has_nothing_for_readers(manifest) else None

    with in_order(load, paths, threads) as loaded:
        for path, found in loaded:
            if found is not None:
                yield path, found


class BrokerSettings(Protocol):
    """What the brokers themselves say of topics."""

    def retention(self, topic: str, topic_id: str) -> BrokerRetention | None:
        """See `Cluster.retention`."""


@dataclass(frozen=True, slots=True)
class LocalTier:
    """The logs of a directory that the sizes of both tiers are added up over."""

    path: str
    logs: Mapping[TopicPartition, LogReader | Unopened]

    @classmethod
    def of(cls, log_dir: LogDir, wanted: Callable[[str], bool]) -> "LocalTier":
        """The logs of the wanted topics. Raises NotFound, Corrupt, Unreadable."""
        return cls(log_dir.path, {log.partition: log for log in log_dir.found(wanted)})

    def segments(self, path: PartitionPath) -> tuple[LocalBytes, ...]:
        """The segments of a partition's local log; none if the log belongs to another topic with the same name.

        Raises Invalid if there is no log, since the size of the local tier is then unknown, and what reading it raises.
        """
        log = self._log(path)
        if log is None:
            return ()
        return tuple(
            LocalBytes(s.base_offset, log.log_end_offset if s.next_base_offset is None else s.next_base_offset, s.size())
            for s in log.segments
        )

    def log_start_offset(self, path: PartitionPath) -> int:
        """Where the log directory's checkpoint says that the log starts, 0 where it does not say. Raises as `segments`."""
        log = self._log(path)
        return (log.checkpointed_start or 0) if log is not None else 0

    def high_watermark(self, path: PartitionPath) -> int:
        """The offset up to which the log may be read. Raises as `segments`."""
        log = self._log(path)
        return log.high_watermark if log is not None else 0

    def _log(self, path: PartitionPath) -> LogReader | None:
        log = self.logs.get(TopicPartition(path.topic, path.partition))
        if isinstance(log, Unopened):
            raise log.error
        if log is None:
            raise Invalid(
                f"{path}: {self.path} has no log of it, so what lies above the archive's end is unknown, and nothing "
                "expires by size; give the --log-dir that has it, or --archive-alone where there is none any more"
            )
        return log if log.topic_id == path.topic_id else None


@dataclass(frozen=True, slots=True)
class Retention:
    """What is to be retained of an archive's topics, and by which settings.

    `partition` is the only one that is looked at, None for all; `log_start_offset` is what its records are deleted below.
    `follows`: they are below the local log's start offset, too. `is_archive_alone`: there is no local tier to add to its size.
    `cluster` says which topics are compacted: of those nothing goes by a setting that does not name them.
    """

    store: ObjectStore
    clock: Clock
    ids: Ids
    given: tuple[Given, ...]
    local: LocalTier | None = None
    is_archive_alone: bool = False
    partition: int | None = None
    log_start_offset: int | None = None
    follows: bool = False
    cluster: BrokerSettings | None = None

    def planned(self, topics: Iterable[str]) -> Iterator[Planned]:
        """The plan for each partition of these topics, or the error that prevents it. Raises Unavailable."""
        return self.planned_of(self._paths(topics))

    def planned_of(self, paths: Iterable[PartitionPath], *, threads: int = 1) -> Iterator[Planned]:
        """The same for these partitions; `threads` load their manifests. Raises Unavailable."""
        for path, manifest in manifests_of(self.store, paths, threads=threads):
            yield path, self.plan(path, manifest)

    def done(self, topics: Iterable[str]) -> Iterator[Planned]:
        """Executes each plan, then yields it, or its error. Reads the store's time once."""
        return self.done_of(self._paths(topics))

    def done_of(self, paths: Iterable[PartitionPath], *, threads: int = 1) -> Iterator[Planned]:
        """The same for these partitions; `threads` load their manifests."""
        run = StoreRun(self.store, self.clock, self.ids)
        for path, due in replace(self, clock=run).planned_of(paths, threads=threads):
            error = None
            if isinstance(due, RetentionPlan) and not due.is_empty:
                error = retention.expire(due, run, WRITER, threads=retention.DELETES_MAX).error
            yield path, error or due
            if isinstance(error, Unavailable):
                return  # the others would wait for the same store

    def _paths(self, topics: Iterable[str]) -> Iterator[PartitionPath]:
        return (path for path in paths_of(self.store, topics) if self.partition in (None, path.partition))

    def plan(self, path: PartitionPath, manifest: Found) -> RetentionPlan | LogError:
        """The plan for one partition, or the error that prevents it."""
        if not isinstance(manifest, Manifest):
            return manifest
        try:
            return of_newest(self.store, manifest, lambda newest: self._plan(path, newest))
        except LogError as e:
            return e

    def _policy(self, path: PartitionPath, *, is_start_given: bool) -> tuple[Policy, bool]:
        """A topic's policy, and whether it may certainly be applied: a setting names the topic, or the topic is not compacted."""
        policy = policy_of(self.given, path.topic, is_start_given=is_start_given)
        if not policy.has_limits or names(self.given, path.topic):
            return policy, True
        known = self.cluster.retention(path.topic, path.topic_id) if self.cluster is not None else None
        if known is None or known.cleanup_policy is None:
            return policy, False
        if known.deletes:
            return policy, True
        return replace(policy, retention_ms=None, retention_bytes=None, kept_because=COMPACTED), True

    def _plan(self, path: PartitionPath, manifest: Manifest) -> RetentionPlan:
        if manifest.is_deleted:
            return retention.plan(manifest, self.store, deleted_policy_of(self.given, path.topic), self.clock.now_ms())
        if manifest.kept_from:
            return retention.plan(manifest, self.store, kept_policy_of(self.given, path.topic, KEPT), self.clock.now_ms())
        is_start_given = self.log_start_offset is not None or self.follows
        policy, is_sure = self._policy(path, is_start_given=is_start_given)
        segments = self._segments(path, policy)
        start = self._start(path, manifest)
        now_ms = self.clock.now_ms()
        due = retention.plan(manifest, self.store, policy, now_ms, local=segments, log_start_offset=start)
        if not is_sure:
            _refuse_compacted(path, due, Entries.of(self.store, manifest))
        return due

    def _segments(self, path: PartitionPath, policy: Policy) -> tuple[LocalBytes, ...]:
        """What the local tier adds to the size. Raises Invalid where that is not known and counts."""
        if policy.retention_bytes is None or self.is_archive_alone:
            return ()
        if self.local is None:
            raise Invalid(
                f"{path}: retention.bytes is of both tiers together, and how large the local one is nobody has said; nothing "
                "expires by size: give --log-dir, or --archive-alone where there is no local log any more"
            )
        return self.local.segments(path)

    def _start(self, path: PartitionPath, manifest: Manifest) -> int:
        """Raises OffsetOutOfRange for a log start offset behind what may be read."""
        start = self.log_start_offset or 0
        if self.follows and self.local is not None:
            start = max(start, self.local.log_start_offset(path))
        end = manifest.end_offset
        if start > end and self.local is not None:
            end = max(end, self.local.high_watermark(path))
        if start > end:
            raise OffsetOutOfRange(str(path), start, manifest.log_start_offset, end)
        return start


def rows_of(path: PartitionPath, plan: RetentionPlan) -> Iterator[Row]:
    """A plan as rows: what expires and why, the objects that go, and what has to wait; one that says so where all stays."""
    for cut in plan.cuts:
        yield row(path, "expire", cut.start, cut.end, cut.segments, cut.bytes, cut.reason)
    if plan.due:
        yield _deleting(path, "delete", plan.due, "expired before, and no reader's pin covers it")
    left = [d for d in plan.manifest.deleting if d.id not in {due.id for due in plan.due}]
    if left:
        why = [f"{plan.waiting} for {plan.policy.delete_delay_ms} ms"] if plan.waiting else []
        why += [f"{plan.pinned} for readers' pins"] if plan.pinned else []
        yield _deleting(path, "wait", left, " and ".join(why))
    because = plan.policy.kept_because
    if because or (not plan.cuts and not plan.manifest.deleting):
        m = plan.manifest
        start = plan.log_start_offset if plan.cuts else m.log_start_offset
        yield row(path, "keep", start, m.end_offset, m.segment_count - plan.segments, m.log_bytes - plan.bytes, because)


def _refuse_compacted(path: PartitionPath, due: RetentionPlan, entries: Entries) -> None:
    """Raises Invalid where something would go by time or size of a topic that may be compacted, as its segments look."""
    if not any(cut.reason in _BY_LIMITS for cut in due.cuts):
        return
    m = due.manifest
    segments = chain(m.entries, entries.overlapping(m.log_start_offset, due.log_start_offset))
    if any(gap.is_of_compaction for gap in m.gaps) or any(e.is_compacted for e in segments):
        raise Invalid(
            f"{path}: it was compacted before it was archived, and nobody says whether it still is: nothing of it goes by a "
            f"setting that does not name it; give -c {path.topic}:retention.ms=… (or retention.bytes) for what is to go, "
            f"-c {path.topic}:cleanup.policy=compact to keep it, or the --metadata-log-dir of its cluster"
        )


# A parameter a column.
def row(path: PartitionPath, action: str, start: int | None, end: int | None, segments: int, size: int, reason: str) -> Row:
    """One line of a plan."""
    cells = path.topic, path.topic_id, path.partition, action, start, end, segments, size, reason
    return dict(zip(COLUMNS, cells, strict=True))


def _deleting(path: PartitionPath, action: str, items: Iterable[Deleting], reason: str) -> Row:
    of = [d.item for d in items]
    size = sum(map(log_bytes_of, of))
    return row(path, action, min(i.base_offset for i in of), max(i.end_offset for i in of), sum(map(count_of, of)), size, reason)
