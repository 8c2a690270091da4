"""The configuration: sources in, one frozen value out. Pure: what files and the environment say is handed in."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType
from typing import Any

from local_log.errors import Invalid
from local_log.quantities import number_of
from tiering.config import topics
from tiering.config.assignment import Assignment, BadConfig, Parsed, Place, Problem, Value
from tiering.config.names import refusal
from tiering.config.secrets import REMEDY, holds_a_secret
from tiering.config.settings import NAMES, OF_MANAGER, Settings, manager_config, read_settings_of
from tiering.retention import policy as retention_settings
from tiering.retention.policy import LOCAL

VALUE_CHARACTERS_MAX = 64 * 1024
_NOT_OURS = (
    "a broker's log directory is only read, and this would do nothing; set it on the broker or its topic, or set "
    "own.log.dirs=true if no broker uses log.dirs"
)


@dataclass(frozen=True, slots=True)
class Config:
    """The configuration of the service.

    `settings` are the settings of the service. `of_topics` are the settings of topics, those for all topics first; the last one
    that matches a topic is effective. `places` are the sources of the service's settings that are not at their defaults.
    """

    settings: Settings
    of_topics: tuple[Assignment, ...]
    places: Mapping[str, Place]

    @property
    def is_empty(self) -> bool:
        """Whether no setting is given."""
        return not self.places and not self.of_topics

    def excludes(self, topic: str) -> bool:
        """Whether a topic is excluded; this overrides an include."""
        return _any(topic, self.settings.topics_exclude)

    def selects(self, topic: str) -> bool:
        """Whether the service works on a topic: it is included and not excluded."""
        return _any(topic, self.settings.topics_include) and not self.excludes(topic)

    def copies(self, topic: str) -> bool:
        """Whether a topic's own settings let its segments be copied."""
        return bool(self.of(topic, topics.ENABLE)) and not self.of(topic, topics.COPY_DISABLE)

    def archives(self, topic: str) -> bool:
        """Whether a topic's segments are to be copied."""
        return self.selects(topic) and self.copies(topic)

    def of(self, topic: str, name: str) -> Any:
        """A topic's setting by Kafka's name."""
        given = self.given(topic, name)
        return topics.defaults()[name] if given is None else topics.value_of(given)

    def given(self, topic: str, name: str) -> Assignment | None:
        """The assignment of a topic's setting, None if it is at its default."""
        matching = [a for a in self.of_topics if a.name == name and (a.topics is None or fnmatchcase(topic, a.topics))]
        return matching[-1] if matching else None

    def log_settings(self, topic: str) -> dict[str, str]:
        """The settings of a topic's logs in our own log directories, as far as they are not Kafka's defaults.

        As in the archive nothing expires unless a retention is given, and a topic is tiered unless it is not archived.
        """
        given = {"retention.ms": "-1"}
        if (interval := "log.flush.scheduler.interval.ms") in self.places:  # what Kafka's flush.ms is by default
            given["flush.ms"] = str(getattr(self.settings, interval.replace(".", "_")))
        for name in topics.OF_TOPICS:
            if (assignment := self.given(topic, name)) is not None:
                given[name] = assignment.text
        if not self.selects(topic):
            return given | {topics.ENABLE: "false"}
        return {topics.ENABLE: "true"} | given

    def without_effect(self) -> tuple[Problem, ...]:
        """The settings that do nothing, since they are for log directories that we own, and a broker has these.

        A broker's local retention, by the broker's name for it, says when the broker will delete.
        """
        if self.settings.own_log_dirs:
            return ()
        of_topics = (a for a in self.of_topics if a.name in topics.OF_LOGS or (a.name in LOCAL and not a.is_brokers))
        places = {name: place for name, place in self.places.items() if name in OF_MANAGER or name == "deletion.policies"}
        given = [*places.items(), *((a.name, a.place) for a in of_topics)]
        return tuple(Problem(place, f"{name}: {_NOT_OURS}") for name, place in given)

    @property
    def retention(self) -> tuple[retention_settings.Given, ...]:
        """The arguments for `retention_settings.policy_of` and `local_config_of`."""
        return topics.given_for_retention(self.of_topics)


def _any(topic: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(topic, pattern) for pattern in patterns)


def read_config(sources: Sequence[Parsed]) -> Config:
    """The configuration from these sources; the first one that has a setting is effective.

    Raises BadConfig with everything that is wrong: what could not be read, unknown names, values out of bounds, secrets.
    """
    problems = [problem for source in sources for problem in source.problems]
    layers: list[dict[tuple[str | None, str], Assignment]] = []
    for source in sources:
        accepted, refused = _accepted(source.assignments)
        kept, out_of_bounds = topics.resolved(accepted)
        layers.append({(a.topics, a.name): a for a in kept})
        problems += refused + out_of_bounds
    effective = {key: a for layer in reversed(layers) for key, a in layer.items()}
    given = {a.name: a for a in effective.values() if a.name in NAMES}
    of_topics = topics.in_order(a for a in effective.values() if a.name not in NAMES)
    settings, wrong = read_settings_of({name: a.value for name, a in given.items()})
    problems += [Problem(given[name].place, reason) for name, reason in wrong.items()]
    problems += topics.problems_of(of_topics)
    problems += _half_of_encryption(settings, given)
    problems += _of_manager_together(settings, given)
    if problems:
        raise BadConfig(sorted(problems, key=lambda p: (p.place.source, p.place.line or 0)))
    return Config(settings, tuple(of_topics), MappingProxyType({name: a.place for name, a in given.items()}))


def _accepted(assignments: Iterable[Assignment]) -> tuple[list[Assignment], list[Problem]]:
    """Settings with a known name, each once, and no secret among them."""
    first: dict[tuple[str | None, str], Assignment] = {}
    problems: list[Problem] = []
    for a in assignments:
        refused = refusal(a)
        if refused is not None:
            problems.append(refused)
        elif len(a.text) > VALUE_CHARACTERS_MAX:
            problems.append(Problem(a.place, f"{a.name}: {len(a.text)} characters; expected {VALUE_CHARACTERS_MAX} at most"))
        elif holds_a_secret(a.text):
            problems.append(Problem(a.place, f"{a.name}: {REMEDY}"))
        elif (a.topics, a.name) in first:
            problems.append(Problem(a.place, f"{a.name}: {first[a.topics, a.name].place} sets it as well; keep one of the two"))
        else:
            try:
                first[a.topics, a.name] = replace(a, value=_numbers(a))
            except ValueError as e:
                problems.append(Problem(a.place, str(e)))
    return list(first.values()), problems


def _numbers(a: Assignment) -> Value:
    return number_of(a.name, a.value) if isinstance(a.value, str) else a.value


def _of_manager_together(settings: Settings, given: Mapping[str, Assignment]) -> list[Problem]:
    """Settings of the log manager that do not go together."""
    places = [assignment.place for name, assignment in given.items() if name in OF_MANAGER]
    try:
        manager_config(settings)
    except Invalid as e:
        return [Problem(places[-1], str(e))] if places else []
    return []


def _half_of_encryption(settings: Settings, given: Mapping[str, Assignment]) -> list[Problem]:
    """Nobody is to believe that something is encrypted when it is not."""
    if settings.archive_keys is not None or "archive.keys" in given:
        return []
    asked = {"enable": settings.archive_encryption_enable, "required": settings.archive_encryption_required}
    names = [f"archive.encryption.{name}" for name, is_asked in asked.items() if is_asked]
    remedy = "it needs keys; set archive.keys to their address"
    return [Problem(given[name].place, f"{name}=true: {remedy}") for name in names if name in given]
