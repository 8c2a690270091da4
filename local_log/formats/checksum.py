"""CRC-32C (Castagnoli): the one door to the native library."""

from collections.abc import Callable
from typing import Final

import crc32c as _native

# The function itself: one of our own around it would cost as much as the checksum of a small batch.
crc32c: Final[Callable[..., int]] = _native.crc32c
"""CRC-32C of some bytes, going on from a second argument, the checksum of what came before them."""
