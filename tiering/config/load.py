"""Loads a configuration: from one file, which a `Disk` reads, and from the environment."""

from collections.abc import Mapping, Sequence

from local_log.disk import Disk
from tiering.config.config import Config, read_config
from tiering.config.environment import read_environment
from tiering.config.file import read_file
from tiering.config.properties_file import read_properties
from tiering.config.topics import OF_TOPICS


def load_config(
    file: str | None, environment: Mapping[str, str], disk: Disk, overrides: Sequence[str] = (), option: str = "--override"
) -> Config:
    """The configuration by `overrides`, then the environment, then a file if one is given, then the defaults.

    An override is a line of properties, NAME=VALUE, which `option` gives. Raises BadConfig.
    """
    sources = [read_environment(environment)]
    if overrides:
        sources.insert(0, read_properties("\n".join(overrides), option, OF_TOPICS))
    if file is not None:
        sources.append(read_file(file, disk, OF_TOPICS))
    return read_config(sources)
