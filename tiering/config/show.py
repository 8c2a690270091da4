"""A configuration as rows: every effective value, and where it comes from."""

from collections.abc import Iterator, Mapping
from typing import Any

from tiering.config.assignment import Assignment, shown
from tiering.config.config import Config
from tiering.config.settings import NAMES
from tiering.config.topics import OF_TOPICS, defaults, value_of
from tiering.delays import DELETE_DELAY_MS

Row = Mapping[str, Any]

DEFAULT = "default"
UNSET = {"retention.ms": "not set: keeps everything", "retention.bytes": "not set: keeps everything"}
"""What has no value until it is given, whatever a broker's default is."""
_UNLESS_GIVEN = {"file.delete.delay.ms": f"default; objects of the archive are kept for {DELETE_DELAY_MS}"}


def rows(config: Config) -> Iterator[Row]:
    """The settings of the service, those of all topics, and what patterns of topics have of their own."""
    for name in NAMES:
        value = getattr(config.settings, name.replace(".", "_"))
        yield _row(name, value, str(config.places.get(name, DEFAULT)))
    for name in OF_TOPICS:
        given = [a for a in config.of_topics if a.name == name and a.topics is None]
        yield _of_topic(name, given[-1] if given else None)
    for a in config.of_topics:
        if a.topics is not None:
            yield _row(f"topic.{shown(a.topics)}.{a.name}", value_of(a), str(a.place))


def rows_of(config: Config, topic: str) -> Iterator[Row]:
    """Show the settings of one topic."""
    yield _row("archived", config.archives(topic), _why(config, topic))
    for name in OF_TOPICS:
        yield _of_topic(name, config.given(topic, name))


def _why(config: Config, topic: str) -> str:
    """Where it is said that a topic is archived or not."""
    if not config.selects(topic):
        included = config.places.get("topics.include", DEFAULT), config.places.get("topics.exclude", DEFAULT)
        return f"topics.include ({included[0]}) and topics.exclude ({included[1]})"
    given = config.given(topic, "remote.log.copy.disable")
    if given is not None and config.of(topic, "remote.log.copy.disable"):
        return str(given.place)
    given = config.given(topic, "remote.storage.enable")
    return DEFAULT if given is None else str(given.place)


def _of_topic(name: str, given: Assignment | None) -> Row:
    if given is None and name in UNSET:
        return _row(name, None, DEFAULT, UNSET[name])
    if given is None:
        return _row(name, defaults()[name], DEFAULT, _UNLESS_GIVEN.get(name, ""))
    return _row(name, value_of(given), str(given.place) if given.topics is None else f"{given.place} ({shown(given.topics)})")


def _row(name: str, value: Any, source: str, note: str = "") -> Row:
    plain = [shown(item) for item in value] if isinstance(value, tuple) else shown(value) if isinstance(value, str) else value
    return {"setting": name, "value": plain, "source": shown(source), "note": note}


def as_text(row: Row) -> Row:
    """A row for a table: lists with commas, true and false as they are written, what no value means in brackets."""
    value = row["value"]
    if value is None and row["note"]:
        return {**row, "value": f"({row['note']})", "note": ""}
    text = ",".join(value) if isinstance(value, list) else str(value).lower() if isinstance(value, bool) else value
    return {**row, "value": None if text is None else str(text)}
