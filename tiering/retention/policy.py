"""Reads retention's settings, which have Kafka's names, for all topics or for those that match a pattern.

A setting that is not given sets no limit: data of a topic is deleted only with `retention.ms` or `retention.bytes`. The brokers'
own values are not used, since brokers with an archive keep little. There is one exception: in a topic with cleanup.policy=compact
on the brokers, data is deleted only by a setting that names this topic.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from local_log.cluster.image import CLEANUP_POLICY
from local_log.engine.config import LogConfig, read_config
from local_log.engine.settings import Setting, read_settings
from local_log.errors import Invalid
from local_log.quantities import number_of
from tiering.delays import DELETE_DELAY_MS

if TYPE_CHECKING:
    from tiering.retention.plan import Policy

DELETE_DELAY = "file.delete.delay.ms"
LIMITS = ("retention.ms", "retention.bytes")
LOCAL = ("local.retention.ms", "local.retention.bytes")
NAMES = (*LIMITS, *LOCAL, CLEANUP_POLICY, DELETE_DELAY)


def _text(_name: str, text: str) -> str:
    return text


_KNOWN: dict[str, Setting] = {name: (name, _text) for name in NAMES}


@dataclass(frozen=True, slots=True)
class Given:
    """One setting: the topics that it is for, as a pattern, its name and its text."""

    topics: str
    name: str
    text: str


def read_given(settings: Sequence[str]) -> tuple[Given, ...]:
    """Settings given as `name=value` or `pattern:name=value`. Raises Invalid for what no topic could use."""
    given = tuple(_given(setting) for setting in settings)
    for one in given:
        read_settings({one.name: one.text}, _KNOWN, "retention")
        read_config({one.name: one.text})
    return given


def _given(setting: str) -> Given:
    left, equals, text = setting.partition("=")
    topics, colon, name = left.rpartition(":")
    if not equals or (colon and not topics.strip()):
        raise Invalid(f"{setting}: expected name=value or topics:name=value, such as retention.ms=7d")
    try:
        number = number_of(name.strip(), text.strip())
    except ValueError as e:
        raise Invalid(str(e)) from e
    return Given(topics.strip() if colon else "*", name.strip(), number)


def policy_of(given: Sequence[Given], topic: str, *, is_start_given: bool = False) -> "Policy":
    """What the settings say of a topic; of several that match it the last counts.

    Raises Invalid where they do not say what is to be kept. `is_start_given`: a log start offset does so, too.
    """
    from tiering.retention.plan import Policy  # a configuration is read without what plans go by

    own = _of(given, topic)
    config = read_config(own)
    delay_ms = config.file_delete_delay_ms if DELETE_DELAY in own else DELETE_DELAY_MS
    if "delete" not in config.cleanup_policy:
        return Policy(None, None, delay_ms)
    if not is_start_given and not any(name in own for name in LIMITS):
        raise Invalid(
            f"{topic}: its retention in the archive is not set; give -c retention.ms=… or "
            "-c retention.bytes=… (-1 for no limit), or -c cleanup.policy=compact"
        )
    ms = config.retention_ms if "retention.ms" in own and config.retention_ms >= 0 else None
    size = config.retention_bytes if "retention.bytes" in own and config.retention_bytes >= 0 else None
    return Policy(ms, size, delay_ms)


def says_what_is_kept(given: Sequence[Given], topic: str) -> bool:
    """Whether `policy_of` has something to go by."""
    own = _of(given, topic)
    return any(name in own for name in LIMITS) or "delete" not in read_config(own).cleanup_policy


def names(given: Sequence[Given], topic: str) -> bool:
    """Whether a setting of what is kept is for this very topic, by its name, rather than for all or for a pattern."""
    return any(one.topics == topic and one.name in (*LIMITS, CLEANUP_POLICY) for one in given)


def deleted_policy_of(given: Sequence[Given], topic: str) -> "Policy":
    """What the settings say of a topic that was deleted: only how long its objects wait."""
    own = {name: text for name, text in _of(given, topic).items() if name == DELETE_DELAY}
    return policy_of((Given("*", "retention.ms", "-1"), *(Given("*", name, text) for name, text in own.items())), topic)


def kept_policy_of(given: Sequence[Given], topic: str, because: str) -> "Policy":
    """The policy where nothing expires, for this reason: only how long objects wait that were given up."""
    return replace(deleted_policy_of(given, topic), kept_because=because)


def local_config_of(given: Sequence[Given], topic: str) -> LogConfig | None:
    """The settings of a topic's local log beside its archive, None where none says how much of it stays. Raises Invalid."""
    own = _of(given, topic)
    if not any(name in own for name in LOCAL):
        return None
    limits = {"retention.ms": "-1", "retention.bytes": "-1"}
    return read_config({**limits, **own, "remote.storage.enable": "true"})


def _of(given: Sequence[Given], topic: str) -> dict[str, str]:
    return {one.name: one.text for one in given if fnmatchcase(topic, one.topics)}
