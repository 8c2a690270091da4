"""The systemd unit of an agent, which comes with the package."""

from collections.abc import Sequence
from typing import Final

from tiering.agent.agent import ABORT_MS
from tiering.command.systemd_unit import systemd_unit

_FILE: Final = "kafka-tiering-agent.service"
_SPARE_S: Final = 10
"""How much longer systemd waits than the agent itself does."""


def unit(command: Sequence[str], shutdown_ms: int, writable: Sequence[str] = ()) -> str:
    """The unit that runs `command`, which may write into the folders `writable`."""
    return systemd_unit("tiering.agent", _FILE, command, (shutdown_ms + ABORT_MS) // 1000 + _SPARE_S, writable)
