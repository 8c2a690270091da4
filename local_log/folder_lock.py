"""Holds on folders: one process at a time has a folder for itself, and nothing is written there.

For who only reads a live broker's folder, and still wants to be the only one who does. Kafka's own lock is of another kind, on a
file of its own, so neither is in the other's way. A hold ends with its process, however that ends.
"""

import fcntl
import os
from typing import Protocol

from local_log.errors import NoSuchFile, Unreadable, of_system


class FolderHolder(Protocol):
    """Takes and gives back the lock of a log directory."""

    def hold(self, folder: str) -> bool:
        """Takes the folder; False where somebody has it. Raises NotFound, Unreadable."""

    def let_go(self, folder: str) -> None:
        """Gives a folder back that `hold` took."""


class OsFolderHolder:
    """The operating system's advisory locks (flock) on folders."""

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
