"""Which offsets of which partitions a read is of: from the options and the manifests, and from indexes where it is by time."""

import re
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from local_log.errors import NotFound, OffsetOutOfRange, listed
from local_log.formats.list_offsets import TimestampOffset
from remote import archive
from remote.manifest.model import Manifest
from remote.parallel import in_order
from remote.read.context import ReadContext, decoder_with
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from spark_jobs.errors import OptionError
from spark_jobs.source.limits import EARLIEST, LATEST, Limit, Times
from spark_jobs.source.options import Assign, ReadOptions, Subscribe, refuse_foreign
from spark_jobs.source.pushdown import EVERYTHING, Pushdown
from spark_jobs.source.time_travel import time_travel

INTERNAL_TOPICS = frozenset(["__consumer_offsets", "__transaction_state", "__share_group_state"])
"""Kafka's own, which no pattern finds."""

NO_IDS: Mapping[str, str] = {}
"""For who asks for topics by their names alone."""

THREADS = 16
"""Each waits for a store that answers in some 10 ms: a topic of a thousand partitions is planned in seconds."""


AHEAD_MS = 86_400_000
"""How far ahead of the clock timestamps may be: intervals of time are late by no more than that."""


@dataclass(frozen=True, slots=True)
class Range:
    """The offsets `[start, end)` of one partition, none where `end` is not above `start`, as version `manifest` has them."""

    manifest: Manifest
    start: int
    end: int

    @property
    def name(self) -> str:
        """Topic and partition with a hyphen between, for messages."""
        return f"{self.manifest.topic}-{self.manifest.partition}"


class TimestampAhead(NotFound):
    """A record whose timestamp is far ahead of the clock, so that no interval of time before it has what is behind it."""

    def __init__(self, partition: str, offset: int, timestamp_ms: int) -> None:
        super().__init__(partition, offset, timestamp_ms)
        self.partition = partition
        self.offset = offset
        self.timestamp_ms = timestamp_ms

    def __str__(self) -> str:
        return (
            f"{self.partition}: the record at offset {self.offset} has the timestamp {self.timestamp_ms}, which is ahead of the "
            "clock; intervals of time end there, and would leave out all that is behind it: set offsets instead of an end time, "
            "or failOnDataLoss=false to read only what is before it"
        )


def resolve(store: ObjectStore, options: ReadOptions, pushdown: Pushdown = EVERYTHING) -> tuple[Range, ...]:
    """The range of every partition that is read and that the filters leave, in the order of topics and partitions.

    Raises NotFound, OffsetOutOfRange (unless failOnDataLoss is false), MissingRange, OptionError; Invalid for keys that cannot
    be had.
    """
    reading = ReadContext(decoder_with(options.keys))

    def ranged(manifest: Manifest) -> Range:
        return _range(ArchivedLog(store, manifest, reading=reading), options)

    with in_order(ranged, manifests(store, options, pushdown), THREADS) as found:
        return tuple(found)


def refuse_ends_ahead(store: ObjectStore, options: ReadOptions, ranges: Iterable[Range], now_ms: int) -> None:
    """Raises TimestampAhead if a range of an end time ends at a record that is far ahead of `now_ms`; allowed with data loss.

    A range ends at the first record at or after its end time, so what is behind that record is in no interval until one ends
    after its timestamp. No request is made where no segment has such a timestamp.
    """
    if not isinstance(options.ending, Times) or not options.fail_on_data_loss:
        return
    reading = ReadContext(decoder_with(options.keys))
    for r in ranges:
        log = ArchivedLog(store, r.manifest, reading=reading)
        found = log.offset_for_time(now_ms + AHEAD_MS, r.end, r.end + 1, fail_on_data_loss=False)
        if found is not None:
            raise TimestampAhead(r.name, found.offset, found.timestamp)


def manifests(store: ObjectStore, options: ReadOptions, pushdown: Pushdown = EVERYTHING) -> tuple[Manifest, ...]:
    """The manifests of the partitions that are read and that the filters leave: the newest, or those of a version or time.

    Raises NotFound for a topic or an assigned partition that is not there (unless failOnDataLoss is false: then what is
    assigned and not there is left out), OptionError.
    """
    archive.open_archive(store)
    strategy = options.strategy
    if isinstance(strategy, Assign):
        newest = _assigned(store, strategy.partitions, options, pushdown)
    elif isinstance(strategy, Subscribe):
        topics = [t for t in strategy.topics if pushdown.has_topic(t)]
        newest = each_topic(
            lambda t, threads: archive.require_partitions(store, chosen(store, t, options.topic_ids, threads)).manifests, topics
        )
    else:
        newest = _matching(store, strategy.pattern, options, pushdown)
    newest = [m for m in newest if pushdown.has_partition(m.partition)]
    with in_order(lambda m: time_travel(store, m, options, are_many=len(newest) > 1), newest, THREADS) as found:
        return tuple(m for m in found if m is not None)


