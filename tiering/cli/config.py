"""`tiering config`: whether a configuration is valid, and its effective values."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from local_log.errors import BadAddress
from tiering.command.completion import files
from tiering.command.exit_codes import Exit, reports_errors
from tiering.command.options import named, output_option, topic_option
from tiering.command.output import emit, say
from tiering.config.shared import CONFIG_VARIABLE, VARIABLES
from tiering.machine import local_disk, open_backend

if TYPE_CHECKING:
    from tiering.config.assignment import Problem
    from tiering.config.config import Config

_NOTHING: Final = f"give a file, or set {CONFIG_VARIABLE} or variables such as {VARIABLES}LOG_DIRS"


@click.group("config")
def command() -> None:
    """Check and show a configuration: a file NAME.toml or NAME.properties, and the environment.

    An option overrides the environment (TIERING_LOG_DIRS is log.dirs), the environment overrides the file, and the file
    overrides the default.
    """


def _loaded(file: str | None) -> "Config":
    """Raises BadConfig, for an address that names no store, too."""
    from tiering.config.assignment import BadConfig, Place, Problem
    from tiering.config.load import load_config

    config = load_config(file, os.environ, local_disk())
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
    """Report every error of FILE and the environment, one per line. The exit code is 2 if there are any.

    Without FILE it checks TIERING_CONFIG, or only the environment. Run it on the host and as the user that the configuration is
    for: each of log.dirs must be a readable folder with partitions, a folder archive must exist or be possible to create, and
    the keys must exist. It makes no network requests; tiering doctor tests the store.

    \b
    Examples:
      tiering config check tiering.toml
    """
    from tiering.config import paths as config_paths
    from tiering.config.assignment import BadConfig, shown

    try:
        config = _loaded(file)
    except BadConfig as e:
        return _refused(e.problems)
    if config.is_empty:
        say(f"tiering: no settings given: {_NOTHING if file is None else f'{shown(file)} and the environment have none'}")
        return Exit.usage
    found = tuple(config_paths.problems(config, local_disk()))
    if found:
        return _refused(found)
    say(f"tiering: {file or 'the environment'} is valid")
    return None


def _refused(problems: "Iterable[Problem]") -> Exit:
    for problem in problems:
        say(f"tiering: {problem}")
    return Exit.usage


@command.command("show")
@file_argument
@topic_option("Show the settings of one topic.", required=False)
@output_option()
@reports_errors
def show(file: str | None, topic: str | None, output: str) -> Exit | None:
    """Show every setting, its value, and the source: a line of FILE, an environment variable, or the default.

    \b
    Examples:
      tiering config show tiering.toml
      tiering config show tiering.toml --topic orders --output json
    """
    from tiering.config import show as of
    from tiering.config.assignment import BadConfig

    try:
        config = _loaded(file)
    except BadConfig as e:
        return _refused(e.problems)
    emit(of.rows(config) if topic is None else of.rows_of(config, topic), output, as_text=of.as_text)
    return None
