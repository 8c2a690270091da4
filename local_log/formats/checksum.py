"""CRC-32C (Castagnoli) of record batches and CRC-32 of older messages, by the fastest library that is installed."""

import zlib
from collections.abc import Callable
from typing import Final

import crc32c as _crc32c

from local_log.formats.primitives import Buffer

# These are the libraries' own functions: a wrapper would cost as much as the checksum of a small batch.
crc32c_of_few: Final[Callable[..., int]] = _crc32c.crc32c
"""CRC-32C of `data`, continued from a checksum as the second argument. For less than FEW_BYTES."""

try:
    from awscrt.checksums import crc32c as _of_many
except ImportError:  # no wheel for this platform: the other library is three times slower for large buffers
    _of_many = crc32c_of_few

crc32c: Final[Callable[..., int]] = _of_many
"""CRC-32C of a buffer of any size: each call costs more, each byte less."""

FEW_BYTES: Final = 1024


def crc32(data: Buffer, before: int = 0) -> int:
    """The CRC-32 of `data`, as zlib and java.util.zip compute it, continued from that of the bytes before it."""
    return zlib.crc32(data, before)
