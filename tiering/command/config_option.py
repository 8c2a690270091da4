"""What a configuration gives to commands: the option `--config`, put on every command in one place.

The values stand in click's default map, so a flag comes before them, and before the default of the option they come.
"""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, ParamSpec

import click

from tiering.command.completion import FILE_META, files
from tiering.config.shared import CONFIG_VARIABLE, KEYS_VARIABLE, VARIABLES

if TYPE_CHECKING:
    from tiering.config.config import Config

P = ParamSpec("P")

_META: Final = "tiering.config"

_GIVES: Final[Mapping[str, str]] = {
    "archive_url": "archive.url",
    "keys_address": "archive.keys",
    "allow_plain": "archive.encryption.required",
    "cache_dir": "archive.cache.dir",
    "state_dir": "agent.state.dir",
    "log_dir_path": "log.dirs",
    "metadata_log_dir": "metadata.log.dir",
    "compress": "archive.compression.type",
    "encrypt": "archive.encryption.enable",
    "chunk_bytes": "archive.chunk.bytes",
    "must_exist": "archive.must.exist",
    "replace_compacted": "archive.replace.compacted",
    "threads": "remote.log.manager.copier.thread.pool.size",
    "bytes_per_second": "remote.log.manager.copy.max.bytes.per.second",
    "grace_ms": "sweep.grace.ms",
}
"""The setting by which a configuration gives a parameter of a command."""

_OTHERWISE: Final[Mapping[str, Callable[["Config"], Any]]] = {
    "log_dir_path": lambda c: ",".join(c.settings.log_dirs) or None,
    "compress": lambda c: None if c.settings.archive_compression_type == "none" else c.settings.archive_compression_type,
    "allow_plain": lambda c: not c.settings.archive_encryption_required or None,
    "bytes_per_second": lambda c: (
        c.settings.remote_log_manager_copy_max_bytes_per_second if _GIVES["bytes_per_second"] in c.places else None
    ),
}
"""What a parameter is by a configuration where it is not just the setting; None for nothing."""


def setting_of(parameter: str) -> str | None:
    """The setting that gives a command's parameter where the command line does not; None where none does."""
    return _GIVES.get(parameter)


def _given(config: "Config") -> dict[str, Any]:
    """The parameters that a configuration gives."""
    plain = {name: getattr(config.settings, setting.replace(".", "_")) for name, setting in _GIVES.items()}
    given = plain | {name: give(config) for name, give in _OTHERWISE.items()}
    return {name: value for name, value in given.items() if value is not None}


def with_config(command: click.Command) -> click.Command:
    """The command, which takes `--config` if it or one below it has a parameter that a configuration gives."""
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            below = command.commands.get(name)
            if below is not None:
                with_config(below)
        return command
    names = {param.name for param in command.params}
    if names & _GIVES.keys() and "config_file" not in names:
        command.params.append(
            click.Option(
                ["--config", "config_file"],
                envvar=CONFIG_VARIABLE,
                shell_complete=files,
                metavar="FILE",
                is_eager=True,
                expose_value=False,
                callback=_take,
                help="Configuration file for options that are not given; see tiering config.",
            )
        )
    return command


def _take(context: click.Context, _param: click.Parameter, file: str | None) -> None:
    context.meta[FILE_META] = file
    is_any_given = any(v.startswith(VARIABLES) and v not in (CONFIG_VARIABLE, KEYS_VARIABLE) for v in os.environ)
    if context.resilient_parsing or (file is None and not is_any_given):
        return  # nothing of what follows is loaded then, which takes half a second
    config = whole_config(file, ())
    context.meta[_META] = config
    context.default_map = {**(context.default_map or {}), **_given(config)}


def whole_config_options(command: Callable[P, Any]) -> Callable[P, Any]:
    """`--config` and `--override` of a command that goes by nothing but a configuration; `whole_config` takes them."""
    text = "Configuration file; see tiering config."
    command = click.option("--config", "config_file", envvar=CONFIG_VARIABLE, shell_complete=files, metavar="FILE", help=text)(
        command
    )
    text = "A setting that overrides the configuration; may be given several times."
    return click.option("--override", "overrides", multiple=True, metavar="NAME=VALUE", help=text)(command)


def whole_config(file: str | None, overrides: tuple[str, ...], option: str = "--override") -> "Config":
    """The configuration by these, which `option` gives, and the environment. Raises UsageError with all that is wrong with it."""
    from tiering.config.assignment import BadConfig
    from tiering.config.load import load_config
    from tiering.machine import local_disk

    try:
        return load_config(file, os.environ, local_disk(), overrides, option)
    except BadConfig as e:
        raise click.UsageError(str(e)) from e


def config_file() -> str | None:
    """The configuration file of the command that runs, None where there is none."""
    file: str | None = click.get_current_context().meta.get(FILE_META)
    return file


def configured() -> "Config | None":
    """The configuration of the command that runs, None where there is none."""
    config: Config | None = click.get_current_context().meta.get(_META)
    return config


def topic_globs(flags: tuple[str, ...]) -> tuple[str, ...]:
    """The topics that a command is for: what `--topic` says, else what a configuration includes; none for all."""
    config = configured()
    return flags or (config.settings.topics_include if config is not None and "topics.include" in config.places else ())


def is_left_alone(topic: str, *, is_copied: bool = False) -> bool:
    """Whether a configuration excludes a topic, or has it not copied where that is to be done. No flag says otherwise."""
    config = configured()
    return config is not None and (config.excludes(topic) or (is_copied and not config.copies(topic)))


def metadata_log_dir() -> str | None:
    """The directory of the cluster's metadata in a configuration, None where it does not say."""
    config = configured()
    return config.settings.metadata_log_dir if config is not None else None


def log_dirs() -> tuple[str, ...]:
    """The log directories of a configuration, none without one."""
    config = configured()
    return config.settings.log_dirs if config is not None else ()


def deletion_policies() -> tuple[str, ...]:
    """The names of the policies that old segments of a log directory of ours are deleted by; Kafka's without a configuration."""
    config = configured()
    return config.settings.deletion_policies if config is not None else ("size", "time")


def own_log_settings(topic: str) -> Mapping[str, str]:
    """The settings of a topic's logs in a log directory of ours; without a configuration nothing of it is deleted."""
    config = configured()
    if config is None:
        return {"remote.storage.enable": "true", "retention.ms": "-1"}
    return config.log_settings(topic)
