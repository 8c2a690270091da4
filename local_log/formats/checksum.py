"""CRC-32C (Castagnoli) of record batches and CRC-32 of older messages: the one door to the native libraries."""

import zlib
from collections.abc import Callable
from typing import Final

import crc32c as _crc32c

from local_log.formats.primitives import Buffer

# The functions themselves: one of our own around them would cost as much as the checksum of a small batch.
crc32c_of_few: Final[Callable[..., int]] = _crc32c.crc32c
"""CRC-32C of some bytes, going on from a second argument, the checksum of what came before them. For less than FEW_BYTES."""

try:
    from awscrt.checksums import crc32c as _of_many
except ImportError:  # there is no wheel for every machine: the same sums, of large buffers at a third of the speed
    _of_many = crc32c_of_few

crc32c: Final[Callable[..., int]] = _of_many
"""The same, for any buffer: a call costs more and a byte less."""

FEW_BYTES: Final = 1024


def crc32(data: Buffer) -> int:
    """CRC-32, as zlib and java.util.zip compute it, of `data`."""
    return zlib.crc32(data)
