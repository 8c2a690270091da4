"""Exclusive locks on log directories: one process at a time reads a folder, and nothing is written there.

They are for a process that only reads a live broker's folder and must be its only reader. Kafka locks a file of its own
(`.lock`) with another kind of lock, so neither blocks the other. A lock ends with its process, even if the process is killed.
"""

import fcntl
import os
from typing import Protocol

from local_log.errors import NoSuchFile, Unreadable, of_system


class FolderHolder(Protocol):
    """Locks and unlocks log directories."""

    def hold(self, folder: str) -> bool:
        """Locks the folder; False if another owner has it. Raises NotFound, Unreadable."""

    def let_go(self, folder: str) -> None:
        """Unlocks a folder that `hold` locked."""


class OsFolderHolder:
    """Advisory locks (flock) on folders."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    def hold(self, folder: str) -> bool:
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError) as e:
            raise NoSuchFile(f"{folder}: no such folder; check its name") from e
        except OSError as e:
            raise Unreadable(of_system(folder, e)) from e
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError as e:
            os.close(descriptor)
            raise Unreadable(f"{folder}: it cannot be locked: {e}; use a file system that knows flock") from e
        self._held[folder] = descriptor
        return True

    def let_go(self, folder: str) -> None:
        os.close(self._held.pop(folder))
