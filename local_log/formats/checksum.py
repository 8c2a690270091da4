"""CRC-32C (Castagnoli): the one door to the native library."""

import crc32c as _native

from local_log.formats.primitives import Buffer


def crc32c(data: Buffer, value: int = 0) -> int:
    """CRC-32C of `data`, going on from `value`, the checksum of what came before it."""
    return _native.crc32c(data, value)
