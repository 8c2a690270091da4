"""What the brokers themselves say of topics, by the metadata that lies in their log directories.

cluster = Cluster((log_dir("/var/lib/kafka"),), clock)
kept = cluster.retention("orders", topic_id)     None where no metadata lies there, or it knows no such topic
kept.retention_ms, kept.deletes                  what the brokers will delete, and whether they delete by that at all
kept.leaders.get(0)                              the broker that leads partition 0, -1 for none
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from local_log.cluster.image import CLEANUP_POLICY, ClusterImage, ClusterTopic
from local_log.cluster.metadata import read_cluster_image
from local_log.engine.config import read_config
from local_log.log_dir import LogDir
from remote.clock import Clock

IMAGE_AGE_MAX_MS: Final = 60_000
_LIMITS: Final = ("retention.ms", "retention.bytes")
_TIERED: Final = "remote.storage.enable"
_LIKE_RETENTION: Final = "-2"


@dataclass(frozen=True, slots=True)
class BrokerRetention:
    """What its brokers keep of a topic's local log, -1 for no limit; None for what only their server.properties say."""

    cleanup_policy: tuple[str, ...] | None
    retention_ms: int | None
    retention_bytes: int | None
    leaders: Mapping[int, int] = field(default_factory=dict)

    @property
    def deletes(self) -> bool:
        """Whether brokers delete by retention.ms and retention.bytes: of a topic that they only compact they do not."""
        return self.cleanup_policy is None or "delete" in self.cleanup_policy


@dataclass(frozen=True, slots=True)
class Cluster:
    """The clusters that these log directories are of. What was read is read again when it is older than `age_max_ms`."""

    dirs: tuple[LogDir, ...]
    clock: Clock
    age_max_ms: int = IMAGE_AGE_MAX_MS
    _known: dict[str, tuple[int, ClusterImage | None]] = field(default_factory=dict, init=False, repr=False, compare=False)

    def retention(self, topic: str, topic_id: str) -> BrokerRetention | None:
        """What the brokers keep of the topic of this id. Raises Corrupt, Unreadable, NotFound, Invalid."""
        for one, image in self._images():
            found = image.topic(topic, topic_id)
            if found is not None:
                return kept_of(found, image.settings(found, one.broker_id()))
        return None

    def newest_retention(self, topic: str) -> BrokerRetention | None:
        """The same of the topic that has this name now. Raises as `retention`."""
        for _, image in self._images():
            found = image.topics.get(topic)
            if found is not None:
                return self.retention(topic, found.topic_id)
        return None

    def _images(self) -> Iterator[tuple[LogDir, ClusterImage]]:
        """Each directory's image; those first that reach farthest."""
        images = [(one, image) for one in self.dirs if (image := self._image(one)) is not None]
        yield from sorted(images, key=lambda found: -found[1].end_offset)

    def _image(self, one: LogDir) -> ClusterImage | None:
        now_ms = self.clock.now_ms()
        read_ms, image = self._known.get(one.path, (None, None))
        if read_ms is None or not 0 <= now_ms - read_ms < self.age_max_ms:
            image = read_cluster_image(one.disk, one.path)
            self._known[one.path] = now_ms, image
        return image


def kept_of(topic: ClusterTopic, settings: Mapping[str, str]) -> BrokerRetention:
    """What brokers keep of a topic by all that is set of it.

    Of one with Kafka's own tiered storage the local limits count, unless they are as those of both tiers. Raises Invalid.
    """
    given = {name: settings[name] for name in (CLEANUP_POLICY, *_LIMITS) if name in settings}
    if settings.get(_TIERED) == "true":
        local = {name: settings.get(f"local.{name}", _LIKE_RETENTION) for name in _LIMITS}
        given |= {name: text for name, text in local.items() if text != _LIKE_RETENTION}
    config = read_config(given)
    return BrokerRetention(
        config.cleanup_policy if CLEANUP_POLICY in given else None,
        config.retention_ms if "retention.ms" in given else None,
        config.retention_bytes if "retention.bytes" in given else None,
        topic.leaders,
    )
