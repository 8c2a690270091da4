"""How long a topic's brokers keep it, as far as the configuration says: its own settings, else the broker's that it was given.

Where a configuration says nothing, nothing is known: a topic may have settings of its own that only its brokers know.
"""

from collections.abc import Callable

from tiering.config.config import Config
from tiering.unprotected import TopicRetention

Known = Callable[[str], TopicRetention | None]
"""The retention of a topic's local log by its name, None where nobody has said."""


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
