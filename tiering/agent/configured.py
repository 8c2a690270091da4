"""Where a configuration puts things of its agent: the log directories, the archive, its memory, addresses and token.

Apart from `wiring`, so that who only asks an agent loads nothing of its tasks.
"""

from collections.abc import Mapping
from typing import Final

from local_log.errors import Invalid, LogError
from local_log.log_dir import LogDir
from local_log.user_cache import state_folder
from remote.transforms.key_rings import allowing_plain
from tiering.agent.memory import MemoryFile
from tiering.config.assignment import BadConfig
from tiering.config.config import Config
from tiering.log_dirs import log_dir
from tiering.machine import local_disk, writable_disk

TOKEN_CHARACTERS_MIN: Final = 16
TOKEN_CHARACTERS_MAX: Final = 1_024


def checked(config: Config) -> tuple[tuple[LogDir, ...], str]:
    """The log directories and the archive of a configuration. Raises Invalid where it does not say which."""
    settings = config.settings
    if not settings.log_dirs:
        raise Invalid("no log directory is given: set log.dirs in the configuration, TIERING_LOG_DIRS or --log-dir")
    if settings.archive_url is None:
        raise Invalid("no archive is given: set archive.url in the configuration, TIERING_ARCHIVE_URL or --archive")
    if problems := config.without_effect():
        raise BadConfig(problems)
    return tuple(log_dir(path) for path in settings.log_dirs), settings.archive_url


def state_dir(config: Config, environment: Mapping[str, str]) -> str:
    """Where an agent keeps its memory."""
    return config.settings.agent_state_dir or state_folder(environment)


def memory_file(config: Config, environment: Mapping[str, str]) -> MemoryFile:
    """Where the agent of a configuration keeps its memory. Raises Invalid without log directories or an archive."""
    dirs, url = checked(config)
    return MemoryFile.of(writable_disk(), state_dir(config, environment), [d.path for d in dirs], url)


def addresses(config: Config, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The addresses of the agent of a configuration: the one that it has saved, then the configured ones.

    An endpoint with log directories of its own serves the agent's pages, too.
    """
    try:
        saved = memory_file(config, environment).load().address
    except LogError:
        saved = ""
    settings = config.settings
    endpoint: str | None = settings.endpoint_http_address if settings.own_log_dirs else None  # type: ignore[attr-defined]
    return tuple(dict.fromkeys(address for address in (saved, endpoint, settings.agent_http_address) if address))


def keys_address(config: Config) -> str | None:
    """Where the keys are, with what the configuration says of what is in the clear."""
    keys = config.settings.archive_keys
    return keys if keys is None or config.settings.archive_encryption_required else allowing_plain(keys)


def token(config: Config) -> str:
    """The token that requests with changes need, "" if none. Raises Invalid, NotFound, Unreadable."""
    file = config.settings.agent_http_token_file
    if file is None:
        return ""
    text = local_disk().read(file, 0, TOKEN_CHARACTERS_MAX + 1).decode(errors="replace").strip()
    if not TOKEN_CHARACTERS_MIN <= len(text) <= TOKEN_CHARACTERS_MAX or not (text.isascii() and text.isprintable()):
        raise Invalid(
            f"{file}: no token; expected {TOKEN_CHARACTERS_MIN} to {TOKEN_CHARACTERS_MAX} printable characters, such as "
            "`openssl rand -hex 32` writes"
        )
    return text
