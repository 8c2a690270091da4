"""The topics that are answered for, from both tiers, and how fresh they are (Kafka's MetadataCache and ReplicaManager).

A topic is opened when it is first asked for. Its manifests are loaded again after `archive_ms_max`, or when the local log has
dropped what they lack; a local log is looked at again after `local_ms_max`. Many threads may ask: one of them looks, the others
are answered with what is known meanwhile, and so are all while the store does not answer. Who asks for all topics opens several
at a time, and gets those that are open as they are; they are loaded again after `unread_ms_max`, in the background.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from local_log.disk import Disk
from local_log.errors import LogError, NotFound, Unavailable
from local_log.formats.filenames import CLUSTER_METADATA_TOPIC, TopicPartition
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.log_reader import LogReader
from remote.clock import Time
from remote.parallel import in_order
from tiering.endpoint.protocol.writing import Written
from tiering.endpoint.recent_log_dir import RecentLogDir
from tiering.endpoint.topic_ids import TopicIds
from tiering.read.tiered_log import TieredLog
from tiering.wiring import Tiers

ARCHIVE_MS_MAX: Final = 30_000
LOCAL_MS_MAX: Final = 500
UNREAD_MS_MAX: Final = 300_000
"""As long as clients keep metadata (`metadata.max.age.ms`)."""
THREADS: Final = 16
"""So many topics are opened at a time."""
LATE_MS_MAX: Final = 500
"""So long fetches are answered with what is known while a topic is looked at again."""
RETRY_MS: Final = 1_000
"""After what did not work it is tried again so much later, so that clients do not make a store busy that fails."""
LOADING_S_MAX: Final = 10.0
"""So long a topic that another thread loads is waited for, by who cannot be answered without it."""


Partition = tuple[str, int]
Log = TieredLog | LogError | None
"""As it was found, None if it was not."""


@dataclass(frozen=True, slots=True)
class HostedTopic:
    """A topic's partitions by number; one that cannot be opened is the error."""

    name: str
    id: str
    partitions: Mapping[int, TieredLog | LogError]
    loaded_ms: int
    looked_ms: int
    """When the local logs were last looked at."""
    described: dict[tuple[int, int], tuple[object, Written]] = field(default_factory=dict, compare=False, repr=False)
    """How Metadata describes the topic, by version, with what the description depends on besides the topic."""


