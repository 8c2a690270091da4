"""CRC-32C (Castagnoli) of record batches and CRC-32 of older messages: the one door to the native libraries."""

import zlib
from collections.abc import Callable
from typing import Final

import crc32c as _native

from local_log.formats.primitives import Buffer

# The function itself: one of our own around it would cost as much as the checksum of a small batch.
crc32c: Final[Callable[..., int]] = _native.crc32c
"""CRC-32C of some bytes, going on from a second argument, the checksum of what came before them."""


def crc32(data: Buffer) -> int:
    """CRC-32, as zlib and java.util.zip compute it, of `data`."""
    return zlib.crc32(data)