def each_topic(ask: Callable[[str, int], Iterable[Manifest]], topics: Collection[str]) -> list[Manifest]:
    """What `ask` gives for each of the topics, by as many threads as it is to take for one, in their order."""
    at_once = min(len(topics), THREADS)
    with in_order(lambda topic: ask(topic, THREADS // at_once), topics, max(at_once, 1)) as found:
        return [manifest for of_topic in found for manifest in of_topic]


def _assigned(
    store: ObjectStore, assigned: Mapping[str, Iterable[int]], options: ReadOptions, pushdown: Pushdown
) -> list[Manifest]:
    topics = [t for t in assigned if pushdown.has_topic(t)]
    of_topics = each_topic(
        lambda t, threads: archive.require_partitions(store, chosen(store, t, options.topic_ids, threads)).manifests, topics
    )
    there = {(m.topic, m.partition): m for m in of_topics}
    found: list[Manifest] = []
    for topic, number in ((t, n) for t in topics for n in assigned[t]):
        if (topic, number) in there:
            found.append(there[topic, number])
        elif options.fail_on_data_loss:
            known = listed([str(n) for t, n in there if t == topic])
            raise NotFound(f"{topic}-{number} is assigned and not in the archive {store.url}; of {topic} there are: {known}")
    return found


def _matching(store: ObjectStore, pattern: str, options: ReadOptions, pushdown: Pushdown) -> list[Manifest]:
    """A topic that has no manifest yet is none: its folder is made before."""
    known, named = archive.topics(store), re.compile(pattern)
    names = [t for t in known if t not in INTERNAL_TOPICS and named.search(t)]
    if not names:
        raise NotFound(f"no topic in the archive {store.url} matches subscribePattern {pattern!r}; there are: {listed(known)}")
    _refuse_unread_topics(options, names)
    asked = [t for t in names if pushdown.has_topic(t)]

    def asked_for(topic: str, threads: int) -> archive.ArchivedTopic:
        found = chosen(store, topic, options.topic_ids, threads)
        return archive.require_partitions(store, found) if topic in options.topic_ids else found

    return each_topic(lambda t, threads: asked_for(t, threads).manifests, asked)


def chosen(store: ObjectStore, topic: str, topic_ids: Mapping[str, str], threads: int) -> archive.ArchivedTopic:
    """The topic of this name that is asked for; warns where there are several and `topic_ids` has none of them."""
    found = archive.find_topic(store, topic, topic_ids.get(topic), threads=threads)
    if found.warning is not None:
        warnings.warn(f"{found.warning} (option topicId)", stacklevel=2)
    return found


def _refuse_unread_topics(options: ReadOptions, topics: Iterable[str]) -> None:
    """Checks that offsets are given only for topics that match the pattern, once these are known. Raises OptionError."""
    for option, limit in (("startingOffsets", options.starting), ("endingOffsets", options.ending)):
        try:
            refuse_foreign(limit.by_partition, Subscribe(tuple(topics)))
        except ValueError as e:
            raise OptionError(f"option {option}: {e}") from e


def _range(log: ArchivedLog, options: ReadOptions) -> Range:
    start, end = _start(log, options), _end(log, options)
    found = Range(log.manifest, start, end)
    if not options.fail_on_data_loss:
        return Range(log.manifest, max(log.log_start_offset, min(start, log.end_offset)), end)
    if end > log.end_offset:
        raise OffsetOutOfRange(found.name, end, log.log_start_offset, log.end_offset)
    return found


def _start(log: ArchivedLog, options: ReadOptions) -> int:
    limit = options.starting
    if not isinstance(limit, Times):
        return _offset(log, limit, "startingOffsets")
    time_ms = limit.of(log.manifest.topic, log.manifest.partition, "startingOffsetsByTimestamp")
    found = _at_time(log, time_ms, options)
    if found is None and not options.latest_when_no_match:
        raise OptionError(
            f"startingTimestamp {time_ms}: {log.manifest.topic}-{log.manifest.partition} has no record at or after it; set "
            "startingOffsetsByTimestampStrategy to latest to read nothing of such a partition"
        )
    return found.offset if found else log.end_offset


def _end(log: ArchivedLog, options: ReadOptions) -> int:
    limit = options.ending
    if not isinstance(limit, Times):
        return _offset(log, limit, "endingOffsets")
    found = _at_time(log, limit.of(log.manifest.topic, log.manifest.partition, "endingOffsetsByTimestamp"), options)
    return found.offset if found else log.end_offset


def _at_time(log: ArchivedLog, timestamp_ms: int, options: ReadOptions) -> TimestampOffset | None:
    return log.offset_for_time(timestamp_ms, log.log_start_offset, log.end_offset, fail_on_data_loss=options.fail_on_data_loss)


def _offset(log: ArchivedLog, limit: Limit, option: str) -> int:
    offset = limit.of(log.manifest.topic, log.manifest.partition, option)
    if isinstance(offset, int):
        return offset
    return {EARLIEST: log.log_start_offset, LATEST: log.end_offset}[offset]
