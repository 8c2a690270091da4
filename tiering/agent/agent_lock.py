"""One agent a log directory: a second one would copy nothing twice, but read everything twice, and double each limit."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from local_log.errors import Invalid
from local_log.folder_lock import FolderHolder
from remote.clock import Clock

ATTEMPTS_MAX: Final = 5
WAIT_S: Final = 0.2
"""Whoever asks whether an agent runs holds the folder for a moment, too."""


@contextmanager
def agent_lock(holder: FolderHolder, log_dirs: Sequence[str], clock: Clock) -> Iterator[None]:
    """Holds all of the log directories. Raises Invalid where another agent has one of them; NotFound, Unreadable."""
    held: list[str] = []
    try:
        for folder in log_dirs:
            _hold(holder, folder, clock)
            held.append(folder)
        yield
    finally:
        for folder in held:
            holder.let_go(folder)


def _hold(holder: FolderHolder, folder: str, clock: Clock) -> None:
    for _ in range(ATTEMPTS_MAX):
        if holder.hold(folder):
            return
        clock.sleep(WAIT_S)
    raise Invalid(
        f"{folder}: another agent uses this log directory; `tiering status` shows what it does. Stop it first, or give this one "
        "other log directories"
    )


def has_agent(holder: FolderHolder, log_dirs: Sequence[str]) -> bool:
    """Whether somebody holds one of the log directories now. Raises NotFound, Unreadable."""
    for folder in log_dirs:
        if not holder.hold(folder):
            return True
        holder.let_go(folder)
    return False
