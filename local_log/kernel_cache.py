"""Where numba keeps the compiled kernels when their code is no plain file, or lies where nobody may write.

Numba keeps machine code beside the source, or in the user's cache under the source's path. Code that is shipped to Spark's
executors lies in a zip, for which numba has no place (a wheel or an egg: it refuses to import), or one under the path of the zip,
which is another for every application, so that each would compile them anew. Here the place goes by what the sources
say: the user's cache or, where there is none to be written, as for the users that run containers, a temporary folder of theirs.
NUMBA_CACHE_DIR comes first where it is set. Imported before the first kernel is declared.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numba.core.config
from numba.core.caching import CacheImpl, _CacheLocator

from local_log.user_cache import cache_folders

_config: Any = numba.core.config  # its names are made when it is loaded
_OURS = "local_log."
_ZIP = "ZipCacheLocator"


class ShippedCode(_CacheLocator):
    """Numba's protocol for one function's place; numba makes it by name, see `register`."""

    def __init__(self, folder: Path, stamp: str, line: int) -> None:
        self._folder = folder
        self._stamp = stamp
        self._line = line

    def get_cache_path(self) -> str:
        """The folder of the compiled code."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """What changes with the sources."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """What tells functions of one name in one file apart."""
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "ShippedCode | None":
        """The place for a kernel of ours, None for anybody else's function. Raises OSError where nothing can be written."""
        if not py_func.__module__.startswith(_OURS):
            return None
        stamp = _sources_digest()
        refused: OSError | None = None
        for folder in _folders():
            locator = cls(folder / f"kernels-{stamp[:16]}", stamp, py_func.__code__.co_firstlineno)
            try:
                locator.ensure_cache_path()  # type: ignore[no-untyped-call]  # numba's
            except OSError as e:
                refused = e
            else:
                return locator
        raise refused or OSError(f"{py_file}: no folder for compiled code; set NUMBA_CACHE_DIR to one that can be written")


def register() -> None:
    """Has numba ask `ShippedCode` where its own places will not do, unless the user has said whom to ask."""
    if not _config.CACHE_LOCATOR_CLASSES:
        names = [c.__name__ for c in CacheImpl._locator_classes if c.__name__ != _ZIP]
        _config.CACHE_LOCATOR_CLASSES = ",".join([*names, f"{__name__}.{ShippedCode.__name__}", _ZIP])


def _folders() -> Iterator[Path]:
    if _config.CACHE_DIR:
        yield Path(_config.CACHE_DIR)
    yield from cache_folders()


def kernel_sources() -> list[Traversable]:
    """All kernels together, since they are compiled into each other, and the numbers that are compiled into them."""
    kernels = sorted((f for f in files("local_log.formats.kernels").iterdir() if f.name.endswith(".py")), key=lambda f: f.name)
    return [*kernels, files("local_log.formats") / "header_layout.py"]


@cache
def _sources_digest() -> str:
    return hashlib.sha256(b"".join(f.read_bytes() for f in kernel_sources())).hexdigest()


register()
