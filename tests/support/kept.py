"""What tests bring or make once on this machine, and where it is kept."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from file_lock import alone

TIMEOUT_SECONDS = 900
"""For a tool that makes something: on a slow machine without load, with what it fetches, none needs a third of it."""


def cache() -> Path:
    """A folder of the user's, which may be emptied at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kafka-tiering"


def made_once(made: Path, make: Callable[[Path], object], lock: Path) -> Path:
    """`made`, a file or a folder, which `make` writes under the name that it is given if it is not there.

    Whoever else holds `lock`, in whatever process, is waited for. What a failed `make` leaves is removed.
    """
    if made.exists():
        return made
    with alone(lock):
        if not made.exists():
            made.parent.mkdir(parents=True, exist_ok=True)
            arriving = made.with_name(f"{made.name}.{os.getpid()}")
            _remove(arriving)  # of a process of this number that was killed
            try:
                make(arriving)
                arriving.rename(made)
            finally:
                _remove(arriving)
    return made


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
