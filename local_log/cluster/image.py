"""The topics of a KRaft cluster as an immutable value: ids, settings, leaders. Pure; `cluster.metadata` builds it from files.

    topic = image.topic("orders", topic_id)          None if no topic of this name has this id
    image.settings(topic)                            the settings in effect, by the names of topic settings
    image.settings(topic).get("retention.ms")        None if it is not set in the metadata: server.properties applies then
    topic.leaders[0]                                 the id of the broker that leads partition 0, -1 for none

A topic's own settings override the broker's dynamic ones, and a broker's own override those for all brokers
(DynamicBrokerConfig). Settings that are only in a broker's server.properties are not in the metadata. Of a broker's settings
only `log.…` are kept, since others may be secrets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from local_log.errors import Corrupt
from local_log.formats.metadata_records import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    ConfigSet,
    LeaderNamed,
    MetadataRecord,
    TopicMade,
    TopicRemoved,
    TransactionMark,
)

CLEANUP_POLICY: Final = "cleanup.policy"
_OF_LOGS: Final = "log."
_SYNONYMS: Final[Mapping[str, str]] = {
    "log.cleanup.policy": CLEANUP_POLICY,
    "log.retention.ms": "retention.ms",
    "log.retention.bytes": "retention.bytes",
    "log.local.retention.ms": "local.retention.ms",
    "log.local.retention.bytes": "local.retention.bytes",
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "log.segment.bytes": "segment.bytes",
    "log.roll.ms": "segment.ms",
}
"""Topic setting by broker setting (ServerTopicConfigSynonyms), for those that can change while the broker runs."""


@dataclass(frozen=True, slots=True)
class ClusterTopic:
    """A topic: its own settings, and the id of each partition's leader (-1 for none)."""

    name: str
    topic_id: str
    configs: Mapping[str, str]
    leaders: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class ClusterImage:
    """The topics at `end_offset` of the metadata log, the log settings for all brokers, and those of single brokers by id."""

    end_offset: int
    topics: Mapping[str, ClusterTopic]
    broker_defaults: Mapping[str, str]
    brokers: Mapping[str, Mapping[str, str]]

    def topic(self, name: str, topic_id: str) -> ClusterTopic | None:
        """The topic of this name and id. None if it was deleted, or if the name belongs to another topic now."""
        found = self.topics.get(name)
        return found if found is not None and found.topic_id == topic_id else None

    def settings(self, topic: ClusterTopic, broker: str = "") -> dict[str, str]:
        """The settings in effect for a topic on the broker with this id, by the names of topic settings."""
        of_brokers = {**self.broker_defaults, **self.brokers.get(broker, {})}
        known = {_SYNONYMS[theirs]: value for theirs, value in of_brokers.items() if theirs in _SYNONYMS}
        return known | dict(topic.configs)


@dataclass(slots=True)
class ImageBuilder:
    """Builds the image from records in log order. The records of a transaction apply when it ends."""

    _names: dict[str, str] = field(default_factory=dict)
    _leaders: dict[str, dict[int, int]] = field(default_factory=dict)
    _configs: dict[str, dict[str, str]] = field(default_factory=dict)
    _brokers: dict[str, dict[str, str]] = field(default_factory=dict)
    _in_transaction: list[MetadataRecord] | None = None

    def replay(self, record: MetadataRecord) -> None:
        """Applies one record. Raises Corrupt if it refers to an unknown topic."""
        if isinstance(record, TransactionMark):
            ended = self._in_transaction if record is TransactionMark.end else None
            self._in_transaction = [] if record is TransactionMark.begin else None
            self._apply(ended or ())
        elif self._in_transaction is not None:
            self._in_transaction.append(record)
        else:
            self._apply((record,))

    def image(self, end_offset: int) -> ClusterImage:
        """The image so far, without the records of an open transaction."""
        topics = (
            ClusterTopic(name, topic_id, dict(self._configs.get(name, {})), dict(self._leaders[topic_id]))
            for topic_id, name in self._names.items()
        )
        brokers = {name: dict(configs) for name, configs in self._brokers.items()}
        defaults = brokers.pop("", {})
        return ClusterImage(end_offset, {topic.name: topic for topic in topics}, defaults, brokers)

    def _apply(self, records: Iterable[MetadataRecord]) -> None:
        for record in records:
            match record:
                case TopicMade(name, topic_id):
                    self._names[topic_id] = name
                    self._leaders[topic_id] = {}
                case TopicRemoved(topic_id):
                    self._configs.pop(self._known(topic_id), None)
                    del self._names[topic_id], self._leaders[topic_id]
                case LeaderNamed(topic_id, partition, leader):
                    self._known(topic_id)
                    self._leaders[topic_id][partition] = leader
                case ConfigSet():
                    self._configure(record)

    def _known(self, topic_id: str) -> str:
        if topic_id not in self._names:
            raise Corrupt(f"a metadata record of topic id {topic_id}, which no record before it has made")
        return self._names[topic_id]

    def _configure(self, record: ConfigSet) -> None:
        if record.resource_type == TOPIC_RESOURCE:
            configs = self._configs.setdefault(record.resource, {})
        elif record.resource_type == BROKER_RESOURCE and record.name.startswith(_OF_LOGS):
            configs = self._brokers.setdefault(record.resource, {})
        else:
            return
        if record.value is None:
            configs.pop(record.name, None)
        else:
            configs[record.name] = record.value
