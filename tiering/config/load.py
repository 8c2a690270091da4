"""Loads a configuration: from one file, which a `Disk` reads, and from the environment."""

from collections.abc import Mapping, Sequence

from local_log.disk import Disk
from local_log.errors import Invalid, LogError
from tiering.config.assignment import Parsed, Place, Problem
from tiering.config.config import Config, read_config
from tiering.config.environment import read_environment
from tiering.config.properties_file import read_properties
from tiering.config.toml_file import read_toml
from tiering.config.topics import OF_TOPICS

FILE_BYTES_MAX = 1 << 20


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
        sources.append(_read(file, disk))
    return read_config(sources)


def _read(file: str, disk: Disk) -> Parsed:
    try:
        return _parsed(file, disk)
    except LogError as e:
        return Parsed(problems=(Problem(Place(file), str(e).removeprefix(f"{file}: ")),))


def _parsed(file: str, disk: Disk) -> Parsed:
    _, _, suffix = file.rpartition(".")
    if suffix not in ("toml", "properties"):
        raise Invalid("the format is unknown; name the file NAME.toml or NAME.properties")
    size = disk.size(file)
    if size > FILE_BYTES_MAX:
        raise Invalid(f"{size} bytes; expected {FILE_BYTES_MAX} at most")
    body = disk.read(file, 0, FILE_BYTES_MAX)
    if suffix == "properties":
        return read_properties(body.decode("latin-1"), file, OF_TOPICS)
    try:
        return read_toml(body.decode("utf-8-sig"), file)
    except UnicodeDecodeError as e:
        line = body.count(b"\n", 0, e.start) + 1
        return Parsed(problems=(Problem(Place(file, line), "not UTF-8, as TOML has to be"),))
