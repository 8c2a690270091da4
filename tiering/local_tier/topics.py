"""What topics may be and become. Pure."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final

from local_log.cluster.image import CLEANUP_POLICY
from local_log.engine.config import FIELDS, LogConfig, read_config
from local_log.errors import Invalid
from local_log.formats.filenames import CLUSTER_METADATA_TOPIC, TOPIC_NAME_CHARACTERS_MAX, is_topic_name
from tiering.local_tier.errors import InvalidPartitions, InvalidTopic, InvalidTopicConfig, TopicExists
from tiering.local_tier.topics_file import Topic
from tiering.retention.policy import NAMES as _OF_RETENTION

PARTITIONS_MAX: Final = 10_000
"""As many as one request may create in Kafka."""
TIERED: Final = "remote.storage.enable"
OF_REPLICAS: Final[Mapping[str, str]] = {
    "follower.replication.throttled.replicas": "",
    "leader.replication.throttled.replicas": "",
    "min.insync.replicas": "1",
    "unclean.leader.election.enable": "false",
}
"""Settings of a topic's replicas, with Kafka's defaults. They are kept, and mean nothing: there is one replica."""


def check_name(name: str, topics: Iterable[str]) -> None:
    """Raises InvalidTopic, TopicExists. Names that differ only by . and _ collide, since metrics cannot tell them apart."""
    if not is_topic_name(name):
        raise InvalidTopic(
            f"{name!r}: no name of a topic; expected 1 to {TOPIC_NAME_CHARACTERS_MAX} letters, digits, '.', '_' and '-', "
            "and neither '.' nor '..'"
        )
    if name == CLUSTER_METADATA_TOPIC:
        raise InvalidTopic(f"{name}: controllers keep the cluster's metadata under this name; choose another one")
    for other in topics:
        if other == name:
            raise TopicExists(f"topic {name} exists; choose another name, or delete it first")
        if other.replace(".", "_") == name.replace(".", "_"):
            raise InvalidTopic(f"topic {name} collides with {other}: '.' and '_' count as the same; choose another name")


def more_partitions(name: str, topic: Topic | None, count: int) -> tuple[int, ...]:
    """The partitions of a topic that is new, gets more of them, or is to get those that failed. Raises InvalidPartitions."""
    had = topic.partitions if topic is not None else ()
    before = had[-1] + 1 if had else 0
    if topic is not None and topic.being_made and count == before:
        return had
    if not before < count <= PARTITIONS_MAX:
        raise InvalidPartitions(f"topic {name}: {count} partitions; expected {before + 1} to {PARTITIONS_MAX}")
    return (*had, *range(before, count))


def config_of(name: str, defaults: Mapping[str, str], own: Mapping[str, str]) -> LogConfig:
    """The settings of a topic's logs: its own, else the defaults. Raises InvalidTopicConfig.

    The engine keeps the whole local log of a compacted topic, as Kafka does, which tiers none of these.
    """
    given = {name: text for name, text in {**defaults, **own}.items() if name not in OF_REPLICAS}
    replicas = own.get("min.insync.replicas", "1").strip()
    if replicas != "1":
        raise InvalidTopicConfig(f"topic {name}: min.insync.replicas={replicas}: expected 1, since there is one replica")
    if "compact" in given.get(CLEANUP_POLICY, "") and TIERED not in own:
        given[TIERED] = "false"
    try:
        return read_config(given)
    except Invalid as e:
        raise InvalidTopicConfig(f"topic {name}: {e}") from e


def taken_over(settings: Mapping[str, str]) -> dict[str, str]:
    """The settings of a broker's topic that its logs keep here. What is kept how long is for our own configuration to say."""
    own: dict[str, str] = {}
    for name, text in settings.items():
        if name in FIELDS and (name == CLEANUP_POLICY or name not in _OF_RETENTION) and not name.startswith("remote."):
            with suppress(Invalid):  # of a newer broker
                read_config({name: text})
                own[name] = text
    return own
