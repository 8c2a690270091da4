"""What shells complete of option values: files and folders, times, and what a configuration knows of archives and topics."""

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Final

from click import Context, Parameter
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from tiering.config.tiers import ConfiguredTiers

FILE_META: Final = "tiering.config.file"
"""Where the configuration file is in click's context of a command."""
_TIMES: Final = {"now": "", "-1h": "an hour ago", "-24h": "a day ago", "-7d": "a week ago"}

Complete = Callable[[Context, Parameter, str], list[CompletionItem]]


def folders(_context: Context, _param: Parameter, incomplete: str) -> list[CompletionItem]:
    """For `shell_complete` of what names a folder."""
    return [CompletionItem(incomplete, type="dir")]


def files(_context: Context, _param: Parameter, incomplete: str) -> list[CompletionItem]:
    """For `shell_complete` of what names a file."""
    return [CompletionItem(incomplete, type="file")]


def times(_context: Context, _param: Parameter, incomplete: str) -> list[CompletionItem]:
    """For `shell_complete` of a time; one of a clock is not completed."""
    return [CompletionItem(time, help=says) for time, says in _TIMES.items() if time.startswith(incomplete)]


def _without_errors(complete: Complete) -> Complete:
    """A shell that asks for words has no use for a message, and none for a traceback: where anything fails, there are none."""

    @wraps(complete)
    def completed(context: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            return complete(context, param, incomplete)
        except Exception:  # whatever it is, the command itself says it when it runs
            return []

    return completed


@_without_errors
def archives(context: Context, param: Parameter, incomplete: str) -> list[CompletionItem]:
    """For `shell_complete` of an archive: that of the configuration, or a folder."""
    url = _configured(context).archive_url
    if url and url.startswith(incomplete):
        return [CompletionItem(url)]
    return folders(context, param, incomplete)


@_without_errors
def topics(context: Context, _param: Parameter, incomplete: str) -> list[CompletionItem]:
    """For `shell_complete` of a topic: those of the log directories and of the archive."""
    from tiering.command.topic_names import archived_topics

    configured, given = _configured(context), context.params
    dirs = [given["log_dir_path"]] if given.get("log_dir_path") else configured.log_dirs
    url = given.get("archive_url") or configured.archive_url
    names = {topic for folder in dirs for topic in _local(folder)} | (archived_topics(url) if url else set())
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


def _local(log_dir: str) -> set[str]:
    """Those that have a partition's folder; LogDir would load what reads logs."""
    from local_log.formats.filenames import parse_partition_dir
    from tiering.machine import local_disk

    return {partition.topic for name in local_disk().names(log_dir) if (partition := parse_partition_dir(name)) is not None}


def _configured(context: Context) -> "ConfiguredTiers":
    from tiering.config.shared import CONFIG_VARIABLE
    from tiering.config.tiers import configured_tiers
    from tiering.machine import local_disk

    file: Any = context.meta.get(FILE_META) or context.params.get("config_file") or os.environ.get(CONFIG_VARIABLE)
    return configured_tiers(file, os.environ, local_disk())
