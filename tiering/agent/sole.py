"""One agent a log directory: a second one would copy nothing twice, but read everything twice, and double each limit."""

from collections.abc import Sequence
from typing import Final

from local_log.errors import Invalid
from local_log.folder_hold import FolderHolder
from remote.clock import Clock

ATTEMPTS_MAX: Final = 5
WAIT_S: Final = 0.2
"""Whoever asks whether an agent runs holds the folder for a moment, too."""


def be_sole(holder: FolderHolder, log_dirs: Sequence[str], clock: Clock) -> None:
    """Holds all of the log directories for as long as the process lives. Raises Invalid where another agent has one of them."""
    for at, folder in enumerate(log_dirs):
        for attempt in range(1, ATTEMPTS_MAX + 1):
            if holder.hold(folder):
                break
            if attempt == ATTEMPTS_MAX:
                for held in log_dirs[:at]:
                    holder.let_go(held)
                raise Invalid(
                    f"{folder}: another agent has this log directory; `tiering status` shows what it does. Stop it first, or "
                    "give this one other log directories"
                )
            clock.sleep(WAIT_S)


def has_agent(holder: FolderHolder, log_dirs: Sequence[str]) -> bool:
    """Whether somebody holds one of the log directories now. Raises NotFound, Unreadable."""
    for folder in log_dirs:
        if not holder.hold(folder):
            return True
        holder.let_go(folder)
    return False