@dataclass(slots=True)
class HostedLogs:
    """All topics of `tiers`."""

    tiers: Tiers
    clock: Time
    archive_ms_max: int = ARCHIVE_MS_MAX
    local_ms_max: int = LOCAL_MS_MAX
    unread_ms_max: int = UNREAD_MS_MAX
    background: Executor | None = None
    """Opens topics anew that only were listed; without it, who lists them does."""
    report: Callable[[str], object] = lambda _: None
    is_closed: bool = False
    """Whether topics are opened in the background no more."""
    _names: tuple[str, ...] = ()
    _known_names: frozenset[str] = frozenset()
    _listed_ms: int | None = None
    _topics: dict[str, HostedTopic] = field(default_factory=dict)
    _name_of: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _listing: threading.Lock = field(default_factory=threading.Lock)
    _absent: dict[str, int] = field(default_factory=dict)
    """When topics were looked for that have a name in the archive and no partition."""
    _looked_soon: set[str] = field(default_factory=set)
    """Topics that are looked at in the background, now or soon."""
    _ids: TopicIds = field(default_factory=TopicIds)
    _refreshing: threading.Lock = field(default_factory=threading.Lock)
    _loading: defaultdict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))

    def __post_init__(self) -> None:
        log_dir = self.tiers.log_dir
        if log_dir is not None:
            self.tiers = replace(self.tiers, log_dir=RecentLogDir(log_dir.disk, log_dir.path, clock=self.clock))

    def names(self) -> tuple[str, ...]:
        """The names of all topics, as they were last listed if they cannot be now. Raises LogError if they never were.

        The controllers' log is none: a broker has it, and no clients.
        """
        now_ms, listed_ms = self.clock.hi_res_clock_ms(), self._listed_ms
        if listed_ms is not None and now_ms - listed_ms < self.archive_ms_max:
            return self._names
        if not self._listing.acquire(blocking=listed_ms is None):
            return self._names  # another thread lists them
        try:
            self._names = tuple(name for name in self.tiers.topics() if name != CLUSTER_METADATA_TOPIC)
            self._known_names = frozenset(self._names)
            self._listed_ms = now_ms
            with self._lock:
                for name in self._topics.keys() - self._known_names:
                    self._forget(name)
        except LogError as e:
            if self._listed_ms is None:
                raise
            self._listed_ms = now_ms - self.archive_ms_max + RETRY_MS
            self.report(f"topics are served as they were listed before: {e}")
        finally:
            self._listing.release()
        return self._names

    def topic(self, name: str) -> HostedTopic | None:
        """A topic, None if there is none; as it was before if it cannot be looked at now. Raises LogError if it never was."""
        self.names()
        if name not in self._known_names:
            return None
        known = self._topics.get(name)
        with self._loads(name, wait=known is None) as is_mine:
            return self._fresh(name, self.clock.hi_res_clock_ms()) if is_mine else known  # another thread looks at it

    def directories(self) -> tuple[tuple[str, Disk | None], ...]:
        """Where the logs are: the log directory, or the archive where there is none, which is on no disk."""
        tiers = self.tiers
        if tiers.log_dir is not None:
            return ((tiers.log_dir.path, tiers.log_dir.disk),)
        return () if tiers.store is None else ((tiers.store.url, None),)

    def watch(self, seen: Mapping[Partition, Log], wake: Callable[[], object], least_bytes: Callable[[], int]) -> None:
        """Nobody tells when a log changes: they have to be looked at."""

    def close(self) -> None:
        """See `is_closed`."""
        self.is_closed = True

    def known(self) -> Mapping[str, HostedTopic]:
        """The topics that were opened, as they were last seen."""
        return self._topics

    def at_hand(self, name: str) -> HostedTopic | None:
        """A topic if `topic` would give it at once, as it is known; None if something has to be looked at, or there is none."""
        known = self._topics.get(name)
        return None if known is None or self._late_ms(known) >= 0 else known

    def recent(self, name: str) -> HostedTopic | None:
        """As `at_hand`, and for LATE_MS_MAX longer, while the topic is looked at in the background.

        Else all who fetch of a topic had to wait for a thread whenever the time for a look has come.
        """
        known = self._topics.get(name)
        late_ms = LATE_MS_MAX if known is None else self._late_ms(known)
        if late_ms >= 0:
            if late_ms >= LATE_MS_MAX or self.background is None or self.is_closed:
                return None
            self.open_soon(name)
        return known

    def open_soon(self, name: str) -> None:
        """See Logs."""
        if self.background is not None and not self.is_closed and name not in self._looked_soon:
            self._looked_soon.add(name)
            self.background.submit(self._look_soon, name)

    def _look_soon(self, name: str) -> None:
        try:
            with suppress(LogError):  # whoever has to wait for it is told
                self.topic(name)
        finally:
            self._looked_soon.discard(name)

    def _late_ms(self, known: HostedTopic) -> int:
        """Since when the topic should have been looked at again; below 0 before that."""
        now_ms, listed_ms = self.clock.hi_res_clock_ms(), self._listed_ms
        if listed_ms is None:
            return now_ms
        late_ms = now_ms - min(listed_ms, known.loaded_ms) - self.archive_ms_max
        return late_ms if self.tiers.log_dir is None else max(late_ms, now_ms - known.looked_ms - self.local_ms_max)

    def everything(self) -> dict[str, HostedTopic | LogError]:
        """All topics by name, in order; why it cannot be opened in the place of one that never was. Raises LogError."""
        names, now_ms = self.names(), self.clock.hi_res_clock_ms()
        with self._lock:
            found: dict[str, HostedTopic | LogError | None] = {name: self._topics.get(name) for name in names}
            absent = {name for name, at_ms in self._absent.items() if now_ms - at_ms < self.archive_ms_max}
        found |= self._opened(name for name, topic in found.items() if topic is None and name not in absent)
        old = [n for n, t in found.items() if isinstance(t, HostedTopic) and now_ms - t.loaded_ms >= self.unread_ms_max]
        if old and self.background is not None and self._refreshing.acquire(blocking=False):
            self.background.submit(self._refresh, old)
        elif old and self.background is None:
            found |= self._opened(old)
        return {name: topic for name, topic in found.items() if topic is not None}

    def _opened(self, names: Iterable[str]) -> dict[str, HostedTopic | LogError | None]:
        """Topics as `topic` finds them, several at a time."""

        def opened(name: str) -> tuple[str, HostedTopic | LogError | None]:
            try:
                return name, None if self.is_closed else self.topic(name)
            except LogError as e:
                return name, e

        jobs = list(names)
        with in_order(opened, jobs, min(len(jobs), THREADS) or 1) as each:
            return dict(each)

    def _refresh(self, names: Iterable[str]) -> None:
        try:
            self._opened(names)
        finally:
            self._refreshing.release()

    def name_of(self, topic_id: str) -> str | None:
        """The name of the topic with this id, if the topic was opened before."""
        with self._lock:
            return self._name_of.get(topic_id)

    def topic_by_id(self, topic_id: str) -> HostedTopic | None:
        """The topic with this id, None if there is none. Raises LogError."""
        self.open_by_id([topic_id])
        name = self.name_of(topic_id)
        found = None if name is None else self.topic(name)
        return found if found is not None and found.id == topic_id else None

    def open_by_id(self, topic_ids: Iterable[str]) -> None:
        """Opens the topics with these ids, so that `name_of` knows them, as far as there are any, and they can be opened."""
        for topic_id in topic_ids:
            if self.name_of(topic_id) is None and topic_id != ZERO_TOPIC_ID:
                with suppress(LogError):
                    name = self._ids.name_of(topic_id, self.tiers, self.names(), self._listed_ms)
                    if name is not None:
                        self.topic(name)

    def outdated(self, name: str) -> None:
        """Has the topic loaded anew as soon as RETRY_MS are over since it was: something was not there."""
        with self._lock:
            known, fresh_ms = self._topics.get(name), self.archive_ms_max - RETRY_MS
            if known is not None and self.clock.hi_res_clock_ms() - known.loaded_ms < fresh_ms:
                self._topics[name] = replace(known, loaded_ms=known.loaded_ms - fresh_ms)

    def reloaded(self, name: str, since_ms: int) -> HostedTopic | None:
        """The topic as the archive has it at `since_ms` or later: loaded anew unless it was since. Raises LogError."""
        with self._loads(name, wait=True):
            known = self._topics.get(name)
            is_fresh = known is not None and known.loaded_ms >= since_ms
            return known if is_fresh else self._loaded(name, self.clock.hi_res_clock_ms())

    @contextmanager
    def _loads(self, name: str, *, wait: bool) -> Iterator[bool]:
        """For the one thread that loads a topic. Another one waits for it, but not for ever, or is given False.

        Raises Unavailable if it waits for too long.
        """
        with self._lock:
            loading = self._loading[name]
        if not loading.acquire(blocking=wait, timeout=LOADING_S_MAX if wait else -1):
            if wait:
                raise Unavailable(f"topic {name} is not loaded within {LOADING_S_MAX:g} s; ask again, if the store answers")
            yield False
            return
        try:
            yield True
        finally:
            loading.release()

    def _fresh(self, name: str, now_ms: int) -> HostedTopic | None:
        with self._lock:
            known = self._topics.get(name)
        if known is None:
            return self._loaded(name, now_ms)
        try:
            is_old = now_ms - known.loaded_ms >= self.archive_ms_max
            return self._loaded(name, now_ms) if is_old else self._looked(known, now_ms)
        except LogError as e:
            self.report(f"topic {name} is served as it was before: {e}")
            retried_ms = now_ms - self.archive_ms_max + RETRY_MS
            known = replace(known, loaded_ms=max(known.loaded_ms, retried_ms), looked_ms=now_ms)
            with self._lock:
                self._topics[name] = known
            return known

    def _loaded(self, name: str, now_ms: int) -> HostedTopic | None:
        try:
            partitions = self.tiers.found(name)
        except NotFound:
            with self._lock:
                self._forget(name)
                self._absent[name] = now_ms
            return None
        _require_all_segments(log.local for log in partitions.values() if isinstance(log, TieredLog))
        before = self._topics.get(name)
        if before is not None:
            partitions = {n: _unless_older(log, before.partitions.get(n)) for n, log in partitions.items()}
        topic = HostedTopic(name, _id_of(partitions), partitions, now_ms, now_ms)
        with self._lock:
            self._forget(name)
            self._topics[name] = topic
            self._absent.pop(name, None)
            if topic.id != ZERO_TOPIC_ID:
                self._name_of[topic.id] = name
        return topic

    def _forget(self, name: str) -> None:
        """Of the topic as it was, whose id may be another one now."""
        known = self._topics.pop(name, None)
        if known is not None:
            self._name_of.pop(known.id, None)

    def _looked(self, known: HostedTopic, now_ms: int) -> HostedTopic | None:
        """The topic with its local logs as they are now."""
        if self.tiers.log_dir is None or now_ms - known.looked_ms < self.local_ms_max:
            return known
        numbers = [n for n, log in known.partitions.items() if isinstance(log, TieredLog) and log.local is not None]
        found = self.tiers.log_dir.found_of(TopicPartition(known.name, n) for n in numbers)
        _require_all_segments(found)
        local = {log.partition.partition: log for log in found if isinstance(log, LogReader)}
        if local.keys() != set(numbers):
            return self._loaded(known.name, now_ms)
        partitions = dict(known.partitions)
        for number, log in local.items():
            before = partitions[number]
            assert isinstance(before, TieredLog)
            assert isinstance(before.local, LogReader)
            if log.topic_id != before.local.topic_id or _has_dropped_more(log, before):
                return self._loaded(known.name, now_ms)
            partitions[number] = _unless_older(TieredLog(log, before.archived), before)
        topic = HostedTopic(known.name, known.id, partitions, known.loaded_ms, now_ms)
        with self._lock:
            self._topics[known.name] = topic
        return topic


