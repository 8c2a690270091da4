"""The retention of a topic on its brokers: from their metadata, else from the configuration, which may have a broker's settings.

If neither has it, it is unknown.
"""

from collections.abc import Callable
from contextlib import suppress

from local_log.errors import LogError
from tiering.cluster import Cluster
from tiering.config.config import Config
from tiering.lag.unprotected import TopicRetention

Known = Callable[[str], TopicRetention | None]
"""The retention of a topic's local log by its name, None if it is unknown."""


def known_retention(config: Config, cluster: Cluster) -> Known:
    """From the brokers' metadata; values that it does not have, or that cannot be read, from the configuration."""
    configured = configured_retention(config)

    def of(topic: str) -> TopicRetention | None:
        known, given = None, configured(topic)
        with suppress(LogError):
            known = cluster.newest_retention(topic)
        if known is None:
            return given
        if not known.deletes:
            return TopicRetention(None, None)
        if known.retention_ms is None and known.retention_bytes is None:
            return given
        ms, size = (given.ms, given.bytes) if given is not None else (None, None)
        ms = ms if known.retention_ms is None else _at_least_0(known.retention_ms)
        return TopicRetention(ms, size if known.retention_bytes is None else _at_least_0(known.retention_bytes))

    return of


def configured_retention(config: Config) -> Known:
    """From local.retention.ms and .bytes if given, else from retention.ms and .bytes."""

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
