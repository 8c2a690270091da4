"""The settings of this broker: those of the endpoint, and of the log directories that it owns, with Kafka's names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from local_log.engine.config import FIELDS, LogConfig
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.own_logs import config_with
from tiering.endpoint.apis.topic_configs import BROKER_NAMES, DEFAULT, STATIC_BROKER, text_of, type_of
from tiering.endpoint.config_def import ConfigType, Setting
from tiering.endpoint.request_context import ConnectionContext
from tiering.endpoint.settings import SETTINGS

if TYPE_CHECKING:
    from tiering.local_tier.local_tier import LocalTier

_LISTENERS: Final = "advertised.listeners"
_OTHER_NAME: Final = "log.dir"
"""Of `log.dirs`."""
_LONGS: Final = frozenset(
    {
        *("log.flush.scheduler.interval.ms", "replica.high.watermark.checkpoint.interval.ms", "log.retention.check.interval.ms"),
        *("log.initial.task.delay.ms", "log.cleaner.dedupe.buffer.size", "log.cleaner.backoff.ms"),
    }
)
"""The settings of a log manager with 64 bits."""
_NO_VALUES: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """A setting; `synonyms` are the places that it may be set in and their values, the first counts. None for no value."""

    name: str
    value: str | None
    source: int
    type: ConfigType
    synonyms: tuple[tuple[str, str, int], ...] = ()
    help: str | None = None


def broker_configs(connection: ConnectionContext, context: Context) -> Iterator[BrokerConfig]:
    """All of them, each once; `connection` is the client's, and so of the listener."""
    yield from (endpoint_config(setting, context) for setting in SETTINGS.values())
    own = next(one for one in context.cluster.live.brokers if one.node_id == context.cluster.live.node_id)
    host = f"[{own.host}]" if ":" in own.host else own.host
    listener = f"{connection.security_protocol}://{host}:{own.port}"
    yield _config(_LISTENERS, listener, None, ConfigType.LIST, None, is_given=True)
    if context.local_tier is not None:
        yield from _of_manager(context.local_tier)
        yield from _of_logs(context.local_tier)


def endpoint_config(setting: Setting, context: Context) -> BrokerConfig:
    """One of the endpoint's own."""
    value, default = (None if one is None else setting.text(one) for one in (context.settings[setting], setting.default))
    return _config(setting.name, value, default, setting.type, setting.help, is_given=setting.name in context.settings.given)


def _config(
    name: str, value: str | None, default: str | None, kind: ConfigType, told: str | None, *, is_given: bool
) -> BrokerConfig:
    given = ((name, value, STATIC_BROKER),) if is_given and value is not None else ()
    defaults = ((name, default, DEFAULT),) if default is not None else ()
    return BrokerConfig(name, value, STATIC_BROKER if is_given else DEFAULT, kind, (*given, *defaults), told)


def _of_manager(tier: "LocalTier") -> Iterator[BrokerConfig]:
    from local_log.engine.manager.config import FIELDS as OF_MANAGER
    from local_log.engine.manager.config import ManagerConfig

    config, without = tier.manager_config, ManagerConfig()
    for name, field in OF_MANAGER.items():
        if name == _OTHER_NAME:
            continue
        value, default = getattr(config, field), getattr(without, field)
        kind = type_of(name, value)
        if kind is ConfigType.LONG and name not in _LONGS:
            kind = ConfigType.INT
        yield _config(name, text_of(value), text_of(default) or None, kind, None, is_given=value != default)


def _of_logs(tier: "LocalTier") -> Iterator[BrokerConfig]:
    """What topics have that have no settings of their own."""
    given, without = tier.defaults(""), LogConfig()
    config = config_with("", _NO_VALUES, tier)
    for of_topic, name in BROKER_NAMES.items():
        value, default = getattr(config, FIELDS[of_topic]), getattr(without, FIELDS[of_topic])
        yield _config(name, text_of(value), text_of(default), type_of(of_topic, value), None, is_given=of_topic in given)
