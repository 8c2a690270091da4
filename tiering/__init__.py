"""The service: introduces the local tier to the archive. Policy, offload, the one read seam and the command line.

For programs: `open_reader` and what it gives, see `tiering.api`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tiering.api import Reader, open_reader

__version__ = "0.1.0"

__all__ = ["Reader", "open_reader"]


def __getattr__(name: str) -> Any:
    # Arrow and the compiled decoders take their time: who asks for the version or a command's help does not wait for them.
    if name in __all__:
        from tiering import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
