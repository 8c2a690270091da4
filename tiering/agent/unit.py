"""The systemd unit of an agent, which comes with the package."""

import shlex
from collections.abc import Sequence
from pkgutil import get_data
from string import Template
from typing import Final

from tiering.agent.agent import ABORT_MS

_FILE: Final = "kafka-tiering-agent.service"
_SPARE_S: Final = 10
"""How much longer systemd waits than the agent itself does."""


def unit(command: Sequence[str], shutdown_ms: int, writable: Sequence[str] = ()) -> str:
    """The unit that runs `command`, which may write into the folders `writable`."""
    body = get_data("tiering.agent", _FILE)
    assert body is not None
    lines = "".join(f"ReadWritePaths={shlex.quote(folder)}\n" for folder in writable)
    return Template(body.decode()).substitute(
        command=shlex.join(command).replace("%", "%%"),
        stop_seconds=(shutdown_ms + ABORT_MS) // 1000 + _SPARE_S,
        writable=lines,
    )
