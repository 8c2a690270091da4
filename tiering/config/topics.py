"""Settings that a topic may have of its own, by Kafka's names, and what a broker calls its defaults for them.

What they may be and what they are unless given is the engine's to say (LogConfig), but for remote.storage.enable: there is no
cluster here whose topics stay out of an archive until somebody lets them in, so it is true unless given.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from local_log.engine.config import FIELDS, LogConfig, read_config
from local_log.errors import Invalid
from tiering.config.assignment import Assignment, Problem, shown
from tiering.config.settings import refuse_no_pattern
from tiering.local_tier.broker_synonyms import BROKER_SYNONYMS
from tiering.retention import policy as retention_settings

ENABLE: Final = "remote.storage.enable"
COPY_DISABLE: Final = "remote.log.copy.disable"
OF_ARCHIVE: Final = (*retention_settings.NAMES, ENABLE, COPY_DISABLE)
"""The settings of topics that concern the archive."""
OF_LOGS: Final = tuple(name for name in FIELDS if name not in OF_ARCHIVE and not name.startswith("internal."))
"""The others, for the logs of our own log directories."""
OF_TOPICS: Final = (*OF_ARCHIVE, *OF_LOGS)

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 60 * _MINUTE_MS
_MS: Final = "retention.ms"
SYNONYMS: Final = {
    **{broker: of for broker, of in BROKER_SYNONYMS.items() if of[0] in OF_TOPICS},
    "log.dir": ("log.dirs", 1),
}
"""What a broker calls a setting, and by what its value is multiplied; of several for one the first counts, as in Kafka."""


def defaults() -> dict[str, Any]:
    """What each setting of a topic is unless given."""
    config = replace_default(LogConfig())
    return {name: getattr(config, FIELDS[name]) for name in OF_TOPICS}


def replace_default(config: LogConfig) -> LogConfig:
    """Kafka's defaults, and where they are not ours, ours."""
    return replace(config, remote_storage_enable=True)


def value_of(assignment: Assignment) -> Any:
    """What a topic's setting says. Raises Invalid, which names it and what it may be."""
    config = read_config({assignment.name: assignment.text})
    return getattr(config, FIELDS[assignment.name])


def resolved(assignments: Iterable[Assignment]) -> tuple[list[Assignment], list[Problem]]:
    """One source's settings by their own names: a broker's names stand behind them, each in its turn."""
    given = list(assignments)
    own = {a.name for a in given if a.topics is None and a.name not in SYNONYMS}
    kept = [a for a in given if a.topics is not None or a.name not in SYNONYMS]
    problems: list[Problem] = []
    by_name = {a.name: a for a in given if a.topics is None}
    for synonym, (name, factor) in SYNONYMS.items():
        if synonym not in by_name:
            continue
        try:
            assignment = replace(_translated(by_name[synonym], name, factor), is_brokers=True)
        except Invalid as e:
            problems.append(Problem(by_name[synonym].place, str(e)))
            continue
        if name not in own:
            own.add(name)
            kept.append(assignment)
    return kept, problems


def _translated(given: Assignment, name: str, factor: int) -> Assignment:
    if factor == 1 and given.name != "log.retention.ms":
        return replace(given, name=name)
    try:
        number = int(given.text)
    except ValueError as e:
        raise Invalid(f"{given.name}={shown(given.text)}: expected a whole number") from e
    if name != _MS:
        return replace(given, name=name, value=str(number * factor))
    if number == 0:  # as KafkaConfig has it; for a topic's own retention.ms it is fine
        raise Invalid(f"{given.name}=0: expected 1 or more, or -1 for no limit")
    return replace(given, name=name, value=str(max(-1, number) * (factor if number > 0 else 1)))


def problems_of(assignments: Iterable[Assignment]) -> list[Problem]:
    """The problems of settings of topics: of each setting, and of the settings of a pattern together."""
    problems: list[Problem] = []
    valid: list[Assignment] = []
    for assignment in assignments:
        try:
            if assignment.topics is not None:
                refuse_no_pattern(assignment.name, assignment.topics)
            value_of(assignment)
        except Invalid as e:
            problems.append(Problem(assignment.place, str(e)))
        else:
            valid.append(assignment)
    return problems or _together(valid)


def _together(assignments: list[Assignment]) -> list[Problem]:
    """Of each pattern, whether what it leads to makes sense; a pattern stands for a topic of its name."""
    problems: dict[str, Problem] = {}
    for last in assignments:
        topic = last.topics or "*"
        try:
            retention_settings.local_config_of(given_for_retention(assignments), topic)
        except Invalid as e:
            of = "" if last.topics is None else f"topics {topic}: "
            problems.setdefault(topic, Problem(last.place, f"{of}{e}"))
    return list(problems.values())


def given_for_retention(assignments: Iterable[Assignment]) -> tuple[retention_settings.Given, ...]:
    """The settings of retention, those for all topics first, since the last one that matches a topic is effective."""
    chosen = [a for a in assignments if a.name in retention_settings.NAMES]
    return tuple(retention_settings.Given(a.topics or "*", a.name, a.text) for a in in_order(chosen))


def in_order(assignments: Iterable[Assignment]) -> list[Assignment]:
    """Those for all topics, then those for some, else as they were given: of those that match a topic the last counts."""
    return sorted(assignments, key=lambda a: a.topics is not None)
