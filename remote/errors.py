"""The former place of the archive's errors, for code that imports them from here: they are in `local_log.errors`."""

from typing import Any

from local_log import errors


def __getattr__(name: str) -> Any:
    """The error of that name; RemoteError, which was the base of those here, is LogError."""
    return getattr(errors, "LogError" if name == "RemoteError" else name)
