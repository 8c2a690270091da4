"""The user's folders for files that may be deleted at any time: compiled code, the Java launcher, the programs' state."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAME = "kafka-tiering"


def user_cache() -> str | None:
    """The user's cache, which may not exist or be writable; None for a user without a home directory."""
    folder = os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    return None if folder.startswith("~") else f"{os.path.abspath(folder)}/{NAME}"


def cache_folders() -> "Iterator[Path]":
    """The user's cache, which may not exist or be writable, then a folder in the shared temporary directory.

    The second is given only if this user owns it: files that another user could have put there are never executed.
    """
    from pathlib import Path  # with what reads URLs, which takes longer to load than to ask for one folder

    users = user_cache()
    if users is not None:
        yield Path(users)
    import tempfile  # takes longer to load than all else here

    shared = Path(tempfile.gettempdir(), f"{NAME}-{os.getuid()}")
    with suppress(OSError):
        shared.mkdir(mode=0o700, exist_ok=True)
        if shared.lstat().st_uid == os.getuid():
            yield shared


def state_folder(environment: Mapping[str, str]) -> str:
    """Where programs keep state between runs: the folder that systemd gives, else the one for the user's programs."""
    systemd = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if systemd:
        return systemd
    home = environment.get("XDG_STATE_HOME") or f"{environment.get('HOME', '')}/.local/state"
    return f"{home}/{NAME}"
