"""The options of the command that runs, as they were typed, so that a unit of systemd can run it again."""

import os
from collections.abc import Collection
from typing import Any, Final

import click
from click.core import ParameterSource

from tiering.command.config_option import config_file

_CONFIG: Final = "config_file"


def given_options(paths: Collection[str]) -> list[str]:
    """The arguments, with absolute paths in the parameters `paths` and in `--config`."""
    context, found = click.get_current_context(), list[str]()
    for param in context.command.params:
        name = param.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value: Any = config_file() if name == _CONFIG else context.params[name]
        if isinstance(param, click.Option) and param.is_flag:
            found += [param.opts[-1]] if value else []
            continue
        for one in value if param.multiple else (value,):
            found += [param.opts[-1], _absolute(one) if name == _CONFIG or name in paths else str(one)]
    return found


def _absolute(value: Any) -> str:
    """A path as one from the root; an address of another kind as it is."""
    return str(value) if "://" in str(value) else os.path.abspath(value)
