"""Where numba stores the compiled kernels when their source is in a zip or in a folder that cannot be written.

Numba stores machine code beside the source, or in the user's cache under the source's path. Code that is shipped to Spark's
executors is in a zip. Numba refuses a zip (a wheel or an egg cannot be imported at all), or uses the zip's path, which differs
for every application, so that each would compile the kernels again. This module uses a path from the sources' digest instead: in
the user's cache or, if that cannot be written, as in many containers, in a temporary folder of the user. NUMBA_CACHE_DIR takes
precedence. This module is imported before the first kernel is declared.
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

_config: Any = numba.core.config  # numba sets its names when it is loaded
_OURS = ("local_log.", "tiering.")
_ZIP = "ZipCacheLocator"


class ShippedCode(_CacheLocator):
    """Numba's protocol for the cache location of one function; numba creates it by its name, see `register`."""

    def __init__(self, folder: Path, stamp: str, line: int) -> None:
        self._folder = folder
        self._stamp = stamp
        self._line = line

    def get_cache_path(self) -> str:
        """The folder of the machine code."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """A digest that changes with the sources."""
        return self._stamp

    def get_disambiguator(self) -> str:
        """Distinguishes functions of the same name in one file."""
        return str(self._line)

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "ShippedCode | None":
        """The location for a kernel of ours, None for any other function. Raises OSError if no folder can be written."""
        if not py_func.__module__.startswith(_OURS):
            return None
        stamp = _sources_digest(py_func.__module__.rpartition(".")[0])
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
    """Makes numba use `ShippedCode` where its own locators fail, unless the user has configured locators."""
    if not _config.CACHE_LOCATOR_CLASSES:
        names = [c.__name__ for c in CacheImpl._locator_classes if c.__name__ != _ZIP]
        _config.CACHE_LOCATOR_CLASSES = ",".join([*names, f"{__name__}.{ShippedCode.__name__}", _ZIP])


def _folders() -> Iterator[Path]:
    if _config.CACHE_DIR:
        yield Path(_config.CACHE_DIR)
    yield from cache_folders()


def kernel_sources() -> list[Traversable]:
    """All kernels' sources, since kernels are inlined into each other, and those of the constants compiled into them."""
    return [*_python_files("local_log.formats.kernels"), files("local_log.formats") / "header_layout.py"]


def _python_files(package: str) -> list[Traversable]:
    return sorted((f for f in files(package).iterdir() if f.name.endswith(".py")), key=lambda f: f.name)


@cache
def _sources_digest(package: str) -> str:
    """Of all kernels of `local_log`, or of a package above it, whose modules are compiled together."""
    sources = kernel_sources() if package.startswith("local_log.") else _python_files(package)
    return hashlib.sha256(b"".join(f.read_bytes() for f in sources)).hexdigest()


register()
