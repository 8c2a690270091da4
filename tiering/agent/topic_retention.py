"""How long a topic's brokers keep it: by their own metadata, else by the configuration, which may have a broker's settings.

Where neither says anything, nothing is known.
"""

from collections.abc import Callable
from contextlib import suppress

from local_log.errors import LogError
from tiering.cluster import Cluster
from tiering.config.config import Config
from tiering.lag.unprotected import TopicRetention

Known = Callable[[str], TopicRetention | None]
"""The retention of a topic's local log by its name, None where nobody has said."""


def known_retention(config: Config, cluster: Cluster) -> Known:
    """By what the brokers' metadata says of a topic; what it does not say, or cannot be read there, by the configuration."""
    configured = configured_retention(config)

    def of(topic: str) -> TopicRetention | None:
        told, given = None, configured(topic)
        with suppress(LogError):
            told = cluster.newest_retention(topic)
        if told is None:
            return given
        if not told.deletes:
            return TopicRetention(None, None)
        if told.retention_ms is None and told.retention_bytes is None:
            return given
        ms, size = (given.ms, given.bytes) if given is not None else (None, None)
        ms = ms if told.retention_ms is None else _at_least_0(told.retention_ms)
        return TopicRetention(ms, size if told.retention_bytes is None else _at_least_0(told.retention_bytes))

    return of


def configured_retention(config: Config) -> Known:
    """By local.retention.ms and .bytes where they are given, else by retention.ms and .bytes."""

    def of(topic: str) -> TopicRetention | None:
        if "delete" not in config.of(topic, "cleanup.policy"):
            return TopicRetention(None, None)
        ms, size = (_limit(config, topic, unit) for unit in ("ms", "bytes"))
        return None if ms is None and size is None else TopicRetention(_at_least_0(ms), _at_least_0(size))

    return of


def _limit(config: Config, topic: str, unit: str) -> int | None:
    """A limit, -1 for none; None where it is not given."""
    for name in (f"local.retention.{unit}", f"retention.{unit}"):
        if config.given(topic, name) is not None and (value := int(config.of(topic, name))) != -2:
            return value
    return None


def _at_least_0(limit: int | None) -> int | None:
    return limit if limit is not None and limit >= 0 else None
