"""Units for systemd, which come with the package as templates."""

import shlex
from collections.abc import Sequence
from pkgutil import get_data
from string import Template


def systemd_unit(package: str, file: str, command: Sequence[str], stop_seconds: int, writable: Sequence[str] = ()) -> str:
    """A package's template, filled in: it runs `command`, which may write into the folders `writable`."""
    body = get_data(package, file)
    assert body is not None
    lines = "".join(f"ReadWritePaths={shlex.quote(folder)}\n" for folder in writable)
    return Template(body.decode()).substitute(
        command=shlex.join(command).replace("%", "%%"), stop_seconds=stop_seconds, writable=lines
    )
