"""CRC-32C (Castagnoli) of record batches and CRC-32 of older messages, by the fastest library that is installed.

There are two for CRC-32C. One is loaded at once. The other, awscrt, is two to three times faster for large buffers, and loading
it takes as long as half a GB takes the first: it is loaded by whoever has that much to sum.
"""

import zlib
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Final

from local_log.formats.primitives import Buffer

FEW_BYTES: Final = 1024
"""In smaller buffers the call takes longer than the checksum."""
_LOADED_AFTER_BYTES: Final = 256 << 20

Crc32c = Callable[..., int]
"""The CRC-32C of a buffer, continued from a checksum as the second argument."""


def _of_few() -> Crc32c:
    """The function of the package crc32c without the rest of it, which brings importlib.metadata and argparse."""
    package = find_spec("crc32c")
    found = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations) if package else None
    if found is None or found.loader is None:
        from crc32c import crc32c as whole

        return whole
    module = module_from_spec(found)
    found.loader.exec_module(module)
    function: Crc32c = module.crc32c
    return function


# These are the libraries' own functions: a wrapper would cost as much as the checksum of a small batch.
crc32c_of_few: Final[Crc32c] = _of_few()
"""For buffers of less than FEW_BYTES."""

_of_many: Crc32c | None = None
_summed = 0


def crc32c_for(size: int) -> Crc32c:
    """What is best for buffers that are so large together, but none of less than FEW_BYTES."""
    global _of_many, _summed
    if _of_many is not None:
        return _of_many
    _summed += size
    if _summed < _LOADED_AFTER_BYTES:
        return crc32c_of_few
    try:
        from awscrt.checksums import crc32c as found
    except ImportError:  # no wheel for this platform
        found = crc32c_of_few
    of_many: Crc32c = found
    _of_many = of_many
    return of_many


def crc32c(data: Buffer, before: int = 0) -> int:
    """The CRC-32C of a buffer of any size, continued from that of the bytes before it."""
    return crc32c_for(len(data))(data, before)


def crc32(data: Buffer, before: int = 0) -> int:
    """The CRC-32 of `data`, as zlib and java.util.zip compute it, continued from that of the bytes before it."""
    return zlib.crc32(data, before)
