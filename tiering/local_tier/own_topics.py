"""What log directories of ours say of their topics, where a broker's have the metadata of its cluster."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from local_log.engine.manager.retention import is_copied
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.cluster import BrokerRetention, Cluster
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.topics import TIERED
from tiering.retention.policy import NAMES, Given

_NO_LIMIT = -1


@dataclass(frozen=True, slots=True)
class OwnTopics(Cluster):
    """The topics of `tier`. Metadata that a broker has left in an adopted directory does not count."""

    tier: LocalTier = field(kw_only=True)

    def retention(self, topic: str, topic_id: str) -> BrokerRetention | None:
        """What is kept of the topic of this id; None if it is not there."""
        known = self.tier.topics().get(topic)
        return self.newest_retention(topic) if known and (known.topic_id or ZERO_TOPIC_ID) == topic_id else None

    def newest_retention(self, topic: str) -> BrokerRetention | None:
        """The same of the topic that has this name now. A tiered log loses nothing before it is archived."""
        if topic not in self.tier.topics():
            return None
        config = self.tier.config(topic)
        if is_copied(config):
            return BrokerRetention(config.cleanup_policy, _NO_LIMIT, _NO_LIMIT)
        return BrokerRetention(config.cleanup_policy, config.retention_ms, config.retention_bytes)

    def copies(self, topic: str) -> bool:
        """Whether the topic's own settings let its segments be copied. A compacted topic's are, although it is not tiered."""
        known = self.tier.topics().get(topic)
        own = known.config if known is not None else {}
        is_on, is_off = own.get(TIERED, "true"), own.get("remote.log.copy.disable", "false")
        return is_on.lower() == "true" and is_off.lower() == "false"

    def given(self) -> Iterator[Given]:
        """The settings of retention that topics have of their own, which apply to the archive, too."""
        for name, topic in self.tier.topics().items():
            yield from (Given(name, setting, text) for setting, text in topic.config.items() if setting in NAMES)
