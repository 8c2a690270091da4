"""The settings of topics in log directories of our own, as clients are told them (Kafka's ConfigDef of LogConfig)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from local_log.engine.config import FIELDS, LogConfig
from tiering.endpoint.apis.own_logs import config_with
from tiering.endpoint.config_def import ConfigType
from tiering.local_tier.broker_synonyms import BROKER_SYNONYMS
from tiering.local_tier.topics import OF_REPLICAS

if TYPE_CHECKING:
    from tiering.local_tier.local_tier import LocalTier

_HIDDEN: Final = frozenset({"internal.segment.bytes"})
_INTS: Final = frozenset(
    {
        *("segment.bytes", "segment.index.bytes", "index.interval.bytes", "max.message.bytes"),
        *("compression.gzip.level", "compression.lz4.level", "compression.zstd.level"),
    }
)
BROKER_NAMES: Final[Mapping[str, str]] = {of: name for name, (of, factor) in BROKER_SYNONYMS.items() if factor == 1}
"""What a broker calls a setting of topics that have none of their own; the others have one name."""
DYNAMIC_TOPIC, STATIC_BROKER, DEFAULT, DYNAMIC_GROUP = 1, 4, 5, 8
"""Kafka's ConfigSource."""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """A setting of a topic; `source` says who has set it, `defaults` are the sources below with their values, in order."""

    name: str
    value: str
    source: int
    type: ConfigType
    defaults: tuple[tuple[int, str], ...]


def topic_configs(name: str, own: Mapping[str, str], tier: "LocalTier") -> tuple[TopicConfig, ...]:
    """All settings of a topic that has these of its own, sorted by name. Raises InvalidTopicConfig."""
    set_here, config, without = tier.defaults(name), config_with(name, own, tier), LogConfig()
    found = []
    for setting, field in FIELDS.items():
        if setting in _HIDDEN and setting not in own:
            continue
        value, default = getattr(config, field), getattr(without, field)
        given = ((STATIC_BROKER, set_here[setting]),) if setting in set_here else ()
        source = DYNAMIC_TOPIC if setting in own else STATIC_BROKER if given else DEFAULT
        found.append(TopicConfig(setting, text_of(value), source, type_of(setting, value), (*given, (DEFAULT, text_of(default)))))
    return tuple(sorted((*found, *(_of_replicas(setting, own) for setting in OF_REPLICAS)), key=lambda one: one.name))


def _of_replicas(setting: str, own: Mapping[str, str]) -> TopicConfig:
    default = OF_REPLICAS[setting]
    types = {"1": ConfigType.INT, "false": ConfigType.BOOLEAN, "": ConfigType.LIST}
    source = DYNAMIC_TOPIC if setting in own else DEFAULT
    return TopicConfig(setting, own.get(setting, default), source, types[default], ((DEFAULT, default),))


def is_list(setting: str) -> bool:
    """Whether a setting has several values, so that some can be added to it."""
    return OF_REPLICAS.get(setting) == "" or (setting in FIELDS and isinstance(getattr(LogConfig(), FIELDS[setting]), tuple))


def text_of(value: object) -> str:
    """A value of a log's settings as it is written in a configuration."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)


def type_of(setting: str, value: object) -> ConfigType:
    """Kafka's type of a setting of logs."""
    kinds = {bool: ConfigType.BOOLEAN, str: ConfigType.STRING, float: ConfigType.DOUBLE, tuple: ConfigType.LIST}
    return kinds.get(type(value), ConfigType.INT if setting in _INTS else ConfigType.LONG)