def _require_all_segments(logs: Iterable[object]) -> None:
    for log in logs:
        if isinstance(log, LogReader):
            log.require_all_segments()


def _has_dropped_more(log: LogReader, before: TieredLog) -> bool:
    """Whether a local log begins after the end of what is known to be archived."""
    return before.archived is not None and log.log_start_offset > before.archived.end_offset


def _unless_older(log: TieredLog | LogError, before: TieredLog | LogError | None) -> TieredLog | LogError:
    """`before` if nothing has changed since, so that what was computed of it need not be again."""
    if isinstance(log, TieredLog) and isinstance(before, TieredLog) and _state(log) == _state(before):
        return before
    return log


def _state(log: TieredLog) -> tuple[object, ...]:
    local, archived = log.local, log.archived
    of_archive = None if archived is None else (archived.manifest.topic_id, archived.manifest.version)
    if not isinstance(local, LogReader):
        return (of_archive, local)
    bases = tuple(segment.base_offset for segment in local.segments)
    return (of_archive, local.topic_id, local.checkpointed_start, local.checkpointed_high_watermark, bases)


def _id_of(partitions: Mapping[int, TieredLog | LogError]) -> str:
    """The topic's id, zeros if no partition says it."""
    for log in partitions.values():
        if isinstance(log, TieredLog):
            if isinstance(log.local, LogReader) and log.local.topic_id != ZERO_TOPIC_ID:
                return log.local.topic_id
            if log.archived is not None:
                return log.archived.manifest.topic_id
    return ZERO_TOPIC_ID
