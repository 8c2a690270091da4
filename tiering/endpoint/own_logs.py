"""The topics of log directories that this process owns, as they are at the moment: what is appended can be fetched at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from local_log.disk import Disk
from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.hosted_logs import HostedTopic, Log, Partition
from tiering.endpoint.own_log_watch import Watch
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.reads import TierReads
from tiering.local_tier.topics_file import Topic
from tiering.read.own_log import OwnLog


class OwnPartitions(Mapping[int, Any]):
    """A topic's partitions by number, each as it is when it is looked up; one that cannot be read is the error."""

    __slots__ = ("_logs", "_name", "_numbers", "_reads")

    def __init__(self, reads: TierReads, name: str, numbers: tuple[int, ...]) -> None:
        self._reads = reads
        self._name, self._numbers = name, {number: TopicPartition(name, number) for number in numbers}
        self._logs: dict[int, OwnLog] = {}

    def __getitem__(self, number: int) -> OwnLog | LogError:
        """A log that has not changed since is the same object."""
        partition = self._numbers[number]
        try:
            live = self._reads.log(partition)
        except LogError as e:
            return e
        known = self._logs.get(number)
        if known is None or known.live is not live or known.now != live.log.offsets:
            known = self._logs[number] = OwnLog.of(live)
        return known

    def __contains__(self, number: object) -> bool:
        return number in self._numbers

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class _View(NamedTuple):
    """The topics of one moment; `of` is the mapping that they were made of, and `offline` are the directories that had failed."""

    of: Mapping[str, Topic]
    offline: tuple[LogError, ...]
    topics: dict[str, HostedTopic]
    name_of: dict[str, str]


_NOTHING: Final = _View({}, (), {}, {})


@dataclass(slots=True)
class OwnLogs:
    """All topics of `reads`; `disk` is where its directories are."""

    reads: TierReads
    disk: Disk
    _view: _View = field(default=_NOTHING)

    @property
    def tier(self) -> LocalTier:
        """The log directories."""
        return self.reads.tier

    def names(self) -> tuple[str, ...]:
        """See Logs."""
        return tuple(self._look().topics)

    def topic(self, name: str) -> HostedTopic | None:
        """See Logs."""
        return self._look().topics.get(name)

    at_hand = recent = topic

    def open_soon(self, name: str) -> None:
        """See Logs: they are as they are."""

    def known(self) -> Mapping[str, HostedTopic]:
        """See Logs: all."""
        return self._look().topics

    def everything(self) -> dict[str, HostedTopic | LogError]:
        """See Logs."""
        return {**self._look().topics}

    def name_of(self, topic_id: str) -> str | None:
        """See Logs."""
        return self._look().name_of.get(topic_id)

    def topic_by_id(self, topic_id: str) -> HostedTopic | None:
        """See Logs."""
        view = self._look()
        return view.topics.get(view.name_of.get(topic_id, ""))

    def open_by_id(self, topic_ids: Iterable[str]) -> None:
        """See Logs: all are open."""

    def outdated(self, name: str) -> None:
        """See Logs."""
        topic = self.topic(name)
        for number in () if topic is None else topic.partitions:
            self.reads.committed(TopicPartition(name, number))

    def reloaded(self, name: str, since_ms: int) -> HostedTopic | None:
        """See Logs: there is no other broker."""
        return self.topic(name)

    def watch(
        self, seen: Mapping[Partition, Log], wake: Callable[[], object], least_bytes: Callable[[], int]
    ) -> Callable[[], object]:
        """See Logs. `wake` may neither wait nor raise: it is called by the thread that appends."""
        return Watch([log for log in seen.values() if isinstance(log, OwnLog)], wake, least_bytes()).cancel

    def directories(self) -> tuple[tuple[str, Disk | None], ...]:
        """See Logs."""
        return tuple((path, self.disk) for path in self.tier.directories)

    def close(self) -> None:
        """See Logs."""
        self.reads.close()

    def _look(self) -> _View:
        topics, offline, view = self.tier.topics(), self.tier.offline, self._view
        if view.of is not topics or view.offline != offline:
            before = view if view.offline == offline else _NOTHING
            found = {name: self._hosted(name, topic, before) for name, topic in sorted(topics.items())}
            view = _View(topics, offline, found, {one.id: name for name, one in found.items() if one.id != ZERO_TOPIC_ID})
            self._forget_deleted(self._view, view)
            self._view = view
        return view

    def _forget_deleted(self, before: _View, now: _View) -> None:
        for topic_id, name in before.name_of.items():
            if topic_id not in now.name_of:
                self.reads.forget(TopicPartition(name, number) for number in before.topics[name].partitions)

    def _hosted(self, name: str, topic: Topic, before: _View) -> HostedTopic:
        """The topic, the same object if its partitions are the same."""
        if before.of.get(name) is topic:
            return before.topics[name]
        topic_id, known = topic.topic_id or ZERO_TOPIC_ID, before.topics.get(name)
        if known is not None and (known.id, tuple(known.partitions)) == (topic_id, topic.partitions):
            return known
        return HostedTopic(name, topic_id, OwnPartitions(self.reads, name, topic.partitions), 0, 0)
