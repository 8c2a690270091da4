"""Folders of this user's own for what may be lost at any time: compiled code, a wrapper around a Java, what was seen last."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

NAME = "kafka-tiering"


def cache_folders() -> Iterator[Path]:
    """The user's cache, which need not exist yet nor be writable; then a folder in the shared temporary directory.

    The second one comes only where it is this user's: what others could have put there is never run.
    """
    with suppress(RuntimeError):  # a user without a home
        yield Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / NAME
    shared = Path(tempfile.gettempdir(), f"{NAME}-{os.getuid()}")
    with suppress(OSError):
        shared.mkdir(mode=0o700, exist_ok=True)
        if shared.lstat().st_uid == os.getuid():
            yield shared


def state_folder(environment: Mapping[str, str]) -> str:
    """Where programs remember from one run to the next: where systemd says, else with what the user's other programs keep."""
    systemd = environment.get("STATE_DIRECTORY", "").partition(":")[0]
    if systemd:
        return systemd
    home = environment.get("XDG_STATE_HOME") or f"{environment.get('HOME', '')}/.local/state"
    return f"{home}/{NAME}"
