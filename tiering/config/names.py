"""Every name that a source may use, and what is said of one that none knows."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from tiering.config.assignment import Assignment, Problem, shown
from tiering.config.secrets import REMEDY, names_a_secret
from tiering.config.settings import NAMES
from tiering.config.topics import OF_TOPICS, SYNONYMS

KNOWN: Final = frozenset((*NAMES, *OF_TOPICS, *SYNONYMS))

NOT_HERE: Final = frozenset(
    f"remote.{name}"
    for name in (
        "log.storage.system.enable", "log.storage.manager.impl.prefix", "log.metadata.manager.impl.prefix",
        "log.storage.manager.class.name", "log.storage.manager.class.path", "log.metadata.manager.class.name",
        "log.metadata.manager.class.path", "log.metadata.manager.listener.name", "log.metadata.custom.metadata.max.bytes",
        "log.index.file.cache.total.size.bytes", "log.index.file.cache.ttl.ms", "log.manager.thread.pool.size",
        "log.manager.follower.thread.pool.size", "log.manager.expiration.thread.pool.size", "log.reader.threads",
        "log.reader.max.pending.tasks", "log.manager.copy.quota.window.num", "log.manager.copy.quota.window.size.seconds",
        "log.manager.fetch.max.bytes.per.second", "log.manager.fetch.quota.window.num",
        "log.manager.fetch.quota.window.size.seconds", "fetch.max.wait.ms", "list.offsets.request.timeout.ms",
        "log.delete.on.disable",
    )
)  # fmt: skip
"""Settings of Kafka's tiered storage that nothing here has a use for: a typing error is not what they are."""


def refusal(assignment: Assignment) -> Problem | None:
    """The problem of an unknown setting, or of one that a topic cannot have; None for any other."""
    reason = _reason(assignment)
    return Problem(assignment.place, reason) if reason else None


def _reason(assignment: Assignment) -> str:
    name, known = assignment.name, KNOWN if assignment.topics is None else frozenset(OF_TOPICS)
    if name in known:
        return ""
    if names_a_secret(name):
        return f"{shown(name)}: {REMEDY}"
    if name in NOT_HERE:
        return f"{name}: Kafka has it, and it changes nothing here; leave it out"
    if assignment.topics is not None and name in KNOWN:
        return f"{name}: it cannot be set for a topic; set it for the whole service"
    if assignment.topics is None and name.startswith("topics.") and name.endswith(OF_TOPICS):
        return f'{shown(name)}: no such setting; settings of topics are in [topic."PATTERN"], or are called topic.PATTERN.NAME'
    near = nearest(name, known)
    of = "" if assignment.topics is None else " of a topic"
    return f"{shown(name)}: no such setting{of}; " + (f"did you mean {near}?" if near else "`tiering config show` lists them all")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one, if any is like it."""
    near = get_close_matches(name.lower(), sorted(known), n=1)
    return near[0] if near else None
