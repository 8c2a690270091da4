"""`tiering topics`: the topics of log directories of our own, while no agent has them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec

import click

from local_log.errors import NotFound
from tiering.command.completion import folders
from tiering.command.config_option import whole_config, whole_config_options
from tiering.command.exit_codes import reports_errors
from tiering.command.options import Number, ask, dry_run_option, named, output_option, yes_option
from tiering.command.output import Row, emit, say

if TYPE_CHECKING:
    from tiering.local_tier.local_tier import LocalTier
    from tiering.local_tier.topics_file import Topic

P = ParamSpec("P")
Given = tuple[str | None, tuple[str, ...], str | None]


def _directories(command: Callable[P, Any]) -> Callable[P, Any]:
    """The options that name the log directories; `_owned` takes them."""
    text = "The log directory, which no broker uses: log.dirs=DIR with own.log.dirs=true."
    option = click.option("--own-log-dir", callback=named, shell_complete=folders, metavar="DIR", help=text)
    return whole_config_options(option(command))


def _settings(command: Callable[P, Any]) -> Callable[P, Any]:
    text = "A topic setting with Kafka's name, such as segment.bytes=1048576; may be given several times."
    return click.option("-c", "--set", "settings", multiple=True, metavar="NAME=VALUE", help=text)(command)


def _partitions(command: Callable[P, Any]) -> Callable[P, Any]:
    text = "How many partitions in all; 1 for a new topic without it."
    return click.option("--partitions", type=Number(1), metavar="N", help=text)(command)


@click.group("topics")
def command() -> None:
    """Manage the topics of log directories that no broker uses, while no agent has them.

    The directories are log.dirs of the configuration, with own.log.dirs=true; all that are used together have to be named.
    They are locked, and recovered if they were not cleanly closed.
    """


@command.command("create")
@click.argument("topic")
@_partitions
@_settings
@_directories
@output_option()
@reports_errors
def create(
    topic: str, partitions: int | None, settings: tuple[str, ...], config_file: str | None, overrides: tuple[str, ...],
    own_log_dir: str | None, output: str,
) -> None:  # fmt: skip
    """Create TOPIC, like kafka-topics --create.

    \b
    Examples:
      tiering topics create orders --partitions 3 -c segment.bytes=104857600 --config own.toml
    """
    own = _changes(settings, ())
    with _owned((config_file, overrides, own_log_dir)) as tier:
        made = tier.create_topic(topic, partitions or 1, {name: text for name, text in own.items() if text is not None})
    emit([_row(topic, made)], output)


@command.command("alter")
@click.argument("topic")
@_partitions
@click.option(
    "--delete-config",
    "removed",
    multiple=True,
    metavar="NAME",
    help="Remove this setting of the topic's own; may be given several times.",
)
@_settings
@_directories
@output_option()
@reports_errors
def alter(
    topic: str, partitions: int | None, removed: tuple[str, ...], settings: tuple[str, ...], config_file: str | None,
    overrides: tuple[str, ...], own_log_dir: str | None, output: str,
) -> None:  # fmt: skip
    """Change the settings of TOPIC, or add partitions, like kafka-configs --alter and kafka-topics --alter.

    \b
    Examples:
      tiering topics alter orders -c retention.ms=-1 --delete-config segment.ms --config own.toml
    """
    changes = _changes(settings, removed)
    if not changes and partitions is None:
        raise click.UsageError("nothing is to change: give -c, --delete-config or --partitions")
    with _owned((config_file, overrides, own_log_dir)) as tier:
        if changes:
            tier.alter_configs(topic, changes)
        if partitions is not None:
            tier.create_partitions(topic, partitions)
        changed = tier.topic(topic)
    emit([_row(topic, changed)], output)


@command.command("delete")
@click.argument("topic")
@_directories
@dry_run_option
@yes_option
@output_option()
@reports_errors
def delete(
    topic: str, config_file: str | None, overrides: tuple[str, ...], own_log_dir: str | None, dry_run: bool, is_agreed: bool,
    output: str,
) -> None:  # fmt: skip
    """Delete TOPIC from the log directories, like kafka-topics --delete. Its archive stays; see tiering delete-topic.

    Its logs are renamed at once. The agent deletes them file.delete.delay.ms after its next start.

    \b
    Examples:
      tiering topics delete orders --config own.toml --yes
    """
    with _owned((config_file, overrides, own_log_dir)) as tier:
        known = tier.topic(topic)
        if not dry_run:
            if not is_agreed:
                ask(f"Delete {topic} with {len(known.partitions)} partitions for good?")
            tier.delete_topic(topic)
    emit([_row(topic, known)], output)


@command.command("describe")
@click.argument("topic", required=False)
@_directories
@output_option()
@reports_errors
def describe(
    topic: str | None, config_file: str | None, overrides: tuple[str, ...], own_log_dir: str | None, output: str
) -> None:
    """Show TOPIC, or all topics: id, number of partitions and own settings, like kafka-topics --describe.

    \b
    Examples:
      tiering topics describe --config own.toml
    """
    with _owned((config_file, overrides, own_log_dir)) as tier:
        found = {topic: tier.topic(topic)} if topic is not None else tier.topics()
    emit([_row(name, known) for name, known in sorted(found.items())], output)


@contextmanager
def _owned(given: Given) -> Iterator["LocalTier"]:
    """The local tier of the directories, which have to be there. What is wrong with its logs is printed."""
    from tiering.agent.own_tier import own_tier
    from tiering.machine import local_disk

    config_file, overrides, own_log_dir = given
    if own_log_dir is not None:
        overrides = (*overrides, f"log.dirs={own_log_dir}", "own.log.dirs=true")
    config = whole_config(config_file, overrides)
    service = own_tier(config, lambda message: say(f"tiering: {message}"))
    if service is None or not config.settings.log_dirs:
        raise click.UsageError("name the log directories: --own-log-dir DIR, or log.dirs with own.log.dirs=true in --config")
    for path in config.settings.log_dirs:
        if not local_disk().is_folder(path):
            raise NotFound(f"{path}: no such folder; create it first, or name a log directory that no broker uses")
    service.start()
    try:
        yield service.tier
    finally:
        service.stop()


def _changes(settings: tuple[str, ...], removed: tuple[str, ...]) -> dict[str, str | None]:
    """The settings by name, None for one that is removed. Raises UsageError."""
    pairs = [setting.partition("=") for setting in settings]
    for setting, (name, equals, _) in zip(settings, pairs, strict=True):
        if not name or not equals:
            raise click.UsageError(f"{setting!r} is not NAME=VALUE")
    given: dict[str, str | None] = {name: text for name, _, text in pairs}
    if both := sorted(given.keys() & set(removed)):
        raise click.UsageError(f"{both[0]} cannot be set and removed at once")
    return given | dict.fromkeys(removed)


def _row(name: str, topic: "Topic") -> Row:
    return {"topic": name, "topic_id": topic.topic_id, "partitions": len(topic.partitions), "config": dict(topic.config)}
