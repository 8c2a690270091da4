"""What the reference pages are made of: rows out of the code, so that no page says what the code does not."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import click
import yaml

from local_log.formats.primitives import INT64_MAX
from remote.manifest import pages
from spark_jobs.common.prices import table as price_table
from tiering import cli
from tiering.config.settings import OF_MANAGER, Settings, name_of
from tiering.config.shared import variable_of
from tiering.config.show import UNSET
from tiering.config.topics import OF_ARCHIVE, OF_LOGS, SYNONYMS, defaults
from tiering.endpoint.settings import SETTINGS
from tiering.metrics.endpoint_series import OF_ENDPOINT, OF_OWN_LOGS
from tiering.metrics.series import ALL, NOT_EXPORTED, PROCESS_SERIES, Series
from tiering.metrics.shipped import alerts

Cells = tuple[str, ...]
HIDDEN = {"help"}
PRICES = ("reads_per_1000", "writes_per_1000", "retrieval_per_gb", "egress_per_gb")


def settings() -> Iterator[Cells]:
    """Of each setting of the service: name, default, variable, what it is for."""
    for one in fields(Settings):
        name = name_of(one.name)
        yield f"`{name}`", _value(one.default), f"`{variable_of(name)}`", one.metadata["about"]


def topic_settings() -> Iterator[tuple[str, str]]:
    """Of each setting that a topic may have of its own: name, default."""
    return ((name, "unset" if name in UNSET else _value(value)) for name, value in defaults().items() if name in OF_ARCHIVE)


def log_settings() -> Iterator[Cells]:
    """Of each setting of the logs in our own log directories: name, default."""
    return ((f"`{name}`", _value(value)) for name, value in defaults().items() if name in OF_LOGS)


def manager_settings() -> Iterator[Cells]:
    """Of each setting of the log manager: name, default, variable."""
    return ((f"`{name}`", _value(default), f"`{variable_of(name)}`") for name, default in OF_MANAGER.items())


def endpoint_settings() -> Iterator[Cells]:
    """Of each setting of the endpoint: name, default, variable, what it is for."""
    for one in SETTINGS.values():
        text = one.text(one.default)
        yield f"`{one.name}`", f"`{text}`" if text else "", f"`{variable_of(one.name)}`", one.help


def synonyms() -> Iterator[Cells]:
    """What a broker calls a setting: that name, ours, by what its value is multiplied."""
    return (
        (f"`{broker}`", f"`{name}`", "" if factor == 1 else f"times {factor:,}") for broker, (name, factor) in SYNONYMS.items()
    )


def metrics() -> Iterator[Cells]:
    """Of each series of the agent: name, type, labels, Kafka's bean, what it says."""
    return _rows(ALL)


def endpoint_metrics() -> Iterator[Cells]:
    """Likewise of each series of the endpoint."""
    return _rows(OF_ENDPOINT)


def own_endpoint_metrics() -> Iterator[Cells]:
    """Likewise of each series that an endpoint has besides with log directories of its own."""
    return _rows(OF_OWN_LOGS)


def _rows(all_series: Iterable[Series]) -> Iterator[Cells]:
    for series in all_series:
        bean = series.bean.partition("name=")[2].partition(",")[0]
        labels = ", ".join(f"`{label}`" for label in series.labels)
        yield f"`{series.name}`", "counter" if series.is_counter else "gauge", labels, f"`{bean}`" if bean else "", series.help


def process_metrics() -> Iterator[Cells]:
    """The series that Prometheus' client tells of any process."""
    return ((f"`{name}`",) for name in PROCESS_SERIES)


def beans_not_here() -> Iterator[Cells]:
    """Beans of Kafka that no series stands for, and why."""
    return ((f"`{bean}`", reason) for bean, reason in NOT_EXPORTED.items())


def columns(schema: str) -> Iterator[tuple[str, str]]:
    """The columns of a page of entries (`entry`) or of refs (`ref`): name, Parquet type."""
    for column in {"entry": pages.ENTRY_SCHEMA, "ref": pages.REF_SCHEMA}[schema]:
        yield column.name, f"{column.type}{'' if column.nullable else ' not null'}"


@dataclass(frozen=True)
class Command:
    """A command as a page shows it: what is typed, how it is used, what it does, its options as cells."""

    name: str
    usage: str
    paragraphs: tuple[str, ...]
    options: tuple[Cells, ...]


def commands() -> Iterator[Command]:
    """`tiering` and every command and group below it."""
    yield from _commands(cli.main, click.Context(cli.main, info_name="tiering"))


def _commands(command: click.Command, context: click.Context) -> Iterator[Command]:
    usage = " ".join(command.collect_usage_pieces(context))
    text = click.unstyle(command.help or command.short_help or "").replace("\b", "")
    options = tuple(_option(p, context) for p in command.get_params(context) if p.name not in HIDDEN)
    yield Command(context.command_path, f"{context.command_path} {usage}", tuple(text.split("\n\n")), options)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            if not below.hidden:
                yield from _commands(below, click.Context(below, info_name=name, parent=context))


def _option(param: click.Parameter, context: click.Context) -> Cells:
    record = param.get_help_record(context)
    if record is None:
        return f"`{param.human_readable_name}`", ""
    return f"`{record[0]}`", record[1]


def _value(value: Any) -> str:
    if value is None or value == ():
        return ""
    if isinstance(value, tuple):
        return f"`{','.join(value)}`"
    if value == INT64_MAX:
        return "no limit"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def prices() -> Iterator[Cells]:
    """List prices in US dollars by class of storage: 1,000 reads, 1,000 writes, a GB read, a GB that leaves."""
    for of in price_table().values():
        money = (f"{getattr(of, column):g}{' ?' if column in of.unverified else ''}" for column in PRICES)
        yield f"`{of.name}`", *money, of.as_of.isoformat(), of.region


def alert_rules() -> dict[str, dict[str, Any]]:
    """The shipped alerts by name, as Prometheus reads them."""
    return {rule["alert"]: rule for group in yaml.safe_load(alerts())["groups"] for rule in group["rules"]}
