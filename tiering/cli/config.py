"""`tiering config`: whether a configuration is sound, and what it comes to."""

import os

import click

from local_log.storage import OsDisk
from remote.errors import BadAddress
from remote.stores import open_backend
from tiering.completes import files
from tiering.config import show as of
from tiering.config.assignment import BadConfig, Place, Problem
from tiering.config.config import Config
from tiering.config.load import load_config
from tiering.config.shared import CONFIG_VARIABLE
from tiering.console import Exit, emit, named, output_option, reports_errors, say, topic_option


@click.group("config")
def command() -> None:
    """Look at a configuration: a file of Kafka's names and ours, NAME.toml or NAME.properties, and the environment.

    A flag comes before the environment (TIERING_LOG_DIRS is log.dirs), that before the file, and the file before the default.
    """


def _loaded(file: str | None) -> Config:
    """Raises BadConfig, for an address that names no store, too."""
    config = load_config(file, os.environ, OsDisk())
    if config.settings.archive_url is not None:
        try:
            open_backend(config.settings.archive_url)
        except BadAddress as e:
            raise BadConfig([Problem(config.places.get("archive.url", Place("default")), f"archive.url: {e}")]) from e
    return config


file_argument = click.argument(
    "file", required=False, envvar=CONFIG_VARIABLE, callback=named, shell_complete=files, metavar="[FILE]"
)


@command.command("check")
@file_argument
@reports_errors
def check(file: str | None) -> Exit | None:
    """Tell everything that is wrong with FILE and the environment, a line each, and end with exit code 2; else 0.

    Without FILE it is the one that TIERING_CONFIG names, or the environment alone. No store and no log directory is asked.

    \b
    Examples:
      tiering config check tiering.toml
    """
    try:
        _loaded(file)
    except BadConfig as e:
        for problem in e.problems:
            say(f"tiering: {problem}")
        return Exit.usage
    say(f"tiering: {file or 'the environment'} is sound")
    return None


@command.command("show")
@file_argument
@topic_option("The settings that count for one topic.", required=False)
@output_option()
@reports_errors
def show(file: str | None, topic: str | None, output: str) -> Exit | None:
    """Show every setting, its value, and where that comes from: a line of FILE, a variable of the environment, or the default.

    \b
    Examples:
      tiering config show tiering.toml
      tiering config show tiering.toml --topic orders --output json
    """
    try:
        config = _loaded(file)
    except BadConfig as e:
        for problem in e.problems:
            say(f"tiering: {problem}")
        return Exit.usage
    emit(of.rows(config) if topic is None else of.rows_of(config, topic), output, as_text=of.as_text)
    return None
