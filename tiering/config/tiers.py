"""Where a configuration puts the two tiers, and nothing else of it: a shell that asks for topics waits for the answer.

No setting is checked; the command itself says what is wrong with one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from local_log.disk import Disk
from tiering.config.file import read_file
from tiering.config.shared import variable_of

_LOG_DIRS: Final = ("log.dirs", "log.dir")
_ARCHIVE: Final = "archive.url"


@dataclass(frozen=True, slots=True)
class ConfiguredTiers:
    """The log directories, and the address of the archive, None where none is given."""

    log_dirs: tuple[str, ...]
    archive_url: str | None


def configured_tiers(file: str | None, environment: Mapping[str, str], disk: Disk) -> ConfiguredTiers:
    """By the environment, then by a file if one is given. What cannot be read is not given."""
    sources = [{name: environment.get(variable_of(name), "") for name in (*_LOG_DIRS, _ARCHIVE)}]
    if file:
        sources.append({a.name: a.text for a in read_file(file, disk).assignments if a.topics is None})
    folders = _first(sources, *_LOG_DIRS).split(",")
    return ConfiguredTiers(tuple(f.strip() for f in folders if f.strip()), _first(sources, _ARCHIVE) or None)


def _first(sources: Iterable[Mapping[str, str]], *names: str) -> str:
    return next((text for source in sources for name in names if (text := source.get(name, "").strip())), "")
